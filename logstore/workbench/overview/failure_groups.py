"""Failures in groups: which destination, code and message, since when, and is it getting better? Over both tiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pandas
import psycopg

from logstore import deadline
from logstore.filters import Field
from logstore.filters.tree import quoted
from logstore.records import from_micros, to_micros
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tiers import Map, stretches
from logstore.workbench import deliveries
from logstore.workbench.counts import archived_rows
from logstore.workbench.times import Window

POINTS = 20  # of a trend
MOST = 5000  # answers that differ, of PostgreSQL and of each file
COLUMNS = ("tenant_id", "destination_id", "code", "message", "failed", "first", "last", "trend", "where")
_SAID_MOST, _TEXT_MOST = 8, 300  # texts that an expression names, and how long one may be


@dataclass(slots=True)
class _Group:
    first: datetime
    last: datetime
    trend: list[int] = field(default_factory=lambda: [0] * POINTS)
    said: set[tuple[str | None, str | None]] = field(default_factory=set)  # (field of the answer, its text)


@dataclass(slots=True)
class _Found:
    rows: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cut: bool = False

    def add(self, rows: list[Any]) -> None:
        self.rows += rows
        self.cut |= len(rows) >= MOST


def groups(store: LogStore, window: Window, *, most: int) -> pandas.DataFrame:
    """Failed attempts by tenant, destination, code and message, the largest first.

    `where` is the filter that finds them among the failed attempts of the destination. `attrs` name what could not be
    read, count the groups, and say whether there were more answers than anybody adds up (`cut`).
    """
    grouped: dict[tuple[Any, ...], _Group] = {}
    found = store.tiers.steadily(lambda connection, known: _read(store, window, connection, known))
    for tenant, destination, code, name, text, first, last, places, numbers in found.rows:
        key = (tenant, destination, code, deliveries.message(text))
        group = grouped.setdefault(key, _Group(first, last))
        group.first, group.last = min(group.first, first), max(group.last, last)
        group.said.add((name, text))
        for place, number in zip(places, numbers, strict=True):
            group.trend[min(max(int(place), 0), POINTS - 1)] += number
    table = [(*key, sum(g.trend), g.first, g.last, g.trend, _where(key[2], g.said)) for key, g in grouped.items()]
    table.sort(key=lambda row: (-row[4], row[0], row[1], row[2] or "", row[3]))
    frame = pandas.DataFrame(table[:most], columns=list(COLUMNS))
    frame.attrs |= {"warnings": tuple(found.warnings), "groups": len(table), "cut": found.cut}
    return frame


def _where(code: str | None, said: set[tuple[str | None, str | None]]) -> str:
    """The code, and the message as far as an expression can say it: texts in one field of the answer, as they stand."""
    where = "not code exists" if code is None else f"code = {quoted(code)}"
    names, texts = {name for name, _ in said}, sorted(text for _, text in said if text)
    if len(names) > 1 or None in names or len(texts) > _SAID_MOST or any(len(text) > _TEXT_MOST for text in texts):
        return where
    answer = Field("response_data", (str(*names),))
    written = ", ".join(map(quoted, texts))
    return f"{where} and {answer} = {written}" if len(texts) == 1 else f"{where} and {answer} in [{written}]"


def _read(store: LogStore, window: Window, connection: psycopg.Connection[Any], known: Map) -> _Found:
    found = _Found()
    width = window.span / POINTS
    for stretch in stretches(known.states, "attempts"):
        lower = max(stretch.lower or window.lower, window.lower)
        upper = min(stretch.upper or window.upper, window.upper)
        if lower >= upper:
            continue
        if not stretch.months:
            asked = {"lower": lower, "upper": upper, "origin": window.lower, "width": width.total_seconds()}
            with deadline.limited(connection):
                statement = statements("postgres", "workbench")["failure_groups"]
                found.add(connection.execute(statement, {**asked, "most": MOST}).fetchall())
        micros = max(width // timedelta(microseconds=1), 1)
        for segment in known.listed("attempts", stretch.months):
            if segment.min_time and segment.max_time and segment.min_time < upper and segment.max_time >= lower:
                values = [to_micros(lower), to_micros(upper), to_micros(window.lower), micros, MOST]
                rows, hole = archived_rows.rows(store, segment, "failure_groups", values)
                found.add([(*row[:5], from_micros(row[5]), from_micros(row[6]), *row[7:]) for row in rows])
                found.warnings += [hole] if hole else []
    return found
