"""Dead letters: rows that could not be loaded, by reason; each can be loaded after all, corrected, or discarded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas
import streamlit as st

from logstore import loads
from logstore.errors import LoadError
from logstore.loads import LETTER_STATES, DeadLetter
from logstore.workbench import cached, processes, record_details, role, signs, texts, times, url
from logstore.workbench.frame import Frame
from logstore.workbench.loads import dead_letter_batches
from logstore.workbench.ranking_table import on_click
from logstore.workbench.record_table import LINK

WORDS = {
    "malformed": "not one JSON object",
    "missing_field": "a field is missing",
    "wrong_type": "a field has the wrong type",
    "unknown_status": "the status is neither success nor failed",
    "bad_time": "a time cannot be read",
    "naive_time": "a time has no zone",
    "absurd_time": "a time is too old or too far ahead",
    "nul": "a text holds the character NUL",
    "oversize": "the row is too large",
    "too_long": "an id or a name is too long",
    "too_deep": "values are nested too deeply",
    "month_not_open": "its month is closed or archived",
    "refused": "PostgreSQL refused it",
}
STATES = {
    "open": f"{signs.WARN} open",
    "requeued": f"{signs.GOOD} requeued",
    "resolved": f"{signs.GOOD} resolved",
    "discarded": f"{signs.NONE} discarded",
}
_PAGE = 25
_EDITED_MOST = 100_000  # characters; a longer row is corrected in a file


def section(frame: Frame) -> None:
    """Counts by reason, the letters of one reason, and the letter that is open."""
    st.subheader("Dead letters", anchor=False)
    load = url.number("load")
    counted = loads.letter_counts(cached.store(), load=load)
    if not counted and load is None:
        st.caption("None: no load left a row behind.")
        return
    state, reason = _choices(counted, load)
    found = loads.dead_letters(
        cached.store(), state=state, reason=reason, load=load, before=url.number("before"), limit=_PAGE + 1
    )
    _said()
    dead_letter_batches.live()
    if not found:
        none = "No dead letters match; choose another state or reason above."
        st.info(none if counted else f"No row of load {load} became a dead letter.", icon=":material/inbox:")
    else:
        _table(frame, found[:_PAGE])
        _pages(found)
        if state == "open" and reason and role.may_change():
            dead_letter_batches.offer(reason, load)
    number = url.number("letter")
    if number is not None:
        _letter(frame, loads.dead_letter(cached.store(), number))
    elif found:
        more = "" if reason or state != "open" else " Choose a reason above to do so with all of its letters."
        st.caption(f"Choose a row to read the letter, load it after all, or discard it.{more}")


def _choices(counted: list[tuple[str, str, int]], load: int | None) -> tuple[str, str | None]:
    """Which letters are meant, of one load or of all: their state, their reason."""
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    asked = url.one("state") or "open"
    state = asked if asked in LETTER_STATES else "open"
    for of_state, reason, count in counted:
        states[of_state] += count
        if of_state == state:
            reasons[reason] += count
    reason_asked = url.one("reason")
    with st.container(horizontal=True, gap="medium"):
        st.segmented_control(
            "State",
            LETTER_STATES,
            format_func=lambda name: f"{signs.coloured(STATES[name])} ({states[name]:,})",
            key=url.bound("letter state", state),
            on_change=lambda: _narrow(state=st.session_state["letter state"], reason=None),
            wrap=True,
        )
        known = [
            *(name for name, _ in reasons.most_common()),
            *([reason_asked] if reason_asked and reason_asked not in reasons else []),
        ]
        st.pills(
            "Reason, with the number of letters",
            known,
            format_func=lambda name: f"{WORDS.get(name, texts.plain(name))} ({reasons[name]:,})",
            key=url.bound("letter reason", reason_asked),
            on_change=lambda: _narrow(reason=st.session_state["letter reason"]),
            wrap=True,
        )
        if load is not None:
            st.button(
                f"Only load {load}: show all loads", on_click=_narrow, kwargs={"load": None}, icon=":material/close:"
            )
    return state, reason_asked


def _narrow(**changes: str | None) -> None:
    url.put_all({**changes, "letter": None, "before": None})


def _said() -> None:
    """What the last action did, once."""
    if "letter done" in st.session_state:
        good, words = st.session_state.pop("letter done")
        (st.success if good else st.error)(words, icon=":material/check_circle:" if good else ":material/warning:")


def _table(frame: Frame, found: list[DeadLetter]) -> None:
    shown = pandas.DataFrame(
        {
            "id": [letter.id for letter in found],
            "why": [WORDS.get(letter.reason, letter.reason) for letter in found],
            "message": [letter.message[:200] for letter in found],
            "file": [Path(letter.file).name for letter in found],
            "line": ["" if letter.line is None else f"{letter.line:,}" for letter in found],
            "text": [letter.raw[:160] for letter in found],
            "load": [f"{LINK} {letter.load}" for letter in found],
            "seen": [times.ago(letter.first_seen, frame.now) for letter in found],
        }
    )
    key = f"letters {found[0].id} {found[-1].id} {found[0].state} {len(found)}"
    chosen = [i for i, letter in enumerate(found) if letter.id == url.number("letter")]
    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        height="content" if len(found) <= 8 else 300,
        column_config=_CONFIG | {"load": _load(key, found)},
        on_select=lambda: _chosen(key, found),
        selection_mode="single-row",
        selection_default={"selection": {"rows": chosen, "columns": [], "cells": []}},
    )


_CONFIG: dict[str, Any] = {
    "id": st.column_config.NumberColumn("letter", width=60),
    "why": st.column_config.TextColumn("reason", width=250),
    "message": st.column_config.TextColumn("what is wrong", width=295),
    "file": st.column_config.TextColumn("file", width=115),
    "line": st.column_config.TextColumn("line", width=55, alignment="right"),
    "text": st.column_config.TextColumn("its text", width=145),
    "seen": st.column_config.TextColumn("first seen", width=95),
}


def _load(key: str, found: list[DeadLetter]) -> Any:
    """A click on a load shows it, and only its letters."""
    drawn = pandas.DataFrame({"load": [letter.load for letter in found]})
    click = on_click(f"{key} load", drawn, lambda row: _narrow(load=str(row["load"])))
    return st.column_config.ButtonColumn("load", type="tertiary", alignment="left", width=75, **click)


def _chosen(key: str, found: list[DeadLetter]) -> None:
    state: Any = st.session_state.get(key) or {}
    rows = state.get("selection", {}).get("rows", [])
    url.put(letter=str(found[rows[0]].id) if rows and rows[0] < len(found) else None)


def _pages(found: list[DeadLetter]) -> None:
    """Older letters, and back to the newest."""
    more, before = len(found) > _PAGE, url.one("before")
    if more or before:
        last = str(found[min(_PAGE, len(found)) - 1].id)
        with st.container(horizontal=True, gap="small"):
            st.button("Newest letters", on_click=_narrow, disabled=before is None)
            st.button("Older letters", on_click=url.put, kwargs={"before": last, "letter": None}, disabled=not more)


# One letter


def _letter(frame: Frame, letter: DeadLetter) -> None:
    with st.container(border=True):
        place = f"line {letter.line:,}" if letter.line is not None else f"position {letter.position:,}"
        facts = {"letter": str(letter.id), "state": STATES[letter.state], "reason": letter.reason, "place": place}
        facts |= {"load": str(letter.load), "tried": f"{letter.attempts} times" if letter.attempts > 1 else "once"}
        record_details.facts(facts | {"file": letter.file})
        st.caption("What is wrong")
        st.code(letter.message, language=None, wrap_lines=True)
        st.caption(f"Its text{', as far as it was kept' if letter.truncated else ''}")
        _text(letter.raw)
        if letter.corrected is not None:
            st.caption("What was loaded instead")
            _text(letter.corrected)
        if letter.state != "open":
            st.caption(f"It is {letter.state}; nothing is left to do.")
        elif not role.may_change():
            role.reader_note("requeue or discard it", f"python -m logstore dead-letters requeue {letter.id}")
        else:
            _actions(letter)


def _text(raw: str) -> None:
    height: Any = "content" if len(raw) <= 800 and raw.count("\n") < 6 else 200
    st.code(raw[: texts.SHOWN_MOST], language=None, wrap_lines=True, height=height)


def _actions(letter: DeadLetter) -> None:
    if len(letter.raw) > _EDITED_MOST:
        st.caption("The row is too long to be edited here; correct it in a file:")
        st.code(f"python -m logstore dead-letters requeue {letter.id} --file corrected.json", language="bash")
    else:
        st.text_area("Correct it here: one JSON object", letter.raw, key=f"corrected {letter.id}", height=160)
    with st.container(horizontal=True, gap="small"):
        if len(letter.raw) <= _EDITED_MOST:
            with st.popover("Load the corrected text", icon=":material/edit:", type="primary"):
                st.write(
                    "The text above is checked like any other row and, if it is good, becomes part of the log at once. "
                    "A letter is requeued once; what was wrong with it stays on record."
                )
                st.button("Load it corrected", type="primary", on_click=_requeue, args=(letter.id, True))
        with st.popover("Load it as it is", icon=":material/replay:"):
            st.write("The row is checked again as it stands: useful when its month was closed and is open now.")
            st.button(
                "Load it unchanged",
                type="primary",
                on_click=_requeue,
                args=(letter.id, False),
                disabled=letter.truncated,
            )
        with st.popover("Discard", icon=":material/delete:"):
            st.write("The row is not loaded. The letter stays on record as discarded and cannot be requeued any more.")
            st.button("Discard this letter", type="primary", on_click=_discard, args=(letter.id,))


def _requeue(number: int, corrected: bool) -> None:
    text = st.session_state.get(f"corrected {number}", "") if corrected else ""
    if corrected and not text.strip():
        st.session_state["letter done"] = (False, "There is no text to load: write the corrected row first.")
        return
    more = ("--file", "/dev/stdin") if corrected else ()
    _act(number, f"Dead letter {number} is loaded as an {{kind}}.", "requeue", str(number), *more, text=text)


def _discard(number: int) -> None:
    _act(number, f"Dead letter {number} is discarded.", "discard", str(number))


def _act(number: int, words: str, *arguments: str, text: str = "") -> None:
    """Let the command line do it, whose role may write, and say what it said."""
    try:
        answer = processes.ask("dead-letters", *arguments, text=text)
    except LoadError as error:
        said = texts.markdown(str(error), 500)
        st.session_state["letter done"] = (False, said[:1].upper() + said[1:] + ("" if said.endswith(".") else "."))
        return
    st.session_state["letter done"] = (True, words.format(kind=answer.get("kind", "row")))
    url.put(letter=None)
