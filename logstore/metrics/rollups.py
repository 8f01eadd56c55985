"""Roll-ups of attempts: counted when they are written, so that an overview of months reads hours instead of attempts.

Two of them: by hour, tenant and status; by day, tenant, destination, topic, status and code. Triggers append what each
statement changed (see sql/migrations/006_rollups.sql), `fold` adds that up now and then, and a reading takes both, so it
equals the count of the records at that moment. Where a month is, in PostgreSQL or in files, makes no difference to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Protocol

import psycopg
from psycopg import sql
from sqlalchemy import DateTime, FromClause, Text, column, literal_column, select, table, union_all

from logstore import cold, partitions, segments
from logstore.metrics.buckets import DAY, HOUR
from logstore.metrics.measures import LATENCIES
from logstore.metrics.question import Question
from logstore.metrics.result import Groups
from logstore.metrics.scan import grouped
from logstore.postgres import Database
from logstore.records import from_micros, to_micros
from logstore.segments import Segment
from logstore.statements import statements
from logstore.tiers import Map, Tiers, stretches

_SUMS = ("records", "first_attempts", "retries", "manual_retries", "numbers")
_OF_STATUS = {"successful": "success", "failed": "failed"}
_ALWAYS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


class Store(Protocol):
    """A LogStore, as far as roll-ups need one."""

    @property
    def database(self) -> Database: ...
    @property
    def tiers(self) -> Tiers: ...


@dataclass(frozen=True, slots=True)
class Rollup:
    """One of the tables: its buckets and what it tells apart."""

    name: str
    keys: tuple[str, ...]
    width: int  # microseconds

    def source(self) -> FromClause:
        """The folded rows and the differences that are not folded yet, as one relation."""
        columns: list[Any] = [column("time", DateTime(timezone=True)), *(column(name, Text) for name in self.keys)]
        columns += [column(name) for name in _SUMS]
        daily: Any = literal_column("true" if self.width == DAY else "false")
        folded = select(*columns).select_from(table(self.name))
        rest = select(*columns).select_from(table("attempts_deltas")).where(column("daily") == daily)
        return union_all(folded, rest).subquery("rolled")


HOURLY = Rollup("attempts_hourly", ("tenant_id", "status"), HOUR)
DAILY = Rollup("attempts_daily", ("tenant_id", "destination_id", "topic", "status", "code"), DAY)


def serves(asked: Question) -> Rollup | None:
    """The roll-up that answers a question about attempts exactly, if one does.

    The range must begin and end on the roll-up's buckets and the granularity be made of them; dimensions and selection
    may name only what the roll-up tells apart. Percentiles, `where`, `event_ids` and `selection.time` need the records.
    """
    selection = asked.selection
    if asked.kind != "attempt" or LATENCIES in asked.parts or selection.where or selection.event_ids:
        return None
    if selection.time.bounds():
        return None
    chosen = {"destination_id": selection.destination_ids, "topic": selection.topics}
    named = {*asked.dimensions, *(name for name, values in chosen.items() if values)}
    for rollup in (HOURLY, DAILY):
        aligned = all(to_micros(edge) % rollup.width == 0 for edge in (asked.start, asked.end))
        width = None if asked.granularity is None else asked.granularity.width
        if aligned and named <= set(rollup.keys) and (width is None or width % rollup.width == 0):
            return rollup
    return None


def read(tiers: Tiers, rollup: Rollup, asked: Question) -> Groups | None:
    """The groups of a question; None where a month in the range came without its counts."""

    def ask(connection: psycopg.Connection[Any], _: Map) -> Groups | None:
        span = {"start": asked.start, "end": asked.end}
        if connection.execute(statements("postgres", "metrics")["has_gap"], span).fetchone() != (False,):
            return None
        groups = Groups(asked)
        statement, values = grouped(rollup.source(), asked, [_sum(part) for part in asked.parts])
        groups.add(connection.execute(statement, values, binary=True).fetchall())
        return groups

    return tiers.steadily(ask)


def _sum(part: str) -> Any:
    if part in _OF_STATUS:
        return literal_column(
            f"coalesce(sum(rolled.records) FILTER (WHERE rolled.status = '{_OF_STATUS[part]}'), 0)::bigint"
        )
    return literal_column(f"sum(rolled.{part})::bigint")  # a sum of bigint is numeric, which costs to fetch


def fold(store: Store) -> int:
    """Add the appended differences to the roll-ups; how many there were. Answers are the same before and after."""
    with store.database.connection() as connection:
        return _fold(connection)


def _fold(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(statements("postgres", "metrics")["fold"]).fetchone()
    assert row is not None
    return int(row[0])


def add_table(connection: psycopg.Connection[Any], name: str) -> None:
    """Count the attempts of a table that becomes a month as a whole: attaching fires no trigger."""
    _add_rows(connection, name, *_ALWAYS)


def forget(connection: psycopg.Connection[Any], month: date) -> None:
    """Take a month out of the roll-ups, when its last copy is given up."""
    _forget(connection, *partitions.month_bounds(month))


def doubt(connection: psycopg.Connection[Any], month: date) -> None:
    """Answer questions that touch a month from its records until somebody rebuilds: its rows came without their counts."""
    connection.execute(statements("postgres", "metrics")["note_gap"], {"month": month})


def rebuild(store: Store) -> list[str]:
    """Count everything anew from both tiers, while writers wait; what could not be read, and so stays a gap."""
    warnings: list[str] = []
    with store.database.connection() as connection:
        connection.execute(statements("postgres", "metrics")["lock_writers"])
        known = store.tiers.refresh()
        _forget(connection, *_ALWAYS)
        for stretch in stretches(known.states, "attempts"):
            if not stretch.months:
                _add_rows(connection, "attempts", stretch.lower or _ALWAYS[0], stretch.upper or _ALWAYS[1])
            for segment in known.listed("attempts", stretch.months):
                warnings += _add_segment(connection, store.tiers, segment)
        _fold(connection)
    return warnings


def _add_rows(connection: psycopg.Connection[Any], name: str, lower: datetime, upper: datetime) -> None:
    add = sql.SQL(statements("postgres", "metrics")["add_rows"]).format(table=sql.Identifier(name))
    connection.execute(add, {"lower": lower, "upper": upper})


def _add_segment(connection: psycopg.Connection[Any], tiers: Tiers, segment: Segment) -> list[str]:
    known = statements("postgres", "metrics")
    error: Exception | None = None
    rows: list[tuple[Any, ...]] = []
    if segment.state == "sealed":
        try:
            path = str(segment.path(tiers.archive))
            rows = segments.engine().execute(statements("duckdb", "metrics")["deltas"], [path]).fetchall()
        except cold.UNREADABLE as caught:
            error = caught
    if segment.state != "sealed" or error is not None:
        doubt(connection, segment.month)
        return [cold.hole(segment, error)]
    if rows:
        daily, starts, *rest = (list(values) for values in zip(*rows, strict=True))
        connection.execute(known["add_deltas"], [daily, [from_micros(start) for start in starts], *rest])
    return []


def _forget(connection: psycopg.Connection[Any], lower: datetime, upper: datetime) -> None:
    for name in ("hourly", "daily", "deltas", "gap"):
        span = {"lower": lower, "upper": upper}
        connection.execute(statements("postgres", "metrics")[f"forget_{name}"], span)
