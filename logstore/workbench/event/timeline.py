"""The attempts of an event in one picture: a line per destination, over a time axis whose idle gaps are compressed.

Retries follow after seconds, minutes, hours and days. Between two moments at which anything happened the axis is as wide as
the logarithm of the gap, and a gap in which a reader would wait says how long it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from math import log2
from typing import Any

import plotly.graph_objects as go

from logstore.records import Attempt, Event
from logstore.workbench import deliveries, times
from logstore.workbench.charts import BAD, GOOD, NONE, dressed
from logstore.workbench.texts import label

IDLE = timedelta(seconds=10)
_NAMED_MOST = 9  # gaps that have room for words
_UNIT = 0.25  # seconds; shorter gaps are drawn almost to scale
_LENGTH_LEAST = 6.0  # of the axis: an attempt that followed at once stands beside its event
_CLOCKS_MOST = 5  # ticks that have room for the time on the clock as well

_THIN = {"color": NONE, "width": 1}


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of the axis in which nothing happened."""

    left: float
    right: float
    duration: timedelta


@dataclass(frozen=True, slots=True)
class Axis:
    """Where each moment stands, and the gaps that are compressed."""

    places: dict[datetime, float]
    gaps: tuple[Gap, ...]

    @property
    def length(self) -> float:
        return max(self.places.values(), default=0.0)

    def starts(self) -> list[datetime]:
        """The first moment after each gap, and the very first (and the last, where there is no gap): what the axis names."""
        rights = {0.0, *(gap.right for gap in self.gaps), *([] if self.gaps else [self.length])}
        return [moment for moment, place in self.places.items() if place in rights]


def axis(moments: Iterable[datetime]) -> Axis:
    """The axis of these moments, in their order; equal ones share a place."""
    ordered = sorted(set(moments))
    places, gaps, place = {moment: 0.0 for moment in ordered[:1]}, [], 0.0
    for before, after in pairwise(ordered):
        right = place + log2(1 + (after - before).total_seconds() / _UNIT)
        if after - before >= IDLE:
            gaps.append(Gap(place, right, after - before))
        places[after] = place = right
    return Axis(places, tuple(gaps))


def timeline(event: Event, found: Sequence[deliveries.Delivery], *, zone: tzinfo) -> Any:
    """Every attempt of an event, a line per destination."""
    known = axis([event.time, *(attempt.time for delivery in found for attempt in delivery.attempts)])
    figure = go.Figure()
    rows = range(len(found) - 1, -1, -1)  # the first on top; numbers, because labels that are cut may be the same
    _paths(figure, event, found, rows, known)
    for status, symbol, colour in (("success", "circle", GOOD), ("failed", "x", BAD)):
        points = [
            (known.places[attempt.time], row, attempt)
            for delivery, row in zip(found, rows, strict=True)
            for attempt in delivery.attempts
            if attempt.status == status
        ]
        if points:
            _marks(figure, event, points, name=status, symbol=symbol, colour=colour, zone=zone)
    dressed(figure, height=150 + 52 * len(rows))
    _gaps(figure, event, known)
    _ticks(figure, event, known, zone)
    names = [label(delivery.destination_id) for delivery in found]
    figure.update_yaxes(type="linear", tickvals=list(rows), ticktext=names, range=[-0.85, len(rows) - 0.35])
    figure.update_yaxes(showgrid=False, zeroline=False)
    figure.update_layout(dragmode=False, margin_r=44)  # room for the last tick's words
    return figure


def _paths(figure: Any, event: Event, found: Sequence[deliveries.Delivery], rows: Sequence[int], known: Axis) -> None:
    for delivery, row in zip(found, rows, strict=True):
        across = [known.places[attempt.time] for attempt in delivery.attempts]
        across = [known.places[event.time], *across]
        line = {**_THIN, "dash": "dot"}
        figure.add_scatter(x=across, y=[row] * len(across), mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _marks(
    figure: Any,
    event: Event,
    points: Sequence[tuple[float, int, Attempt]],
    *,
    name: str,
    symbol: str,
    colour: str,
    zone: tzinfo,
) -> None:
    figure.add_scatter(
        x=[x for x, _, _ in points],
        y=[y for _, y, _ in points],
        mode="markers+text",
        name=f"{name} ({len(points)})",
        text=[label(attempt.code or "?", 12) for _, _, attempt in points],
        textposition="top center",
        cliponaxis=False,
        marker={
            "symbol": [f"{symbol}-open" if a.manual and symbol == "circle" else symbol for _, _, a in points],
            "size": 13,
            "color": colour,
            "line": {"width": 2, "color": colour},
        },
        hovertext=[_said(event, attempt, zone) for _, _, attempt in points],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _gaps(figure: Any, event: Event, known: Axis) -> None:
    """A band for each gap with its words below the marks, and a line where the event stands.

    All at once: plotly checks everything that is there again for each shape that is added.
    """
    across = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "fillcolor": NONE, "layer": "below"}
    inset = known.length / 250
    shapes: list[dict[str, Any]] = [
        {**across, "x0": gap.left + inset, "x1": gap.right - inset, "opacity": 0.13, "line": {"width": 0}}
        for gap in known.gaps
    ]
    place = known.places[event.time]
    shapes.append({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": place, "x1": place, "line": _THIN})
    named = known.gaps if len(known.gaps) <= _NAMED_MOST else ()
    below = {"y": 0, "yref": "paper", "yanchor": "bottom", "showarrow": False, "font": {"size": 11}, "opacity": 0.8}
    notes = [{**below, "x": (gap.left + gap.right) / 2, "text": f"{times.span(gap.duration)}<br>idle"} for gap in named]
    figure.update_layout(shapes=shapes, annotations=notes)


def _ticks(figure: Any, event: Event, known: Axis, zone: tzinfo) -> None:
    """The start of every busy stretch: how long after the event, and the time on the clock."""
    starts = [event.time, *(start for start in known.starts() if start != event.time)]
    named = starts if len(starts) <= _NAMED_MOST + 1 else starts[:1] + starts[-1:]
    length = max(known.length, _LENGTH_LEAST)
    margin = length * 0.035
    clocks = {*named[:1], *named[-1:]} if len(named) > _CLOCKS_MOST else {*named}
    figure.update_xaxes(
        type="linear",
        range=[-margin, length + margin],
        tickvals=[known.places[start] for start in named],
        ticktext=[_after(event, start) + _clock(start, zone) * (start in clocks) for start in named],
        tickangle=0,
        tickfont={"size": 11},
        showgrid=False,
        zeroline=False,
        ticks="outside",
    )


def _clock(moment: datetime, zone: tzinfo) -> str:
    return f"<br>{moment.astimezone(zone):%d %b %H:%M}"


def _after(event: Event, moment: datetime) -> str:
    if moment == event.time:
        return "event"
    return f"{'+' if moment > event.time else '−'}{times.span(moment - event.time)}"


def _said(event: Event, attempt: Attempt, zone: tzinfo) -> str:
    by = " by hand" if attempt.manual else ""
    side = "after" if attempt.time >= event.time else "before"
    lines = (
        f"Attempt {attempt.attempt_number}{by}: {attempt.status}, {label(attempt.code or 'no code')}",
        f"{times.show(attempt.time, zone)}, {times.span(attempt.time - event.time)} {side} the event",
        label(deliveries.message(attempt.response_data), 100),
    )
    return "<br>".join(line for line in lines if line)
