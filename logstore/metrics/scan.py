"""Groups counted from the records themselves: hot months by PostgreSQL, cold ones by DuckDB, file by file."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import psycopg
from sqlalchemy import FromClause, Select, literal_column, null, select, text

from logstore import cold, deadline, segments
from logstore.cold import Wanted
from logstore.metrics import buckets
from logstore.metrics.measures import LATENCIES, PARTS
from logstore.metrics.question import ROWS_MOST, Question
from logstore.metrics.result import Groups
from logstore.queries import Interval, Shape, predicates, question, render
from logstore.segments import Segment
from logstore.tables import BY_KIND
from logstore.tiers import Map, Tiers, stretches

# Both times as they are stored, so that a million latencies travel as 16 MB and not as a million rows. PostgreSQL would
# subtract them in decimal digits, which takes several times as long.
_HOT_LATENCIES = "string_agg(timestamptz_send(attempts.time) || timestamptz_send(attempts.event_time), ''::bytea)"
_COLD_LATENCIES = "list(epoch_us(time) - epoch_us(event_time))"


def scan(tiers: Tiers, asked: Question) -> Groups:
    """The groups of a question over both tiers, with a map that was true from before to after."""

    def read(connection: psycopg.Connection[Any], known: Map) -> Groups:
        groups = Groups(asked)
        with deadline.limited(connection):
            add(groups, asked, tiers, connection, known)
        return groups

    return tiers.steadily(read)


def add(groups: Groups, asked: Question, tiers: Tiers, connection: psycopg.Connection[Any], known: Map) -> None:
    """Add the groups of a question, or of a stretch of it; whoever calls limits the connection's time."""
    wanted = Wanted(asked.kind, asked.inside, asked.where)
    for stretch in stretches(known.states, wanted.parent):
        if not wanted.meets(stretch.lower, stretch.upper):
            continue
        if stretch.months:
            _add_cold(groups, tiers, wanted, known.listed(wanted.parent, stretch.months))
        else:
            deadline.left()
            groups.tiers.add("hot")
            statement, values = hot_sql(asked, (stretch.lower, stretch.upper))
            groups.add(connection.execute(statement, values, binary=True).fetchall())


def hot_sql(asked: Question, within: Interval = (None, None)) -> tuple[str, dict[str, Any]]:
    """The groups inside an interval, as PostgreSQL is asked for them."""
    parts = tuple(_HOT_LATENCIES if part == LATENCIES else PARTS[part] for part in asked.parts)
    return grouped(BY_KIND[asked.kind], asked, parts, within)


def grouped(
    source: FromClause, asked: Question, parts: tuple[str, ...], within: Interval = (None, None)
) -> tuple[str, dict[str, Any]]:
    """A SELECT of bucket, dimensions and parts over anything that has the columns of the question."""
    page: dict[str, Any] = {"position": None, "ascending": True, "limit": 1}
    shaped = question(asked.kind, asked.inside, within=within, where=asked.where, plain=True, **page)
    text, constants = _text(source, shaped.shape, asked.dimensions, parts, asked.granularity)
    return text, {**constants, **shaped.values}


@lru_cache(maxsize=1000)  # putting a statement together takes longer than many a count
def _text(
    source: FromClause,
    shape: Shape,
    dimensions: tuple[str, ...],
    parts: tuple[str, ...],
    granularity: buckets.Granularity | None,
) -> tuple[str, dict[str, Any]]:
    start = null() if granularity is None else buckets.to_postgres(source.c.time, granularity)
    columns = [start, *(source.c[name] for name in dimensions), *(literal_column(part) for part in parts)]
    statement: Select[Any] = select(*columns).select_from(source).where(*predicates(source, shape))
    # Grouped by position: PostgreSQL takes the same parameters in two places for two different expressions.
    first = 1 if granularity is not None else 2
    places = range(first, 2 + len(dimensions))
    statement = statement.group_by(*(text(str(place)) for place in places))
    # What a roll-up remembers of records that are gone adds up to none; it must not use up the limit.
    statement = statement.having(text(f"{parts[0]} <> 0"))
    return render(statement.limit(literal_column(str(ROWS_MOST + 1))))


def _add_cold(groups: Groups, tiers: Tiers, wanted: Wanted, listed: list[Segment]) -> None:
    for segment in listed:
        if not wanted.meets(segment.min_time, segment.max_time):
            continue
        groups.tiers.add("cold")
        if segment.state == "quarantined":
            groups.warnings.append(cold.hole(segment))
            continue
        try:
            rows = _from_file(tiers, groups.question, wanted, segment)
        except cold.UNREADABLE as error:
            groups.warnings.append(cold.hole(segment, error))
            continue
        groups.add(rows)


def _from_file(tiers: Tiers, asked: Question, wanted: Wanted, segment: Segment) -> list[tuple[Any, ...]]:
    conditions = cold.conditions(wanted)
    where = " AND ".join(f"({condition})" for condition, _ in conditions)
    # A sum is a HUGEINT, which Arrow would make a decimal.
    parts = [_COLD_LATENCIES if part == LATENCIES else f"({PARTS[part]})::BIGINT" for part in asked.parts]
    start = "NULL" if asked.granularity is None else buckets.to_duckdb(asked.granularity)
    keys = ", ".join([start, *asked.dimensions])
    statement = f"SELECT {', '.join([keys, *parts])} FROM read_parquet(?) WHERE {where} GROUP BY {keys}"
    values = [value for _, found in conditions for value in found]
    path = str(segment.path(tiers.archive))
    cursor = segments.engine()
    with deadline.interrupted(cursor):
        found = cursor.execute(f"{statement} LIMIT {ROWS_MOST + 1}", [path, *values]).to_arrow_table()
    columns = [column.to_pylist() for column in found.columns[: 1 + len(asked.dimensions)]]
    for part, column in zip(asked.parts, found.columns[len(columns) :], strict=True):
        columns.append([bag.values.to_numpy() for bag in column] if part == LATENCIES else column.to_pylist())
    return list(zip(*columns, strict=True))
