"""Tenants and destinations in a table, most failures first, with ids that lead on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas
import streamlit as st

from logstore.workbench import times
from logstore.workbench.frame import Frame
from logstore.workbench.tables import LINK

_HEADINGS = {"tenant_id": "tenant", "destination_id": "destination"}


def ranking(frame: Frame, ranked: pandas.DataFrame, *, key: str, follow: Callable[[pandas.Series[Any]], None]) -> None:
    """The table; `follow` is called with the row whose tenant or destination was clicked."""
    ids = [name for name in _HEADINGS if name in ranked]
    leading = ids[-1]
    shown = ranked[[*ids, "failed", "rate", "attempts", "codes"]].copy()
    shown["last_success"] = [_when(frame, time, "none in the range") for time in ranked["last_success"]]
    shown["last_failure"] = [_when(frame, time, "none in the range") for time in ranked["last_failure"]]
    shown[leading] = [f"{LINK} {name}" for name in shown[leading]]
    config: dict[str, Any] = {name: st.column_config.TextColumn(_HEADINGS[name], width=140) for name in ids}
    config[leading] = st.column_config.ButtonColumn(
        _HEADINGS[leading], type="tertiary", key=f"{key} click", alignment="left", width=250
    )
    config |= {
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=90),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=120),
        "rate": st.column_config.NumberColumn("error rate", format="percent", width=90),
        "codes": st.column_config.TextColumn("codes of failures", width=280),
        "last_success": st.column_config.TextColumn("last success", width=130),
        "last_failure": st.column_config.TextColumn("last failure", width=130),
    }
    st.dataframe(shown, key=key, hide_index=True, column_config=config, height="content" if len(shown) <= 12 else 420)
    click = st.session_state.get(f"{key} click")
    if click is not None and click["row"] < len(ranked):
        follow(ranked.iloc[click["row"]])


def _when(frame: Frame, time: datetime | None, never: str) -> str:
    return never if time is None or pandas.isna(time) else times.ago(time, frame.now)
