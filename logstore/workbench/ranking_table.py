"""Tenants and destinations in a table, most failures first, each with its error rate over time, and ids that lead on.

What is clicked is the row as it was drawn: by the time that the page runs again, its counts may be in another order, or not
be there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pandas
import streamlit as st

from logstore.workbench import signs, times, url
from logstore.workbench.charts import BAD
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import PAGES
from logstore.workbench.record_table import LINK
from logstore.workbench.view import Pairs, grouped

Follow = Callable[["pandas.Series[Any]"], None]
_NEVER = "none in the range"
_HEADINGS = {"tenant_id": "tenant", "destination_id": "destination"}


def ranking(
    frame: Frame,
    ranked: pandas.DataFrame,
    *,
    key: str,
    follow: Follow,
    to_tenant: Follow | None = None,
    trends: Sequence[Sequence[float | None]] = (),
    width: str = "",
) -> None:
    """The table; `follow` is called with the row whose id was clicked, before the page runs.

    In a ranking of destinations `to_tenant` is called for a click on the tenant, should that lead anywhere. `trends` are
    the error rates of the first rows, a point per `width`; a stretch without attempts is drawn as no errors.
    """
    ids = [name for name in _HEADINGS if name in ranked]
    follows = {ids[-1]: follow} | ({ids[0]: to_tenant} if to_tenant is not None and len(ids) > 1 else {})
    shown = ranked[[*ids, "failed", "rate", "attempts", "codes"]].copy()
    if trends:
        lines = [[rate or 0.0 for rate in line] for line in trends]
        shown.insert(len(ids) + 2, "trend", [*lines, *[[]] * (len(shown) - len(lines))])
    for column, status in (("last_success", "success"), ("last_failure", "failed")):
        pairs = zip(ranked[column], ranked["unread"], strict=True)
        shown[column] = [_when(frame, time, "unknown" if status in unread else _NEVER) for time, unread in pairs]
    config: dict[str, Any] = {name: st.column_config.TextColumn(_HEADINGS[name], width=120) for name in ids}
    for name, act in follows.items():
        shown[name] = [f"{LINK} {id_}" for id_ in shown[name]]
        config[name] = st.column_config.ButtonColumn(
            _HEADINGS[name],
            type="tertiary",
            alignment="left",
            width=220 if name == ids[-1] else 130,
            **on_click(f"{key} {name}", ranked, act),
        )
    config |= {
        "attempts": st.column_config.NumberColumn("attempts", format="localized", width=80),
        "failed": st.column_config.NumberColumn("failed attempts", format="localized", width=100),
        "rate": st.column_config.NumberColumn("error rate", width=80),
        "trend": st.column_config.LineChartColumn(
            "error rate over time", y_min=0.0, y_max=1.0, color=BAD, width=125, help=f"a point per {in_words(width)}"
        ),
        "codes": st.column_config.TextColumn("codes of failures", width=145 if trends and len(ids) > 1 else 190),
        "last_success": st.column_config.TextColumn("last success", width=110),
        "last_failure": st.column_config.TextColumn("last failure", width=110),
    }
    st.dataframe(
        signs.percent(shown, "rate"),
        key=key,
        hide_index=True,
        column_config=config,
        height="content" if len(shown) <= 12 else 420,
    )


def on_click(key: str, drawn: pandas.DataFrame, follow: Follow) -> dict[str, Any]:
    """What a column of buttons needs, so that a click follows the row that was drawn there."""
    return {"key": key, "on_click": _clicked, "args": (key, drawn, follow)}


def _clicked(key: str, drawn: pandas.DataFrame, follow: Follow) -> None:
    click: Any = st.session_state.get(key)
    if click is not None and click["row"] < len(drawn):
        follow(drawn.iloc[click["row"]])


def leave(page: str, pairs: Pairs) -> None:
    """Go to another page; for callbacks. The page that runs next calls `left` first, and goes."""
    st.session_state["leave"] = (page, grouped(pairs))
    url.change(lambda view: view)  # from inside a fragment, the whole page has to run


def left() -> None:
    """Go where the last click leads, if it leads away."""
    page, params = st.session_state.pop("leave", (None, None))
    if page is not None:
        st.switch_page(PAGES[page][0], query_params=params)


def _when(frame: Frame, time: datetime | None, never: str) -> str:
    return never if time is None or pandas.isna(time) else times.ago(time, frame.now)


def in_words(width: str) -> str:
    """A granularity in words: `6h` is “6 hours”."""
    units = {"m": "minute", "h": "hour", "d": "day", "w": "week", "M": "month"}
    number, unit = width[:-1], units.get(width[-1:], "bucket")
    return f"1 {unit}" if number in ("", "1") else f"{number} {unit}s"
