"""Pictures: functions of data that return a plotly figure; Streamlit's theme gives fonts and lines, light or dark.

Colour is never the only sign: outcomes also differ by pattern or marker, and every legend is in words.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Any

import pandas
import plotly.graph_objects as go

GOOD, BAD, NONE = "#2f9e77", "#dc5349", "#8a94a6"
_LOOK = {
    "success": (GOOD, ""),
    "delivered": (GOOD, ""),
    "failed": (BAD, "/"),
    "not delivered": (BAD, "/"),
    "never attempted": (NONE, "x"),
    "published": (NONE, ""),
}
CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False}


def dressed(figure: Any, *, height: int) -> Any:
    """The one look that all pictures share, on top of the theme."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": None, "traceorder": "normal"},
        hoverlabel={"namelength": -1},
        bargap=0.08,
        font={"size": 13},
    )
    figure.update_xaxes(title=None, automargin=True)
    figure.update_yaxes(title=None, automargin=True, rangemode="tozero")
    return figure


def bars(frame: pandas.DataFrame, *, zone: tzinfo, noun: str) -> Any:
    """Counts over time, stacked by outcome; the box that is drawn on it selects a stretch of time."""
    width: timedelta = frame.attrs["width"]
    note = f"; {frame.attrs['note']}" if "note" in frame.attrs else ""
    figure = go.Figure()
    for outcome, part in frame.groupby("outcome", sort=False):
        colour, pattern = _LOOK[str(outcome)]
        starts = [wall(start, zone) for start in part["start"]]
        figure.add_bar(
            x=starts,
            y=part["count"],
            name=f"{outcome} ({part['count'].sum():,} {noun}{note})",
            marker={"color": colour, "pattern": {"shape": pattern, "size": 5, "solidity": 0.5}, "line": {"width": 0}},
            offset=0,
            width=width.total_seconds() * 1000 * 0.92,
            hovertemplate=f"%{{x|%a %d %b %H:%M:%S}}<br>%{{y:,}} {noun}<extra>{outcome}</extra>",
        )
    figure.update_layout(barmode="stack", dragmode="select", selectdirection="h", hovermode="closest")
    dressed(figure, height=210)
    first, last = frame["start"].min(), frame["start"].max() + width
    figure.update_xaxes(range=[wall(first, zone), wall(last, zone)], type="date")
    most = int(frame.groupby("start")["count"].sum().max())
    # Left alone, plotly divides a whole attempt into halves.
    figure.update_yaxes(tickformat=",d", **({"dtick": 1, "range": [0, max(most, 1)]} if most < 4 else {"nticks": 4}))
    return figure


def wall(time: datetime, zone: tzinfo) -> datetime:
    """The time on the zone's clock, without the zone: plotly knows none."""
    return pandas.Timestamp(time).tz_convert(zone).tz_localize(None).to_pydatetime()
