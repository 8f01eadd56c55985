"""Live mode: how many records have come since the list was read, while the page that is read stays still."""

from __future__ import annotations

from typing import Any

import streamlit as st

from logstore import cursor, deadline
from logstore.cursor import Kind, Position
from logstore.records import Selection
from logstore.workbench import cached, url
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame

SECONDS = 2
MOST = 100  # that are counted: they are read with their payloads, by every session that looks


def toggle(frame: Frame) -> None:
    """The switch; its state is in the URL."""
    over = _is_over(frame)
    st.toggle(
        "Live",
        key=url.bound("live", url.one("live") == "1" and not over),
        disabled=over,
        on_change=lambda: url.put(live="1" if st.session_state["live"] else None),
        help="Nothing new can come: these times are over." if over else "Says how many new ones there are.",
    )


def watch(frame: Frame, kind: Kind, selection: Selection, top: str | None) -> None:
    """While live mode is on, look every other second for what is newer than `top`, the newest that was shown."""
    if url.one("live") != "1" or _is_over(frame):
        return
    key = (kind, selection.but(time=type(selection.time)()), frame.view.range)
    known: Any = st.session_state.get("live since")
    if top is not None:
        known = (key, top)
    elif known is None or known[0] != key:
        known = (key, cursor.encode(kind, Position(frame.now, "")))
    st.session_state["live since"] = known
    st.fragment(_look, run_every=SECONDS)(frame, kind, selection, known[1])


def _look(frame: Frame, kind: Kind, selection: Selection, since: str) -> None:
    with frames.sentences():
        number = new(kind, selection, since)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if not number:
                st.caption(f":material/sensors: Live: no new {kind}s since this page was read.")
                return
            shown = f"{MOST}+" if number > MOST else f"{number}"
            st.markdown(f":material/sensors: **{shown} new**", width="content")
            if st.button("Show them", icon=":material/vertical_align_top:", key="show new"):
                frames.unpin()
                url.change(lambda view: view.at())
                st.rerun()


def new(kind: Kind, selection: Selection, since: str) -> int:
    """How many records of a selection are newer than a place in its list; more than MOST are not counted."""
    with deadline.within(SECONDS):
        page = cached.store().lister(kind)(selection, limit=MOST, prev=since)
    return len(page) + (page.prev is not None)


def _is_over(frame: Frame) -> bool:
    time = frame.view.selection.time
    return any(bound <= frame.now for bound in (time.lt, time.lte) if bound)
