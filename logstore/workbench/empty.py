"""Empty lists that say why, and what to do."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st

from logstore.cursor import Kind
from logstore.records import Selection, TimeFilter
from logstore.workbench import cached, times
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.view import View


def nothing(frame: Frame, kind: Kind, selection: Selection) -> None:
    """Say why a list is empty, and offer the next step."""
    if cached.extent(kind) is None:
        st.info(f"There are no {kind}s in the log yet. Load the sample data, or your own files:", icon="📭")
        st.code("python -m logstore demo\npython -m logstore load FOLDER", language="bash")
        return
    if frame.view.next is not None or frame.view.prev is not None:
        st.info(f"No {kind}s beyond this place, within this range and these filters.", icon="📭")
        st.button("Go to the newest page", on_click=_newest, type="primary")
        return
    store = cached.store()
    lister = store.list_event if kind == "event" else store.list_attempt
    newest = lister(selection.but(time=TimeFilter()), limit=1).data
    if not newest:
        st.info(f"No {kind}s match these filters at any time.", icon="📭")
        st.button("Clear the filters", on_click=frames.change, args=(clear,), type="primary")
        return
    time = newest[0].time
    period = f"in the last {times.RANGE_LABELS[frame.view.range]}" if frame.view.range else "between these times"
    old = times.span(frame.now - time)
    st.info(f"No {kind}s match {period}; the newest that does is {old} old ({frame.show(time)}).", icon="📭")
    st.button("Jump there", on_click=frames.change, args=(lambda view: there(view, time, frame),), type="primary")


def clear(view: View) -> View:
    return view.but(selection=Selection(time=view.selection.time), open=None, next=None, prev=None)


def there(view: View, time: datetime, frame: Frame) -> View:
    """The shortest named range that holds a time, or the day before it."""
    for name, length in times.RANGES.items():
        if length is not None and time > frame.now - length + timedelta(minutes=1) and time <= frame.now:
            return view.over(name)
    day = timedelta(days=1)
    return view.over(None, TimeFilter(gte=time - day, lt=time + timedelta(seconds=1)))


def _newest() -> None:
    st.session_state.pop("pin", None)
    frames.change(lambda view: view.at())
