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


def look(height: int) -> dict[str, Any]:
    """The one look that all pictures share, on top of the theme. Given at once it is checked once, which takes a while."""
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": None, "traceorder": "normal"},
        "hoverlabel": {"namelength": -1},
        "bargap": 0.08,
        "font": {"size": 13},
        "xaxis": {"title": None, "automargin": True},
        "yaxis": {"title": None, "automargin": True, "rangemode": "tozero"},
    }


def dressed(figure: Any, *, height: int) -> Any:
    """A figure in that look."""
    return figure.update_layout(look(height))


def bars(frame: pandas.DataFrame, *, zone: tzinfo, noun: str) -> Any:
    """Counts over time, stacked by outcome; the box that is drawn on it selects a stretch of time."""
    width: timedelta = frame.attrs["width"]
    note = f"; {frame.attrs['note']}" if "note" in frame.attrs else ""
    traces = []
    for outcome, part in frame.groupby("outcome", sort=False):
        colour, pattern = _LOOK[str(outcome)]
        traces.append(
            bar(
                x=walls(part["start"], zone),
                y=part["count"],
                name=f"{outcome} ({part['count'].sum():,} {noun}{note})",
                colour=colour,
                pattern=pattern,
                width=width.total_seconds() * 1000 * 0.92,
                hovertemplate=f"%{{x|%a %d %b %H:%M:%S}}<br>%{{y:,}} {noun}<extra>{outcome}</extra>",
            )
        )
    first, last = frame["start"].min(), frame["start"].max() + width
    layout = stacked(frame, height=210, span=(wall(first, zone), wall(last, zone)))
    return go.Figure(traces, {**layout, "dragmode": "select", "selectdirection": "h"})


def bar(*, x: Any, y: Any, colour: str, pattern: str, **more: Any) -> dict[str, Any]:
    """One part of stacked bars; parts differ by pattern as well as by colour."""
    marker = {"color": colour, "pattern": {"shape": pattern, "size": 5, "solidity": 0.5}, "line": {"width": 0}}
    return {"type": "bar", "x": list(x), "y": list(y), "marker": marker, "offset": 0, **more}


def stacked(frame: pandas.DataFrame, *, height: int, span: tuple[datetime, datetime]) -> dict[str, Any]:
    """The layout of stacked bars over time."""
    layout = look(height) | {"barmode": "stack", "hovermode": "closest"}
    most = int(frame.groupby("start")["count"].sum().max())
    # Left alone, plotly divides a whole attempt into halves.
    steps = {"dtick": 1, "range": [0, max(most, 1)]} if most < 4 else {"nticks": 4}
    layout["xaxis"] |= {"type": "date", "range": list(span)}
    layout["yaxis"] |= {"tickformat": ",d", **steps}
    return layout


def walls(starts: pandas.Series[Any], zone: tzinfo) -> list[datetime]:
    """Times on the zone's clock, without the zone: plotly knows none."""
    return [start.to_pydatetime() for start in starts.dt.tz_convert(zone).dt.tz_localize(None)]


def wall(time: datetime, zone: tzinfo) -> datetime:
    """One such time."""
    return pandas.Timestamp(time).tz_convert(zone).tz_localize(None).to_pydatetime()
