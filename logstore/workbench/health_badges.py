"""How the months and the loads stand, as badges that lead to their pages."""

from __future__ import annotations

import streamlit as st

from logstore import loads, maintenance
from logstore.workbench import cached, texts
from logstore.workbench.navigation import PAGES

_LOOKS = {
    "ok": ("green", ":material/check_circle:"),
    "warn": ("orange", ":material/warning:"),
    "act": ("red", ":material/error:"),
}


def badges() -> None:
    """One badge each for the months and the loads, with what is the matter."""
    with st.container(horizontal=True, gap="small"):
        _badge("Partitions", *of_months(cached.health()))
        _badge("Loads", *of_loads(cached.loads_lately()))


def _badge(page: str, level: str, words: str, help_: str | None) -> None:
    colour, icon = _LOOKS[level]
    label = f":{colour}-badge[{icon} {page}: {words}]"
    if page in PAGES:
        st.page_link(PAGES[page][0], label=label, help=help_, width="content")
    else:
        st.markdown(label, help=help_, width="content")


def of_months(health: maintenance.Health) -> tuple[str, str, str | None]:
    """The level, a few words, and every finding that is not in order."""
    troubles = [finding for finding in health.findings if finding.level != "ok"]
    if not troubles:
        return "ok", "in order", f"{len(health.findings)} checks, all in order"
    worst = sum(finding.level == health.level for finding in troubles)
    noun = "thing" if worst == 1 else "things"
    return health.level, f"{worst} {noun} to {'do' if health.level == 'act' else 'look at'}", _said(troubles)


def _said(findings: list[maintenance.Finding]) -> str:
    parts = (f"{finding.check}: {finding.what}; {finding.advice}" for finding in findings)
    return "\n\n".join(texts.markdown(part, 400) for part in parts)


def of_loads(history: list[loads.Load]) -> tuple[str, str, str | None]:
    """The level and a few words about the loads of late."""
    if not history:
        return "ok", "none yet", None
    running = sum(load.state == "running" for load in history)
    newest = history[0]
    dead = sum(load.dead for load in history)
    letters = f"{dead:,} rows of the newest {len(history)} loads could not be loaded" if dead else None
    if running:
        return "ok", f"{running} running", letters
    if newest.state != "done":
        return "warn", f"the newest {newest.state}", texts.markdown(newest.error, 400) if newest.error else letters
    return "ok", "the newest is done", letters
