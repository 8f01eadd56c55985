"""What the range is made of: failures in groups, topics, and how long deliveries take; each row leads to its attempts.

Everything is counted beside the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pandas
import streamlit as st

from logstore.metrics import Metrics
from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench import cached, failures, histogram, measures, params, times
from logstore.workbench import frame as frames
from logstore.workbench.charts import BAD
from logstore.workbench.frame import Frame
from logstore.workbench.later import later
from logstore.workbench.measures import Many
from logstore.workbench.rankings import leave, on_click
from logstore.workbench.tables import LINK
from logstore.workbench.times import Window

_GROUPS, _TOPICS = 10, 50
_FAILED = Selection(status="failed")
_QUANTILES = ("latency_p50", "latency_p95", "latency_p99")


def everything() -> bool:
    """Whether the URL asks to read every record, however many there are."""
    return params.one("everything") == "1"


def offer(many: Many, noun: str) -> None:
    """What would have to read very many records is read when somebody asks."""
    st.caption(f"That means to read {many.records:,} {noun}, which takes a while.")
    st.button("Read them all", key=f"read {noun}", icon=":material/hourglass_top:", on_click=_read_everything)


def _read_everything() -> None:
    params.put(everything="1")
    frames.change(lambda view: view)  # also from inside a fragment the whole page runs


def failures_of(frame: Frame, window: Window) -> None:
    """Failed attempts by destination, code and message."""
    st.subheader("Why attempts fail", anchor=False)
    store, all_ = cached.store(), everything()
    count = lambda: failures.groups(store, window, most=_GROUPS)  # noqa: E731 - an argument
    later(
        ("failures", window, all_),
        lambda: measures.unless_many(store, "attempt", _FAILED, window, count, everything=all_),
        lambda found: _groups(frame, found),
        words="Grouping the failures…",
    )


def _groups(frame: Frame, found: pandas.DataFrame | Many) -> None:
    if isinstance(found, Many):
        offer(found, "failed attempts")
        return
    histogram.unread(found.attrs["warnings"])
    if found.empty:
        st.caption("No failed attempts in this range.")
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
    click = on_click("group click", found, lambda row: _to_group(frame, row))
    config: dict[str, Any] = {
        "message": st.column_config.ButtonColumn(
            "what the answer said", type="tertiary", alignment="left", width=215, **click
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
    if found.attrs["cut"]:
        st.caption(f"More than {failures.MOST:,} different answers: groups of rare ones are not added up to the end.")


def _to_group(frame: Frame, row: Any) -> None:
    only = {"tenant_ids": row["tenant_id"], "destination_ids": row["destination_id"]}
    _leave(frame, **only, status="failed", where=row["where"])


@dataclass(frozen=True, slots=True)
class _Topics:
    published: Metrics
    tried: pandas.DataFrame


def topics(frame: Frame, window: Window) -> None:
    """Topics with how much was published and how many of its attempts failed."""
    st.subheader("Topics", anchor=False)
    store = cached.store()
    later(
        ("topics", window),
        lambda: _count_topics(store, window),
        lambda found: _topics(frame, found),
        words="Counting the topics…",
    )


def _count_topics(store: LogStore, window: Window) -> _Topics:
    published = measures.measured(store, "event", Selection(), window, dimensions=("topic",))
    return _Topics(published, measures.ranking(store, Selection(), window, by="topic"))


def _topics(frame: Frame, counted: _Topics) -> None:
    published = {row["topic"]: row["count"] for row in counted.published}
    tried = counted.tried.set_index("topic")
    histogram.unread((*counted.published.warnings, *counted.tried.attrs["warnings"]))
    names = sorted({*published, *tried.index}, key=lambda name: (-published.get(name, 0), name))
    if not names:
        st.caption("Nothing was published in this range.")
        return
    found = pandas.DataFrame({"topic": names, "events": [published.get(name, 0) for name in names]}).head(_TOPICS)
    for column in ("attempts", "failed", "rate"):
        found[column] = [tried[column].get(name, 0) for name in found["topic"]]
    shown = found.assign(topic=[f"{LINK} {name}" for name in found["topic"]])
    click = on_click("topic click", found, lambda row: _leave(frame, topics=row["topic"]))
    config: dict[str, Any] = {
        "topic": st.column_config.ButtonColumn("topic", type="tertiary", alignment="left", width=210, **click),
        "events": st.column_config.NumberColumn("events", format="localized", width=90),
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=90),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=110),
        "rate": st.column_config.NumberColumn("error rate", format="percent", width=90),
    }
    height: Any = "content" if len(shown) <= 12 else 420
    st.dataframe(shown, key="topics", hide_index=True, column_config=config, height=height)
    if len(names) > len(found):
        st.caption(f"The {len(found)} topics with most events, of {len(names):,}.")


def latencies(window: Window) -> None:
    """How long after its event an attempt is made, and one succeeds."""
    st.subheader("Time from event to attempt", anchor=False)
    store, all_ = cached.store(), everything()
    measure = lambda: _measure(store, window)  # noqa: E731 - an argument
    later(
        ("latencies", window, all_),
        lambda: measures.unless_many(store, "attempt", Selection(), window, measure, everything=all_),
        _latencies,
        words="Measuring…",
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


def _leave(frame: Frame, **only: str) -> None:
    leave("Attempts", [*frame.view.carried(), *only.items()])
