"""One month: how it stands, its segments, and what can be done about it; what cannot be taken back asks for its name."""

from __future__ import annotations

from datetime import datetime

import pandas
import streamlit as st

from logstore.maintenance.checkup import size_text
from logstore.maintenance.planning import step_of, way_out
from logstore.retention import Leaving
from logstore.workbench import maintenance_progress, record_details, role, texts, times, url
from logstore.workbench.frame import Frame
from logstore.workbench.partitions.maintenance_plan import reader_note, statement, statements
from logstore.workbench.partitions.months import Standing, is_over, segment_text

_WORDS = {"cold": "in the archive"}


def section(frame: Frame, one: Standing, *, at_work: bool) -> None:
    """The month that the URL names."""
    name = one.month.name
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(f"{one.look.sign} {texts.markdown(name)}", anchor=False, width="content")
            st.button("Close", key="close month", on_click=url.put, kwargs={"partition": None})
        st.markdown(f"**{one.look.word.capitalize()}**: {one.look.meaning}.")
        record_details.facts(_facts(frame, one))
        if one.files:
            _segments(frame, one)
        if not role.may_change():
            reader_note()
        _actions(frame, one, enabled=role.may_change() and not at_work)


def _facts(frame: Frame, one: Standing) -> dict[str, str]:
    month = one.month
    known = {
        "from": f"{month.lower:%Y-%m-%d} UTC",
        "to (not included)": f"{month.upper:%Y-%m-%d} UTC",
        "rows": f"{one.rows:,}" + ("" if month.state in ("cold", "purged") else ", about"),
        "in PostgreSQL": size_text(month.bytes) if month.exists else "no table",
        "in the archive": size_text(month.cold_bytes) if month.segments else "nothing",
    }
    if one.files:
        known["segments"] = segment_text(month)
        known["verified"] = times.ago(one.verified, frame.now) if one.verified else "not all of them"
    if month.changed:
        known[f"{_WORDS.get(month.state, month.state)} since"] = _moment(frame, month.changed)
    if one.undo_until:
        known["undo until"] = _moment(frame, one.undo_until)
    return known


def _moment(frame: Frame, time: datetime) -> str:
    return f"{times.show_short(time, frame.zone)} {frame.zone_name}"


def _segments(frame: Frame, one: Standing) -> None:
    with st.expander(f"Its {len(one.files)} {'segment' if len(one.files) == 1 else 'segments'}"):
        shown = pandas.DataFrame(
            {
                "file": [segment.location for segment in one.files],
                "state": [segment.state for segment in one.files],
                "rows": [segment.rows for segment in one.files],
                "size": [size_text(segment.bytes) for segment in one.files],
                "verified": [
                    times.ago(segment.verified, frame.now) if segment.verified else "" for segment in one.files
                ],
                "sha256": [segment.sha256 for segment in one.files],
                "note": [segment.note or "" for segment in one.files],
            }
        )
        if not shown["note"].any():
            shown = shown.drop(columns="note")
        st.dataframe(shown, hide_index=True, height="content" if len(one.files) <= 8 else 300)


# What can be done


def _actions(frame: Frame, one: Standing, *, enabled: bool) -> None:
    month, name = one.month, one.month.name
    with st.container(horizontal=True):
        if month.exists and month.ours and month.state != "open":
            words = "Reopen it" if month.state == "closed" else "Undo: take it back into PostgreSQL"
            help_ = "From its own table, without reading it. It is writable then, until its policy archives it again."
            _button("undo", words, name, ("maintain", "undo", name), enabled=enabled, help_=help_, primary=True)
        if month.state in ("cold", "purged") and not month.exists and one.files:
            help_ = "Builds its table anew from its segments and compares the rows before anybody sees them."
            _button("restore", "Restore it from its segments", name, ("restore", name), enabled=enabled, help_=help_)
        if one.files:
            help_ = "Reads every byte of its segments and compares; what is bad is quarantined."
            _button("verify", "Verify its segments", name, ("verify", name), enabled=enabled, help_=help_)
    whole = month.ours and month.attached and not month.pending
    if month.state in ("open", "closed") and whole and is_over(one, frame.now):
        _archive(one, enabled=enabled)
    if month.state == "cold" and month.exists and not month.attached:
        _purge(frame, one, enabled=enabled)


def _button(
    action: str, words: str, name: str, command: tuple[str, ...], *, enabled: bool, help_: str, primary: bool = False
) -> None:
    actor = ("--actor", maintenance_progress.ACTOR) if command[0] == "maintain" else ()
    st.button(
        words,
        key=f"{action} {name}",
        type="primary" if primary else "secondary",
        disabled=not enabled,
        help=help_,
        on_click=maintenance_progress.start,
        args=((action, name), *command, "--json", *actor),
    )


def _archive(one: Standing, *, enabled: bool) -> None:
    name = one.month.name
    with st.expander("Archive: let it leave PostgreSQL before its policy says so", icon=":material/archive:"):
        st.markdown(
            "It is closed for writers, written as segments that are read once more, served from the archive, and its "
            "table is detached and kept for undo."
        )
        st.code(statements(way_out(Leaving(month=one.month, reason="asked for"))), language="sql")
        help_ = "The steps above, one after the other. Undo is possible."
        _button("archive", "Archive it now", name, ("maintain", "archive", name), enabled=enabled, help_=help_)


def _purge(frame: Frame, one: Standing, *, enabled: bool) -> None:
    month, name = one.month, one.month.name
    early = one.undo_until is not None and one.undo_until > frame.now
    with st.expander("Purge: give up its table", icon=":material/delete_forever:"):
        st.markdown(
            f"The table is dropped, {size_text(month.bytes)} are freed. Its {month.cold_rows:,} rows stay in "
            f"{month.segments} segments, which are read once more before. After that it comes back only by being "
            "built anew from them."
        )
        if early and one.undo_until:
            until = texts.markdown(times.show_short(one.undo_until, frame.zone))
            st.warning(f"It can be undone until {until}; purging now gives that up.", icon=":material/hourglass_top:")
        st.code(statement(step_of("purge", month, "asked for")), language="sql")
        with st.form(f"purge {name}", border=False):
            typed = st.text_input(f"Type {texts.markdown(name)} to purge it", key=f"typed {name}", disabled=not enabled)
            pressed = st.form_submit_button(
                "Purge it", icon=":material/delete_forever:", disabled=not enabled, key=f"purge it {name}"
            )
        if pressed and enabled:
            if typed.strip() != name:
                st.error("The name does not match, so nothing was done.", icon=":material/warning:")
                return
            command = ("maintain", "purge", name, "--json", "--actor", maintenance_progress.ACTOR)
            maintenance_progress.start(("purge", name), *command, *(("--override",) if early else ()))
            st.rerun()
