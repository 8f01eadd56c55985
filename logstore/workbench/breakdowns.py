"""What the range is made of: failures in groups, topics, and how long deliveries take; each row leads to its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pandas
import streamlit as st

from logstore.filters.tree import quoted
from logstore.metrics import Metrics
from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench import cached, failures, histogram, measures, times
from logstore.workbench import frame as frames
from logstore.workbench.charts import BAD
from logstore.workbench.frame import Frame
from logstore.workbench.later import later
from logstore.workbench.tables import LINK
from logstore.workbench.times import Window
from logstore.workbench.view import grouped

_GROUPS, _TOPICS = 10, 50
_QUANTILES = ("latency_p50", "latency_p95", "latency_p99")


def failures_of(frame: Frame, window: Window) -> None:
    """Failed attempts by destination, code and message."""
    st.subheader("Why attempts fail", anchor=False)
    store = cached.store()
    later(
        ("failures", window),
        lambda: failures.groups(store, window, most=_GROUPS),
        lambda found: _groups(frame, found),
        words="Grouping the failures…",
    )


def _groups(frame: Frame, found: pandas.DataFrame) -> None:
    histogram.unread(found.attrs["warnings"])
    if found.empty:
        st.caption("No attempt failed in this range.")
        return
    shown = pandas.DataFrame(
        {
            "message": [f"{LINK} {message or 'no message'}" for message in found["message"]],
            "code": [code or "none" for code in found["code"]],
            "failed": found["failed"],
            "trend": found["trend"],
            "destination": found["destination_id"],
            "tenant": found["tenant_id"],
            "first": [times.ago(time, frame.now) for time in found["first"]],
            "last": [times.ago(time, frame.now) for time in found["last"]],
        }
    )
    config: dict[str, Any] = {
        "message": st.column_config.ButtonColumn(
            "what the answer said", type="tertiary", key="group click", alignment="left", width=215
        ),
        "code": st.column_config.TextColumn("code", width=95),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=105),
        "trend": st.column_config.BarChartColumn("over the range", y_min=0, color=BAD, width=125),
        "destination": st.column_config.TextColumn("destination", width=225),
        "tenant": st.column_config.TextColumn("tenant", width=125),
        "first": st.column_config.TextColumn("first seen", width=95, help="in this range"),
        "last": st.column_config.TextColumn("last seen", width=95),
    }
    st.dataframe(shown, key="groups", hide_index=True, column_config=config, height="content")
    if found.attrs["groups"] > len(found):
        st.caption(f"The {len(found)} largest of {found.attrs['groups']:,} groups of destination, code and message.")
    row = _clicked("group click", found)
    if row is not None:
        where = f"code = {quoted(row['code'])}" if row["code"] else "not code exists"
        _leave(
            frame, "Attempts", tenant=row["tenant_id"], destination=row["destination_id"], status="failed", where=where
        )


def topics(frame: Frame, window: Window) -> None:
    """Topics with how much was published and how many of its attempts failed."""
    st.subheader("Topics", anchor=False)
    published = {row["topic"]: row["count"] for row in cached.published(window)}
    tried = cached.ranking(Selection(), window, by="topic").set_index("topic")
    names = sorted({*published, *tried.index}, key=lambda name: (-published.get(name, 0), name))[:_TOPICS]
    if not names:
        st.caption("Nothing was published in this range.")
        return
    found = pandas.DataFrame({"topic": names, "events": [published.get(name, 0) for name in names]})
    for column in ("attempts", "failed", "rate"):
        found[column] = [tried[column].get(name, 0) for name in names]
    shown = found.assign(topic=[f"{LINK} {name}" for name in names])
    config: dict[str, Any] = {
        "topic": st.column_config.ButtonColumn(
            "topic", type="tertiary", key="topic click", alignment="left", width=210
        ),
        "events": st.column_config.NumberColumn("events", format="localized", width=90),
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=90),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=110),
        "rate": st.column_config.NumberColumn("error rate", format="percent", width=90),
    }
    height: Any = "content" if len(shown) <= 12 else 420
    st.dataframe(shown, key="topics", hide_index=True, column_config=config, height=height)
    row = _clicked("topic click", found)
    if row is not None:
        _leave(frame, "Attempts", topic=row["topic"])


def latencies(window: Window) -> None:
    """How long after its event an attempt is made, and one succeeds."""
    st.subheader("Time from event to attempt", anchor=False)
    store = cached.store()
    later(("latencies", window), lambda: _measure(store, window), _latencies, words="Measuring…")


def _measure(store: LogStore, window: Window) -> list[Metrics]:
    asked = (Selection(where="attempt_number = 1 and manual = false"), Selection(status="success"))
    shape: dict[str, Any] = {"measures": ("count", *_QUANTILES)}
    return [measures.measured(store, "attempt", selection, window, **shape) for selection in asked]


def _latencies(found: Sequence[Metrics]) -> None:
    histogram.unread(tuple(dict.fromkeys(warning for part in found for warning in part.warnings)))
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


def _clicked(key: str, found: pandas.DataFrame) -> pandas.Series[Any] | None:
    click: Any = st.session_state.get(key)
    return found.iloc[click["row"]] if click is not None and click["row"] < len(found) else None


def _leave(frame: Frame, page: str, **only: str) -> None:
    names = {"tenant": "tenant_ids", "destination": "destination_ids", "topic": "topics"}
    pairs = [*frame.view.carried(), *((names.get(name, name), value) for name, value in only.items())]
    st.switch_page(frames.PAGES[page][0], query_params=grouped(pairs))
