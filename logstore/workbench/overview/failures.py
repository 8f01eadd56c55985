"""Why attempts fail: the failures of a range in groups; each row leads to its attempts."""

from __future__ import annotations

from typing import Any

import pandas
import streamlit as st

from logstore.records import Selection
from logstore.workbench import cached, histogram, times
from logstore.workbench.background import later
from logstore.workbench.charts import BAD
from logstore.workbench.counts import measures
from logstore.workbench.counts.measures import Many
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import destinations_of
from logstore.workbench.overview import failure_groups
from logstore.workbench.overview.many_records import limit, offer
from logstore.workbench.ranking_table import Follow, leave, on_click
from logstore.workbench.record_table import LINK
from logstore.workbench.times import Window

_GROUPS = 10
_FAILED = Selection(status="failed")


def failures_of(frame: Frame, window: Window) -> None:
    """Failed attempts by destination, code and message."""
    st.subheader("Why attempts fail", anchor=False)
    store, all_ = cached.store(), frame.view.everything
    count = lambda: failure_groups.groups(store, window, most=_GROUPS)  # noqa: E731 - an argument
    later(
        ("failures", window, all_),
        lambda: measures.unless_many(store, "attempt", _FAILED, window, count, everything=all_),
        lambda found: _groups(frame, found),
        words="Grouping the failures…",
        seconds=limit(frame),
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
            "destination": [f"{LINK} {id_}" for id_ in found["destination_id"]],
            "tenant": [f"{LINK} {id_}" for id_ in found["tenant_id"]],
            "first": [times.ago(time, frame.now) for time in found["first"]],
            "last": [times.ago(time, frame.now) for time in found["last"]],
        }
    )

    def leading(heading: str, width: int, follow: Follow) -> Any:
        click = on_click(f"group {heading}", found, follow)
        return st.column_config.ButtonColumn(heading, type="tertiary", alignment="left", width=width, **click)

    config: dict[str, Any] = {
        "message": leading("what the answer said", 215, lambda row: _to_group(frame, row)),
        "code": st.column_config.TextColumn("code", width=95),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=105),
        "trend": st.column_config.BarChartColumn("over the range", y_min=0, color=BAD, width=125),
        "destination": leading("destination", 235, lambda row: _to_destination(frame, row)),
        "tenant": leading("tenant", 135, lambda row: _to_tenant(frame, row)),
        "first": st.column_config.TextColumn("first seen", width=95, help="in this range"),
        "last": st.column_config.TextColumn("last seen", width=95),
    }
    st.dataframe(shown, key="groups", hide_index=True, column_config=config, height="content")
    if found.attrs["groups"] > len(found):
        st.caption(f"The {len(found)} largest of {found.attrs['groups']:,} groups of destination, code and message.")
    if found.attrs["cut"]:
        st.caption(
            f"More than {failure_groups.MOST:,} different answers: groups of rare ones are not added up to the end."
        )


def _to_group(frame: Frame, row: Any) -> None:
    of = destinations_of(frame.view, row["tenant_id"], row["destination_id"])
    leave("Attempts", [*of, ("status", "failed"), ("where", row["where"])])


def _to_destination(frame: Frame, row: Any) -> None:
    leave("Destinations", destinations_of(frame.view, row["tenant_id"], row["destination_id"]))


def _to_tenant(frame: Frame, row: Any) -> None:
    leave("Destinations", destinations_of(frame.view, row["tenant_id"]))
