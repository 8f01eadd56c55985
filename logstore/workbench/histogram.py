"""The histogram above a list: the whole range and both tiers, by outcome; a box drawn on it narrows the range."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas
import streamlit as st

from logstore.cursor import Kind
from logstore.records import Selection, TimeFilter
from logstore.workbench import cached, charts, texts, times, url
from logstore.workbench.background import later
from logstore.workbench.counts import measures, range_outcomes
from logstore.workbench.frame import Frame
from logstore.workbench.times import Window


def chart(frame: Frame, kind: Kind, selection: Selection) -> None:
    """Attempts by outcome, or events by what became of them. What must read the records is drawn when it is counted."""
    extent = cached.extent(kind)
    if extent is None:
        return
    window = times.window_of(selection.time, extent=extent, now=frame.now)
    counted = selection.but(time=TimeFilter())
    quick = measures.quick(kind, counted, window, frame.zone)
    if kind == "event":
        plain = (lambda: _draw(frame, kind, cached.histogram(kind, counted, window, frame.zone))) if quick else None
        event_outcomes(frame, counted, window, lambda found: _draw(frame, kind, found), meanwhile=plain)
    elif quick:
        _draw(frame, kind, cached.histogram(kind, counted, window, frame.zone))
    else:
        store, zone = cached.store(), frame.zone
        later(
            ("histogram", kind, counted, window, str(zone)),
            lambda: measures.histogram(store, kind, counted, window, zone),
            lambda found: _draw(frame, kind, found),
            words=f"Counting the {kind}s of the range…",
        )


def event_outcomes(
    frame: Frame,
    selection: Selection,
    window: Window,
    draw: Callable[[pandas.DataFrame], None],
    *,
    meanwhile: Callable[[], None] | None,
) -> None:
    """What became of the events of a window: the list of events and the overview ask the same, so it is counted once."""
    store, zone = cached.store(), frame.zone
    later(
        ("outcomes", selection, window, str(zone)),
        lambda: range_outcomes.outcomes(store, selection, window, zone),
        draw,
        words="Looking up what became of these events…",
        meanwhile=meanwhile,
    )


def _draw(frame: Frame, kind: Kind, data: pandas.DataFrame) -> None:
    # The whole range is in the key: a box that was drawn on another range does not stay on this one.
    range_ = frame.view.range or frame.view.selection.time
    key = f"bars {kind} {range_} {frame.view.zone}"
    st.plotly_chart(
        charts.bars(data, zone=frame.zone, noun=f"{kind}s"),
        key=key,
        on_select=lambda: narrowed(key, frame),
        selection_mode=("box",),
        config=charts.CONFIG,
    )
    bar = times.span(data.attrs["width"])
    by = "" if set(data["outcome"]) == {"published"} else " by outcome"
    words = f"All {kind}s of the range{by}, {bar} a bar, times in {frame.zone_name}."
    st.caption(f"{words} Drag across to narrow the range.")
    unread(data.attrs["warnings"])


def unread(warnings: tuple[str, ...]) -> None:
    """Say what a count lacks, because its files cannot be read."""
    for warning in warnings:
        st.warning(texts.markdown(f"Not counted: {warning}", 600))


def narrowed(key: str, frame: Frame) -> None:
    """Make the box that was drawn the range: its edges are texts without a zone, in the zone of the picture."""
    state: Any = st.session_state.get(key) or {}
    boxes = state.get("selection", {}).get("box", [])
    if not boxes:
        return
    edges = sorted(datetime.fromisoformat(str(edge)).replace(tzinfo=frame.zone) for edge in boxes[0]["x"])
    if edges[0] < edges[-1]:
        url.change(lambda view: view.over(None, TimeFilter(gte=edges[0], lt=edges[-1])))
