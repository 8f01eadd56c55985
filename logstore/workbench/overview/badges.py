"""How the months and the loads stand, as badges that lead to their pages."""

from __future__ import annotations

import streamlit as st

from logstore import loads, maintenance
from logstore.workbench import cached, texts
from logstore.workbench.navigation import PAGES
from logstore.workbench.url import pairs
from logstore.workbench.view import View, grouped

_LETTERS = "dead letters"  # the check that is about loads, and no month
_ENDED = {"done": "the newest is done", "failed": "the newest failed", "cancelled": "the newest was cancelled"}
_LOOKS = {
    "ok": ("green", ":material/check_circle:"),
    "warn": ("orange", ":material/warning:"),
    "act": ("red", ":material/error:"),
}


def badges() -> None:
    """One badge each for the months and the loads, with what is the matter."""
    with st.container(horizontal=True, gap="small"):
        health = cached.health()
        _badge("Partitions", *of_months([finding for finding in health.findings if finding.check != _LETTERS]))
        _badge("Loads", *of_loads(cached.loads_lately(), [f for f in health.findings if f.check == _LETTERS]))


def _badge(page: str, level: str, words: str, help_: str | None) -> None:
    colour, icon = _LOOKS[level]
    label = f":{colour}-badge[{icon} {page}: {words}]"
    along = grouped(View.from_query(pairs()).carried())
    st.page_link(PAGES[page][0], label=label, help=help_, width="content", query_params=along)


def of_months(findings: list[maintenance.Finding]) -> tuple[str, str, str | None]:
    """The level, a few words, and every finding that is not in order."""
    troubles = _troubles(findings)
    if not troubles:
        return "ok", "in order", f"{len(findings)} checks, all in order"
    level = "act" if any(finding.level == "act" for finding in troubles) else "warn"
    worst = sum(finding.level == level for finding in troubles)
    noun = "thing" if worst == 1 else "things"
    return level, f"{worst} {noun} to {'do' if level == 'act' else 'look at'}", _said(troubles)


def _troubles(findings: list[maintenance.Finding]) -> list[maintenance.Finding]:
    return [finding for finding in findings if finding.level != "ok"]


def _said(findings: list[maintenance.Finding]) -> str:
    parts = (f"{finding.check}: {finding.what}; {finding.advice}" for finding in findings)
    return "\n\n".join(texts.markdown(part, 400) for part in parts)


def of_loads(history: list[loads.Load], letters: list[maintenance.Finding]) -> tuple[str, str, str | None]:
    """The level and a few words about the loads of late; rows that wait for a person come before everything else."""
    running = sum(load.state == "running" for load in history)
    newest = _ENDED.get(history[0].state, history[0].state) if history else "none yet"
    going = f"{running} running" if running else newest
    waiting = _troubles(letters)
    if waiting:
        return "warn", f"{waiting[0].what}; {going}", _said(waiting)
    if history and not running and history[0].state != "done":
        return "warn", going, texts.markdown(history[0].error, 400) if history[0].error else None
    return "ok", going, None
