"""Topics with how much was published and how many of its attempts failed; each leads to its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas
import streamlit as st

from logstore.metrics import Metrics
from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench import cached, histogram, signs
from logstore.workbench.background import later
from logstore.workbench.counts import measures, rankings
from logstore.workbench.frame import Frame
from logstore.workbench.ranking_table import leave, on_click
from logstore.workbench.record_table import LINK
from logstore.workbench.times import Window

_TOPICS = 50


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
    return _Topics(published, rankings.ranking(store, Selection(), window, by="topic"))


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
    click = on_click(
        "topic click", found, lambda row: leave("Attempts", [*frame.view.carried(), ("topics", row["topic"])])
    )
    config: dict[str, Any] = {
        "topic": st.column_config.ButtonColumn("topic", type="tertiary", alignment="left", width=210, **click),
        "events": st.column_config.NumberColumn("events", format="localized", width=90),
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=90),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=110),
        "rate": st.column_config.NumberColumn("error rate", width=90),
    }
    height: Any = "content" if len(shown) <= 12 else 420
    st.dataframe(signs.percent(shown, "rate"), key="topics", hide_index=True, column_config=config, height=height)
    if len(names) > len(found):
        st.caption(f"The {len(found)} topics with most events, of {len(names):,}.")
