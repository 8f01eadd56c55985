"""Empty lists that say why, and what to do."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st

from logstore import deadline
from logstore.cursor import Kind
from logstore.errors import TooBroad
from logstore.records import Selection, TimeFilter
from logstore.workbench import cached, times, url
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import PAGES
from logstore.workbench.view import View

SECONDS = 3.0  # that one looks for what lies outside the range


def nothing(frame: Frame, kind: Kind, selection: Selection) -> None:
    """Say why a list is empty, and offer the next step."""
    if cached.extent(kind) is None:
        empty_log(f"There are no {kind}s in the log yet.")
        return
    if frame.view.next is not None or frame.view.prev is not None:
        st.info(f"No {kind}s beyond this place, within this range and these filters.", icon=":material/inbox:")
        st.button("Go to the newest page", on_click=_newest, type="primary")
        return
    period = f"in the last {times.RANGE_LABELS[frame.view.range]}" if frame.view.range else "between these times"
    try:
        time = _newest_time(kind, selection)
    except TooBroad:
        st.info(
            f"No {kind}s match {period}. Whether any do at other times would take long to find out.",
            icon=":material/inbox:",
        )
        st.button("Look at all times", on_click=url.change, args=(lambda view: view.over("all"),), type="primary")
        return
    if time is None:
        st.info(f"No {kind}s match these filters at any time.", icon=":material/inbox:")
        st.button("Clear the filters", on_click=url.change, args=(clear,), type="primary")
        return
    old = times.span(frame.now - time)
    st.info(
        f"No {kind}s match {period}; the newest that does is {old} old ({frame.show(time)}).", icon=":material/inbox:"
    )
    st.button("Jump there", on_click=url.change, args=(lambda view: there(view, time, frame),), type="primary")


def empty_log(words: str) -> None:
    """Say that nothing is there yet, and how something gets there."""
    st.info(
        f"{words} Load files of your own in the browser, or from a terminal, or try the sample data:",
        icon=":material/inbox:",
    )
    st.page_link(PAGES["Loads"][0], label="Load files", icon=PAGES["Loads"][1], width="content")
    st.code("python -m logstore load FOLDER\npython -m logstore demo", language="bash")


def _newest_time(kind: Kind, selection: Selection) -> datetime | None:
    """When the newest record was that matches at any time; None when none does."""
    if not selection.time.bounds():
        return None  # all times were asked for already
    with deadline.within(SECONDS):
        found = cached.store().lister(kind)(selection.but(time=TimeFilter()), limit=1).data
    return found[0].time if found else None


def clear(view: View) -> View:
    return view.but(selection=Selection(time=view.selection.time)).at()


def there(view: View, time: datetime, frame: Frame) -> View:
    """The shortest named range that holds a time, or the day before it."""
    for name, length in times.RANGES.items():
        if length is not None and time > frame.now - length + timedelta(minutes=1) and time <= frame.now:
            return view.over(name)
    day = timedelta(days=1)
    return view.over(None, TimeFilter(gte=time - day, lt=time + timedelta(seconds=1)))


def _newest() -> None:
    frames.unpin()
    url.change(lambda view: view.at())
