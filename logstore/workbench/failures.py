"""Failures in groups: which destination, code and message, since when, and is it getting better? Over both tiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pandas
import psycopg

from logstore import cold, deadline, segments
from logstore.records import from_micros, to_micros
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tiers import Map, stretches
from logstore.workbench import deliveries
from logstore.workbench.times import Window

POINTS = 20  # of a trend
_MOST = 5000  # answers that differ; what is rarer than these is left out of a table of a few rows
COLUMNS = ("tenant_id", "destination_id", "code", "message", "failed", "first", "last", "trend")


@dataclass(slots=True)
class _Group:
    first: datetime
    last: datetime
    trend: list[int] = field(default_factory=lambda: [0] * POINTS)


def groups(store: LogStore, window: Window, *, most: int) -> pandas.DataFrame:
    """Failed attempts by tenant, destination, code and message, the largest first; `attrs` name what could not be read."""
    found: dict[tuple[Any, ...], _Group] = {}
    rows, warnings = store.tiers.steadily(lambda connection, known: _read(store, window, connection, known))
    for place, tenant, destination, code, said, number, first, last in rows:
        key = (tenant, destination, code, deliveries.message(said))
        group = found.setdefault(key, _Group(first, last))
        group.first, group.last = min(group.first, first), max(group.last, last)
        group.trend[min(max(int(place), 0), POINTS - 1)] += number
    table = [(*key, sum(group.trend), group.first, group.last, group.trend) for key, group in found.items()]
    table.sort(key=lambda row: (-row[4], row[0], row[1], row[2] or "", row[3]))
    frame = pandas.DataFrame(table[:most], columns=list(COLUMNS))
    frame.attrs |= {"warnings": tuple(warnings), "groups": len(table)}
    return frame


def _read(
    store: LogStore, window: Window, connection: psycopg.Connection[Any], known: Map
) -> tuple[list[Any], list[str]]:
    rows: list[Any] = []
    warnings: list[str] = []
    width = window.span / POINTS
    for stretch in stretches(known.states, "attempts"):
        lower, upper = (
            max(stretch.lower or window.lower, window.lower),
            min(stretch.upper or window.upper, window.upper),
        )
        if lower >= upper:
            continue
        if not stretch.months:
            asked = {"lower": lower, "upper": upper, "origin": window.lower, "width": width.total_seconds()}
            with deadline.limited(connection):
                statement = statements("postgres", "workbench")["failure_groups"]
                rows += connection.execute(statement, {**asked, "most": _MOST}).fetchall()
        for segment in known.listed("attempts", stretch.months):
            if segment.min_time and segment.max_time and segment.min_time < upper and segment.max_time >= lower:
                _add_segment(store, segment, (window.lower, width, lower, upper), rows, warnings)
    return rows, warnings


def _add_segment(
    store: LogStore,
    segment: segments.Segment,
    span: tuple[datetime, timedelta, datetime, datetime],
    rows: list[Any],
    warnings: list[str],
) -> None:
    if segment.state != "sealed":
        warnings.append(cold.hole(segment))
        return
    origin, width, lower, upper = span
    path, cursor = str(segment.path(store.settings.archive)), segments.engine()
    values = [to_micros(origin), max(width // timedelta(microseconds=1), 1), path, to_micros(lower), to_micros(upper)]
    try:
        with deadline.interrupted(cursor):
            found = cursor.execute(statements("duckdb", "workbench")["failure_groups"], values).fetchall()
    except cold.UNREADABLE as error:
        warnings.append(cold.hole(segment, error))
        return
    rows += [(*row[:6], from_micros(row[6]), from_micros(row[7])) for row in found]
