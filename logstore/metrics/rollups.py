"""Roll-ups: records counted when they are written, so that an overview of months reads hours instead of records.

Attempts by hour, tenant and status, and by day, tenant, destination, topic, status and code; events by hour and tenant, and
by day, tenant and topic; the hours once more without tenants, the days without topics or without tenants. Triggers append
what each statement changed (see sql/migrations/006_rollups.sql), `fold` adds that up now and then, and a reading takes both,
so it equals the count of the records at that moment. Where a month is, in PostgreSQL or in files, makes no difference to
them. A range seldom begins and ends on their buckets: its days come from one roll-up, the hours before and after from
another, and what is left at both ends from the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Protocol

import psycopg
from psycopg import sql
from sqlalchemy import DateTime, FromClause, Text, column, literal_column, select, table, union_all

from logstore import cold, deadline, partitions, segments
from logstore.cursor import Kind
from logstore.metrics.buckets import DAY, HOUR
from logstore.metrics.measures import LATENCIES
from logstore.metrics.question import Question
from logstore.metrics.result import Groups
from logstore.metrics.scan import add, grouped
from logstore.postgres import Database
from logstore.records import from_micros, to_micros
from logstore.segments import Segment
from logstore.statements import statements
from logstore.tables import BY_KIND, PARENTS
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

    parent: str
    name: str
    keys: tuple[str, ...]
    width: int  # microseconds

    @property
    def sums(self) -> tuple[str, ...]:
        return _SUMS if self.parent == "attempts" else _SUMS[:1]

    def fits(self, asked: Question) -> bool:
        """Whether it tells apart what a question names, and buckets are made of its own."""
        selection = asked.selection
        chosen = {
            "tenant_id": selection.tenant_ids,
            "destination_id": selection.destination_ids,
            "topic": selection.topics,
        }
        named = {*asked.dimensions, *(name for name, values in chosen.items() if values)}
        width = None if asked.granularity is None else asked.granularity.width
        return named <= set(self.keys) and (width is None or width % self.width == 0)

    def aligned(self, lower: int, upper: int) -> tuple[int, int]:
        """The whole buckets inside a stretch, in microseconds."""
        return -(-lower // self.width) * self.width, upper // self.width * self.width


@cache  # one object for each, because statements are kept by it
def relation(rollup: Rollup) -> FromClause:
    """The folded rows and the differences that are not folded yet, as one relation."""
    columns: list[Any] = [column("time", DateTime(timezone=True)), *(column(name, Text) for name in rollup.keys)]
    columns += [column(name) for name in rollup.sums]
    daily: Any = literal_column("true" if rollup.width == DAY else "false")
    folded = select(*columns).select_from(table(rollup.name))
    rest = select(*columns).select_from(table(f"{rollup.parent}_deltas")).where(column("daily") == daily)
    return union_all(folded, rest).subquery("rolled")


HOURLY = Rollup("attempts", "attempts_hourly", ("tenant_id", "status"), HOUR)
DAILY = Rollup("attempts", "attempts_daily", ("tenant_id", "destination_id", "topic", "status", "code"), DAY)
# The smallest come first.
ROLLUPS: dict[Kind, tuple[Rollup, ...]] = {
    "attempt": (
        Rollup("attempts", "attempts_by_hour", ("status",), HOUR),
        Rollup("attempts", "attempts_by_topic", ("topic", "status", "code"), DAY),
        Rollup("attempts", "attempts_by_destination", ("tenant_id", "destination_id", "status", "code"), DAY),
        HOURLY,
        DAILY,
    ),
    "event": (
        Rollup("events", "events_by_hour", (), HOUR),
        Rollup("events", "events_by_topic", ("topic",), DAY),
        Rollup("events", "events_hourly", ("tenant_id",), HOUR),
        Rollup("events", "events_daily", ("tenant_id", "topic"), DAY),
    ),
}
_FEW = 14 * DAY  # of a shorter range its hours are few as well, and one reading of them does


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a question's range, and the roll-up that knows it; None: its records are read."""

    rollup: Rollup | None
    lower: datetime
    upper: datetime


def serves(asked: Question) -> list[Piece] | None:
    """A question cut into what roll-ups answer exactly and what is left; None where they answer nothing.

    The granularity must be made of a roll-up's buckets; dimensions and selection may name only what it tells apart.
    Percentiles, `where`, `event_ids` and `selection.time` need the records.
    """
    selection = asked.selection
    if LATENCIES in asked.parts or selection.where or selection.event_ids or selection.time.bounds():
        return None
    lower, upper = to_micros(asked.start), to_micros(asked.end)
    fitting = [rollup for rollup in ROLLUPS[asked.kind] if rollup.fits(asked)]
    if upper - lower <= _FEW:
        fitting.sort(key=lambda rollup: rollup.width)
    pieces = _cut(lower, upper, fitting)
    return pieces if any(piece.rollup for piece in pieces) else None


def _cut(lower: int, upper: int, fitting: list[Rollup]) -> list[Piece]:
    if lower >= upper:
        return []
    for rollup in fitting:
        first, last = rollup.aligned(lower, upper)
        if first < last:
            finer = [other for other in fitting if other.width < rollup.width]
            middle = Piece(rollup, from_micros(first), from_micros(last))
            return [*_cut(lower, first, finer), middle, *_cut(last, upper, finer)]
    return [Piece(None, from_micros(lower), from_micros(upper))]


def read(tiers: Tiers, pieces: list[Piece], asked: Question) -> Groups | None:
    """The groups of a question; None where a month in the range came without its counts."""
    rolled = [piece for piece in pieces if piece.rollup]

    def ask(connection: psycopg.Connection[Any], known: Map) -> Groups | None:
        span = {"start": rolled[0].lower, "end": rolled[-1].upper}
        gap = statements("postgres", "metrics")[f"has_gap_{BY_KIND[asked.kind].name}"]
        if connection.execute(gap, span).fetchone() != (False,):
            return None
        groups = Groups(asked)
        with deadline.limited(connection):
            for piece in pieces:
                inside = asked.over(piece.lower, piece.upper)
                if piece.rollup is None:
                    add(groups, inside, tiers, connection, known)
                    continue
                deadline.left()
                statement, values = grouped(relation(piece.rollup), inside, tuple(map(_sum, asked.parts)))
                groups.add(connection.execute(statement, values, binary=True).fetchall())
        return groups

    return tiers.steadily(ask)


def _sum(part: str) -> str:
    if part in _OF_STATUS:
        return f"coalesce(sum(rolled.records) FILTER (WHERE rolled.status = '{_OF_STATUS[part]}'), 0)::bigint"
    return f"sum(rolled.{part})::bigint"  # a sum of bigint is numeric, which costs to fetch


def fold(store: Store) -> int:
    """Add the appended differences to the roll-ups; how many there were. Answers are the same before and after."""
    with store.database.connection() as connection:
        return _fold(connection)


def _fold(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(statements("postgres", "metrics")["fold"]).fetchone()
    assert row is not None
    return int(row[0])


def count_table(connection: psycopg.Connection[Any], parent: str, name: str, counts: str) -> None:
    """Count the records of a table that will become a month as a whole, which fires no trigger, into a new table."""
    made = sql.SQL("CREATE TABLE {} AS ").format(sql.Identifier(counts))
    connection.execute(made + _differences(parent, name), {"lower": _ALWAYS[0], "upper": _ALWAYS[1]})


def add_counts(connection: psycopg.Connection[Any], parent: str, counts: str) -> int:
    """Add what was counted to the roll-ups; how many records it is."""
    given = sql.Identifier(counts)
    row = connection.execute(
        sql.SQL("SELECT coalesce(sum(records), 0)::bigint FROM {} WHERE NOT daily").format(given)
    ).fetchone()
    assert row is not None
    connection.execute(sql.SQL("INSERT INTO {} SELECT * FROM {}").format(sql.Identifier(f"{parent}_deltas"), given))
    return int(row[0])


def forget(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    """Take a month out of the roll-ups, when its last copy is given up."""
    _forget(connection, parent, *partitions.month_bounds(month))


def doubt(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    """Answer questions that touch a month from its records until somebody rebuilds: its rows came without their counts."""
    connection.execute(statements("postgres", "metrics")[f"note_gap_{parent}"], {"month": month})


def rebuild(store: Store) -> list[str]:
    """Count everything anew from both tiers, while writers wait; what could not be read, and so stays a gap."""
    warnings: list[str] = []
    with store.database.connection() as connection:
        connection.execute(statements("postgres", "metrics")["lock_writers"])
        known = store.tiers.refresh()
        for parent in PARENTS:
            _forget(connection, parent, *_ALWAYS)
            for stretch in stretches(known.states, parent):
                if not stretch.months:
                    _add_rows(connection, parent, parent, stretch.lower or _ALWAYS[0], stretch.upper or _ALWAYS[1])
                for segment in known.listed(parent, stretch.months):
                    warnings += _add_segment(connection, store.tiers, segment)
        _fold(connection)
    return warnings


def _add_rows(connection: psycopg.Connection[Any], parent: str, name: str, lower: datetime, upper: datetime) -> None:
    into = sql.SQL("INSERT INTO {} ").format(sql.Identifier(f"{parent}_deltas"))
    connection.execute(into + _differences(parent, name), {"lower": lower, "upper": upper})


def _differences(parent: str, name: str) -> sql.Composed:
    return sql.SQL(statements("postgres", "metrics")[f"differences_{parent}"]).format(table=sql.Identifier(name))


def _add_segment(connection: psycopg.Connection[Any], tiers: Tiers, segment: Segment) -> list[str]:
    known = statements("postgres", "metrics")
    error: Exception | None = None
    rows: list[tuple[Any, ...]] = []
    if segment.state == "sealed":
        try:
            path = str(segment.path(tiers.archive))
            rows = (
                segments.engine()
                .execute(statements("duckdb", "metrics")[f"deltas_of_{segment.parent}"], [path])
                .fetchall()
            )
        except cold.UNREADABLE as caught:
            error = caught
    if segment.state != "sealed" or error is not None:
        doubt(connection, segment.parent, segment.month)
        return [cold.hole(segment, error)]
    if rows:
        daily, starts, *rest = (list(values) for values in zip(*rows, strict=True))
        connection.execute(
            known[f"add_{segment.parent}_deltas"], [daily, [from_micros(start) for start in starts], *rest]
        )
    return []


def _forget(connection: psycopg.Connection[Any], parent: str, lower: datetime, upper: datetime) -> None:
    connection.execute(statements("postgres", "metrics")[f"forget_{parent}"], {"lower": lower, "upper": upper})
