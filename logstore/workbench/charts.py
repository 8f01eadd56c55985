"""Pictures: functions of data that return a plotly figure; Streamlit's theme gives fonts and lines, light or dark.

Colour is never the only sign: outcomes also differ by pattern or marker, and every legend is in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from math import log10
from typing import Any

import pandas
import plotly.graph_objects as go

from logstore.records import Event
from logstore.workbench import deliveries, times
from logstore.workbench.texts import label

GOOD, BAD, NONE = "#2f9e77", "#dc5349", "#8a94a6"
_LOOK = {
    "success": (GOOD, ""),
    "delivered": (GOOD, ""),
    "failed": (BAD, "/"),
    "not delivered": (BAD, "/"),
    "never attempted": (NONE, "x"),
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
    figure = go.Figure()
    for outcome, part in frame.groupby("outcome", sort=False):
        colour, pattern = _LOOK[str(outcome)]
        starts = [wall(start, zone) for start in part["start"]]
        figure.add_bar(
            x=starts,
            y=part["count"],
            name=f"{outcome} ({part['count'].sum():,} {noun})",
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


def timeline(event: Event, found: Sequence[deliveries.Delivery], *, zone: tzinfo) -> Any:
    """Every attempt of an event, a line per destination, by the time since the event.

    The axis is logarithmic, because retries follow after seconds, minutes and hours.
    """
    figure = go.Figure()
    rows = [label(delivery.destination_id) for delivery in found]
    marks = [("success", "circle", GOOD), ("failed", "x", BAD)]
    for delivery, row in zip(found, rows, strict=True):
        after = [_seconds(event, attempt.time) for attempt in delivery.attempts]
        line = {"color": NONE, "width": 1, "dash": "dot"}
        figure.add_scatter(x=after, y=[row] * len(after), mode="lines", line=line, hoverinfo="skip", showlegend=False)
    for status, symbol, colour in marks:
        points = [
            (_seconds(event, attempt.time), row, attempt)
            for delivery, row in zip(found, rows, strict=True)
            for attempt in delivery.attempts
            if attempt.status == status
        ]
        figure.add_scatter(
            x=[x for x, _, _ in points],
            y=[y for _, y, _ in points],
            mode="markers+text",
            name=f"{status} ({len(points)})",
            text=[label(attempt.code or "?", 12) for _, _, attempt in points],
            textposition="top center",
            marker={
                "symbol": [f"{symbol}-open" if a.manual and symbol == "circle" else symbol for _, _, a in points],
                "size": 13,
                "color": colour,
                "line": {"width": 2, "color": colour},
            },
            hovertext=[_said(event, attempt, zone) for _, _, attempt in points],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    dressed(figure, height=120 + 62 * len(rows))
    _log_axis(figure, [_seconds(event, a.time) for delivery in found for a in delivery.attempts])
    figure.update_yaxes(categoryorder="array", categoryarray=rows[::-1], range=[-0.6, len(rows) - 0.3], type="category")
    return figure


_TICKS = {0.1: "100 ms", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21600: "6 h", 86400: "1 day"}
_TICKS |= {604800.0: "1 week", 2592000.0: "30 days", 31536000.0: "1 year"}


def _log_axis(figure: Any, seconds: Sequence[float]) -> None:
    low, high = min(seconds, default=0.1), max(seconds, default=86400)
    figure.update_xaxes(
        type="log",
        range=[log10(low / 2), log10(high * 2.5)],
        tickvals=list(_TICKS),
        ticktext=[f"+{text}" for text in _TICKS.values()],
        minor={"ticks": ""},
    )


def _seconds(event: Event, time: datetime) -> float:
    # Clocks differ: an attempt before its event stands at the left edge.
    return max((time - event.time).total_seconds(), 0.05)


def _said(event: Event, attempt: Any, zone: tzinfo) -> str:
    by = " by hand" if attempt.manual else ""
    lines = (
        f"Attempt {attempt.attempt_number}{by}: {attempt.status}, {label(attempt.code or 'no code')}",
        f"{times.show(attempt.time, zone)}, {times.span(attempt.time - event.time)} after the event",
        label(deliveries.message(attempt.response_data), 100),
    )
    return "<br>".join(line for line in lines if line)
