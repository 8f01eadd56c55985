"""Maintenance at work: its steps as the run log tells them, a way to stop it, and how it ended, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import streamlit as st

from logstore import maintenance
from logstore.maintenance import Entry
from logstore.workbench import cached, role, signs, texts, times
from logstore.workbench import frame as frames
from logstore.workbench.processes import Child, children

KIND = "maintain"
ACTOR = "workbench"
_LIVE_SECONDS = 1.0
_RESUMABLE = "What is done stays done, and the next plan goes on from there: nothing is lost or done twice."
RESULTS = {"done": f"{signs.GOOD} done", "started": f"{signs.GOING} started", "failed": f"{signs.BAD} failed"}


def start(about: Sequence[str], *arguments: str) -> None:
    """Start a command of maintenance; one that the page could not know to be refused says so when it has ended."""
    if role.may_change():
        children().start(KIND, about, *arguments)
        st.toast(
            "Started; the top of the page shows how it goes.", icon=":material/hourglass_top:"
        )  # the button may be far below


def busy() -> bool:
    return any(child.runs for child in children().all(KIND)) or maintenance.working(cached.store()) is not None


def live() -> bool:
    """What is at work, redrawn every second while something is, and how what this server started has ended."""
    at_work = busy()
    st.fragment(_now, run_every=_LIVE_SECONDS if at_work else None)(at_work)
    return at_work


def _now(was_busy: bool) -> None:
    with frames.sentences():
        steps = maintenance.working(cached.store())
        found = children().all(KIND)
        running = [child for child in found if child.runs]
        if was_busy and not running and steps is None:
            st.rerun()  # months and plan have changed, and the clock can stop
        for child in running:
            _child(child, steps)
        if steps is not None and not running:
            _progress(
                steps, f"by {texts.markdown(steps[0].actor)}, started elsewhere" if steps else "started elsewhere"
            )
        for child in found:
            if not child.runs:
                _ended(child)


def _child(child: Child, steps: list[Entry] | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        with st.container():
            if steps:
                _progress(steps, "")
            else:
                waited = times.span(datetime.now(child.started.tzinfo) - child.started)
                st.progress(0.0, f"Starting to {' '.join(map(texts.markdown, child.about))}, for {waited}")
        st.button(
            "Stopping…" if child.cancelled else "Cancel",
            key=f"stop {child.number}",
            on_click=children().cancel,
            args=(child.number,),
            disabled=child.cancelled or not role.may_change(),
            icon=":material/cancel:",
            help=_RESUMABLE,
        )


def _progress(steps: list[Entry], note: str) -> None:
    """The run so far; the newest step comes first."""
    if not steps:
        st.progress(0.0, f"Maintenance is starting · {note}")
        return
    done = [step for step in steps if step.result == "done"]
    at = steps[0]
    words = [f"Step {at.step} of {at.steps}: {texts.markdown(at.what)}"]
    if at.result == "started":
        words.append(times.span(datetime.now(at.time.tzinfo) - at.time))
    st.progress(len(done) / at.steps, " · ".join([*words, *([note] if note else [])]))
    if done:
        st.caption("Done: " + ", ".join(texts.markdown(step.what) for step in done[:6]) + (", …" if done[6:] else ""))


# How it ended


def _ended(child: Child) -> None:
    answer, sentence = child.outcome()
    with st.container(horizontal=True, vertical_alignment="center"):
        if answer is not None:
            good, words = said(child.about, answer)
            (st.success if good else st.warning)(
                texts.markdown(words, 1000), icon=":material/check_circle:" if good else ":material/warning:"
            )
        elif child.cancelled:
            st.info(f"Stopped. {_RESUMABLE}", icon=":material/cancel:")
        else:
            st.error(texts.markdown(_capital(sentence or ""), 1000), icon=":material/warning:")
        st.button("Close", key=f"read {child.number}", on_click=children().forget, args=(child.number,))


def said(about: Sequence[str], answer: Any) -> tuple[bool, str]:
    """The outcome of a command in a sentence, and whether it is a good one."""
    action, name = about[0], about[-1]
    if action in ("undo", "restore"):
        return True, f"{name} is in PostgreSQL again, and open. A plan archives it again when its policy says so."
    if action == "purge":
        return True, f"The table of {name} is gone; its segments serve it."
    if action == "verify":
        if not answer:
            return True, f"Every segment of {name} is good."
        return False, "; ".join(f"{f['what']}: {f['problem']}; {f['done']}" for f in answer[:3]) + "."
    return True, outcome(answer["steps"])


def outcome(steps: Sequence[dict[str, Any]]) -> str:
    """What a run did, by what it means for the months."""
    if not steps:
        return "There was nothing to do."
    found: dict[str, list[str]] = {}
    for step in steps:
        found.setdefault(step["action"], []).append(step["partition"])
    count = len(steps)
    parts = [
        f"{some(found[action]) if action != 'premake' else len(found[action])} {words}"
        for action, words in _WORDS.items()
        if action in found and not (action == "detach" and "flip" in found)
    ]
    return f"Done in {count} {'step' if count == 1 else 'steps'}: {'; '.join(parts) or 'roll-ups are folded'}."


_WORDS = {
    "attach": "put back into the log",
    "finalise": "detached to the end",
    "flip": "served from the archive now, undo is possible",
    "detach": "taken out of PostgreSQL's log",
    "purge": "purged, only segments are left",
    "remove": "removed for good",
    "premake": "months made ahead",
}


def some(names: Sequence[str]) -> str:
    """Names, as many as one reads."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
