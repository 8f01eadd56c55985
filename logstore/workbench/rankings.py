"""Tenants and destinations in a table, most failures first, each with its error rate over time, and ids that lead on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pandas
import streamlit as st

from logstore.workbench import times
from logstore.workbench.charts import BAD
from logstore.workbench.frame import Frame
from logstore.workbench.tables import LINK

_HEADINGS = {"tenant_id": "tenant", "destination_id": "destination"}


def ranking(
    frame: Frame,
    ranked: pandas.DataFrame,
    *,
    key: str,
    follow: Callable[[pandas.Series[Any]], None],
    trends: Sequence[Sequence[float | None]] = (),
    width: str = "",
) -> None:
    """The table; `follow` is called with the row whose tenant or destination was clicked.

    `trends` are the error rates of the first rows, a point per `width`; a stretch without attempts is drawn as no errors.
    """
    ids = [name for name in _HEADINGS if name in ranked]
    leading = ids[-1]
    shown = ranked[[*ids, "failed", "rate", "attempts", "codes"]].copy()
    if trends:
        lines = [[rate or 0.0 for rate in line] for line in trends]
        shown.insert(len(ids) + 2, "trend", [*lines, *[[]] * (len(shown) - len(lines))])
    shown["last_success"] = [_when(frame, time, "none in the range") for time in ranked["last_success"]]
    shown["last_failure"] = [_when(frame, time, "none in the range") for time in ranked["last_failure"]]
    shown[leading] = [f"{LINK} {name}" for name in shown[leading]]
    config: dict[str, Any] = {name: st.column_config.TextColumn(_HEADINGS[name], width=120) for name in ids}
    config[leading] = st.column_config.ButtonColumn(
        _HEADINGS[leading], type="tertiary", key=f"{key} click", alignment="left", width=220
    )
    config |= {
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=80),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=105),
        "rate": st.column_config.NumberColumn("error rate", format="percent", width=80),
        "trend": st.column_config.LineChartColumn(
            "error rate over time", y_min=0.0, y_max=1.0, color=BAD, width=125, help=f"a point per {in_words(width)}"
        ),
        "codes": st.column_config.TextColumn("codes of failures", width=190),
        "last_success": st.column_config.TextColumn("last success", width=110),
        "last_failure": st.column_config.TextColumn("last failure", width=110),
    }
    st.dataframe(shown, key=key, hide_index=True, column_config=config, height="content" if len(shown) <= 12 else 420)
    click = st.session_state.get(f"{key} click")
    if click is not None and click["row"] < len(ranked):
        follow(ranked.iloc[click["row"]])


def _when(frame: Frame, time: datetime | None, never: str) -> str:
    return never if time is None or pandas.isna(time) else times.ago(time, frame.now)


def in_words(width: str) -> str:
    """A granularity in words: `6h` is “6 hours”."""
    units = {"m": "minute", "h": "hour", "d": "day", "w": "week", "M": "month"}
    number, unit = width[:-1], units.get(width[-1:], "bucket")
    return f"1 {unit}" if number in ("", "1") else f"{number} {unit}s"
