"""How long after its event an attempt is made, and one succeeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pandas
import streamlit as st

from logstore.metrics import Metrics
from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench import cached, histogram, times
from logstore.workbench.background import later
from logstore.workbench.counts import measures
from logstore.workbench.counts.measures import Many
from logstore.workbench.frame import Frame
from logstore.workbench.overview.many_records import limit, offer
from logstore.workbench.times import Window

_QUANTILES = ("latency_p50", "latency_p95", "latency_p99")


def latencies(frame: Frame, window: Window) -> None:
    """How long after its event an attempt is made, and one succeeds."""
    st.subheader("Time from event to attempt", anchor=False)
    store, all_ = cached.store(), frame.view.everything
    measure = lambda: _measure(store, window)  # noqa: E731 - an argument
    later(
        ("latencies", window, all_),
        lambda: measures.unless_many(store, "attempt", Selection(), window, measure, everything=all_),
        _latencies,
        words="Measuring…",
        seconds=limit(frame),
    )


def _measure(store: LogStore, window: Window) -> list[Metrics]:
    # Whoever sends an event again by hand chooses when; that says nothing about the platform.
    first = Selection(where="attempt_number = 1 and manual = false")
    asked = (first, Selection(status="success", where="manual = false"))
    shape: dict[str, Any] = {"measures": ("count", *_QUANTILES)}
    return [measures.measured(store, "attempt", selection, window, **shape) for selection in asked]


def _latencies(found: Sequence[Metrics] | Many) -> None:
    if isinstance(found, Many):
        offer(found, "attempts")
        return
    histogram.unread(measures.unread(*found))
    names = ("to the first attempt", "to a success")
    rows = [
        _latency(name, part.rows[0] if part.rows else (0, None, None, None))
        for name, part in zip(names, found, strict=True)
    ]
    frame = pandas.DataFrame(rows, columns=["time", "half", "most", "nearly", "attempts"])
    config: dict[str, Any] = {
        "time": st.column_config.TextColumn("from the event", width=140),
        "half": st.column_config.TextColumn("p50", width=65, help="half of the attempts are this fast or faster"),
        "most": st.column_config.TextColumn("p95", width=65, help="95 of 100 attempts are this fast or faster"),
        "nearly": st.column_config.TextColumn("p99", width=65, help="99 of 100 attempts are this fast or faster"),
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=80),
    }
    st.dataframe(frame, key="latencies", hide_index=True, column_config=config, height="content")


def _latency(name: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    number, *seconds = row
    return name, *["–" if s is None else times.span(timedelta(seconds=s)) for s in seconds], number
