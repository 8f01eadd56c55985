"""One list over both tiers: hot months in PostgreSQL, cold ones in Parquet, read in the order of time with one cursor.

A reader keeps a copy of the map (states of months, listed segments) with its epoch. After every reading it compares the
epoch: if it changed, a month may have moved under the reading, and it is done again with the new map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import psycopg
import pyarrow as pa
from sqlalchemy.exc import DBAPIError

from logstore import fields, filters, partitions, segments
from logstore.cursor import Kind, Position
from logstore.errors import ArchiveError
from logstore.partitions import Month
from logstore.postgres import Database, loads
from logstore.queries import KNOWN_TENANTS_MOST, Interval, Question, question
from logstore.records import Selection, from_micros, rfc3339
from logstore.segments import Condition, Segment
from logstore.statements import statements
from logstore.tables import BY_KIND, JSON_COLUMNS, RECORDS, TIME_COLUMNS

T = TypeVar("T")
_RETRIES = 20  # each means that somebody moved a month meanwhile
_COLD = ("cold", "purged")
_UNREADABLE = (duckdb.Error, OSError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Map:
    """Which month is where, at one epoch."""

    epoch: int
    states: dict[Month, str]
    segments: dict[Month, tuple[Segment, ...]]


@dataclass(slots=True)
class Found:
    """Records of a reading, in the order asked for, where each came from, and what could not be read."""

    records: list[Any] = field(default_factory=list)
    tiers: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, records: list[Any], tier: str) -> None:
        self.records += records
        self.tiers += [tier] * len(records)


@dataclass(frozen=True, slots=True)
class Stretch:
    """An interval of time that one tier serves; `months` are the cold ones in it."""

    lower: datetime | None
    upper: datetime | None
    months: tuple[date, ...] = ()


def stretches(states: dict[Month, str], parent: str) -> list[Stretch]:
    """The whole of time, oldest first, cut where the tier changes."""
    cold = sorted(month for (name, month), state in states.items() if name == parent and state in _COLD)
    found: list[Stretch] = []
    edge: datetime | None = None
    for month in cold:
        lower, upper = partitions.month_bounds(month)
        if found and found[-1].months and found[-1].upper == lower:
            found[-1] = Stretch(found[-1].lower, upper, (*found[-1].months, month))
        else:
            found += [Stretch(edge, lower), Stretch(lower, upper, (month,))]
        edge = upper
    return [*found, Stretch(edge, None)]


class Tiers:
    """Reads a log wherever its months are."""

    def __init__(self, database: Database, archive: Path) -> None:
        self.database = database
        self.archive = archive
        self._map: Map | None = None
        self._many_tenants = False

    # The map

    def map(self) -> Map:
        return self._map or self.refresh()

    def refresh(self) -> Map:
        with self.database.reading.connect() as pooled:
            connection = _driver(pooled)
            while True:
                epoch = partitions.read_epoch(connection)
                states = partitions.read_map(connection).states
                listed = segments.listed(connection)
                if partitions.read_epoch(connection) == epoch:
                    break
        by_month: dict[Month, tuple[Segment, ...]] = {}
        for segment in listed:
            month = (segment.parent, segment.month)
            by_month[month] = (*by_month.get(month, ()), segment)
        self._map = Map(epoch, states, by_month)
        return self._map

    def steadily(self, read: Callable[[psycopg.Connection[Any], Map], T]) -> T:
        """Read with a map that was true from before to after; once more if the connection turned out to be dead."""
        try:
            return self._steadily(read)
        except (DBAPIError, psycopg.OperationalError) as error:
            if isinstance(error, psycopg.errors.QueryCanceled):
                raise
            self.database.engine.dispose()
            return self._steadily(read)

    def _steadily(self, read: Callable[[psycopg.Connection[Any], Map], T]) -> T:
        for _ in range(_RETRIES):
            known = self.map()
            with self.database.reading.connect() as pooled:
                connection = _driver(pooled)
                answer = read(connection, known)
                if partitions.read_epoch(connection) == known.epoch:
                    return answer
            self.refresh()
        raise ArchiveError("months keep moving between the tiers; try again in a moment")

    # Lists

    def page(
        self, kind: Kind, selection: Selection, *, position: Position | None, ascending: bool, limit: int
    ) -> Found:
        """Up to `limit` records beyond a position, from whichever tier has them."""
        where = None if selection.where is None else filters.parse(selection.where, kind)

        def read(connection: psycopg.Connection[Any], known: Map) -> Found:
            found = Found()
            for stretch in _ahead(stretches(known.states, BY_KIND[kind].name), selection, position, ascending):
                left = limit - len(found.records)
                if left <= 0:
                    break
                if stretch.months:
                    self._add_cold(found, kind, selection, where, stretch, known, position, ascending, left)
                else:
                    within = (stretch.lower, stretch.upper)
                    rows = self._hot(connection, kind, selection, where, within, position, ascending, left)
                    found.add(rows, "hot")
            return found

        return self.steadily(read)

    def _hot(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        selection: Selection,
        where: Any,
        within: Interval,
        position: Position | None,
        ascending: bool,
        limit: int,
    ) -> list[Any]:
        asked = self.ask(connection, kind, selection, where, within, position, ascending, limit)
        return list(RECORDS[kind]._rows(connection.execute(*asked.sql()).fetchall()))

    def ask(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        selection: Selection,
        where: Any,
        within: Interval,
        position: Position | None,
        ascending: bool,
        limit: int,
    ) -> Question:
        """How PostgreSQL is asked, given what is known of tenants and indexed fields."""
        return question(
            kind,
            selection,
            position=position,
            ascending=ascending,
            limit=limit,
            within=within,
            where=where,
            tenants_known=self._count_tenants(connection, selection),
            field_index=where is not None and fields.served(connection, selection.topics, where) is not None,
        )

    def _count_tenants(self, connection: psycopg.Connection[Any], selection: Selection) -> int | None:
        """How many tenants there are, as far as it matters for this selection; many stay many, so that is asked once."""
        if selection.tenant_ids or not (selection.topics or selection.status):
            return None
        if self._many_tenants:
            return KNOWN_TENANTS_MOST + 1
        row = connection.execute(
            statements("postgres", "store")["count_tenants"], {"most": KNOWN_TENANTS_MOST + 1}
        ).fetchone()
        assert row is not None
        self._many_tenants = row[0] > KNOWN_TENANTS_MOST
        return int(row[0])

    def _add_cold(
        self,
        found: Found,
        kind: Kind,
        selection: Selection,
        where: Any,
        stretch: Stretch,
        known: Map,
        position: Position | None,
        ascending: bool,
        limit: int,
    ) -> None:
        parent = BY_KIND[kind].name
        conditions = cold_conditions(kind, selection, where, position, ascending)
        lower, upper = _reach(selection, position, ascending)
        listed = [s for month in stretch.months for s in known.segments.get((parent, month), ())]
        for segment in listed if ascending else reversed(listed):
            if limit <= 0:
                return
            if not _meets(segment.min_time, segment.max_time, lower, upper):
                continue
            if segment.state == "quarantined":
                found.warnings.append(_hole(segment, segment.note or "it is quarantined"))
                continue
            try:
                rows = self._from_segment(segment, conditions, (lower, upper), ascending=ascending, limit=limit)
            except _UNREADABLE as error:
                found.warnings.append(_hole(segment, f"{type(error).__name__} while reading it"))
                continue
            found.add(_records(kind, rows), "cold")
            limit -= len(rows)

    def _from_segment(
        self, segment: Segment, conditions: list[Condition], reach: Interval, *, ascending: bool, limit: int
    ) -> list[tuple[Any, ...]]:
        path = segment.path(self.archive)
        rows: list[tuple[Any, ...]] = []
        for window in segments.windows(path, ascending=ascending):
            if not _meets(window.first, window.last, *reach):
                continue
            bounds = [segments.time_condition(">=", window.first), segments.time_condition("<=", window.last)]
            # Neighbouring windows may share their edge's time; what was read already is not read again.
            seen = {(row[_TIME[segment.parent]], row[0]) for row in rows}
            more = segments.select_rows(
                path, segment.parent, [*bounds, *conditions], ascending=ascending, limit=limit - len(rows) + len(seen)
            )
            rows += [row for row in more if (row[_TIME[segment.parent]], row[0]) not in seen]
            if len(rows) >= limit:
                return rows[:limit]
        return rows

    # Look-ups

    def lookup(self, kind: Kind, id: str) -> list[Any]:
        """All records of an id, newest first."""
        if "\x00" in id:
            return []  # no stored text holds a NUL, and PostgreSQL would refuse to look

        def read(connection: psycopg.Connection[Any], known: Map) -> list[Any]:
            hot = connection.execute(statements("postgres", "store")[f"find_{kind}"], {"id": id}).fetchall()
            found = {(r.time, r.id): r for r in RECORDS[kind]._rows(hot)}
            parent = BY_KIND[kind].name
            months = [m for m, state in known.states.items() if m[0] == parent and state in _COLD]
            newest_cold = max((partitions.month_bounds(month)[1] for _, month in months), default=None)
            if newest_cold is None or (found and max(time for time, _ in found) >= newest_cold):
                return sorted(found.values(), key=lambda r: r.time, reverse=True)
            cold, unreadable = self._cold_lookup(kind, id, [s for m in months for s in known.segments.get(m, ())])
            found |= {(r.time, r.id): r for r in cold}
            if not found and unreadable:
                raise ArchiveError(f"{kind} {id!r} is in nothing that can be read; {unreadable[0]}")
            return sorted(found.values(), key=lambda r: r.time, reverse=True)

        return self.steadily(read)

    def _cold_lookup(self, kind: Kind, id: str, listed: list[Segment]) -> tuple[list[Any], list[str]]:
        rows: list[Any] = []
        holes: list[str] = []
        for segment in listed:
            if segment.state == "quarantined":
                holes.append(_hole(segment, segment.note or "it is quarantined"))
                continue
            try:
                rows += segments.select_rows(
                    segment.path(self.archive), segment.parent, [("id = ?", [id])], ascending=False, limit=100
                )
            except _UNREADABLE as error:
                holes.append(_hole(segment, f"{type(error).__name__} while reading it"))
        return _records(kind, rows), holes


_TIME = {parent: list(BY_KIND[kind].columns.keys()).index("time") for parent, kind in segments.KINDS.items()}


def cold_conditions(
    kind: Kind, selection: Selection, where: Any, position: Position | None, ascending: bool
) -> list[Condition]:
    """The selection and the cursor as DuckDB's conditions; every value is a parameter."""
    named = {
        "tenant_id": selection.tenant_ids,
        "id" if kind == "event" else "event_id": selection.event_ids,
        "destination_id": selection.destination_ids,
        "topic": selection.topics,
        "status": (selection.status,) if selection.status else (),
    }
    found: list[Condition] = [
        (f"{name} IN ({', '.join('?' * len(values))})", list(values)) for name, values in named.items() if values
    ]
    found += [segments.time_condition(operator, bound) for operator, bound in selection.time.bounds()]
    if position is not None:
        sign = ">" if ascending else "<"
        (before, at), (equal, _) = (segments.time_condition(op, position.time) for op in (sign, sign + "="))
        found += [(equal, at), (f"{before} OR id {sign} ?", [*at, position.id])]
    if where is not None:
        found.append(filters.to_duckdb(where))
    return found


def _ahead(
    all_stretches: list[Stretch], selection: Selection, position: Position | None, ascending: bool
) -> Iterator[Stretch]:
    lower, upper = _reach(selection, position, ascending)
    for stretch in all_stretches if ascending else reversed(all_stretches):
        if _meets(stretch.lower, stretch.upper, lower, upper):
            yield stretch


def _reach(selection: Selection, position: Position | None, ascending: bool) -> Interval:
    """The interval of time, both ends included, in which an answer can lie."""
    time = selection.time
    lowers = [t for t in (time.gte, time.gt, position.time if position and ascending else None) if t]
    uppers = [t for t in (time.lte, time.lt, position.time if position and not ascending else None) if t]
    return max(lowers, default=None), min(uppers, default=None)


def reachable(segment: Segment, selection: Selection) -> bool:
    """Whether a segment can hold anything of a selection, by the catalog's times."""
    return _meets(segment.min_time, segment.max_time, *_reach(selection, None, False))


def _meets(first: datetime | None, last: datetime | None, lower: datetime | None, upper: datetime | None) -> bool:
    below = last is not None and lower is not None and last < lower
    above = first is not None and upper is not None and first > upper
    return not below and not above


def _records(kind: Kind, rows: list[tuple[Any, ...]]) -> list[Any]:
    names = list(BY_KIND[kind].columns.keys())
    times = [i for i, name in enumerate(names) if name in TIME_COLUMNS]
    texts = [i for i, name in enumerate(names) if name in JSON_COLUMNS]
    made = []
    for row in rows:
        values = list(row)
        for i in times:
            values[i] = from_micros(values[i])
        for i in texts:
            values[i] = None if values[i] is None else loads(values[i])
        made.append(values)
    return list(RECORDS[kind]._rows(made))


def _hole(segment: Segment, why: str) -> str:
    between = " to ".join(rfc3339(t) for t in (segment.min_time, segment.max_time) if t)
    name = partitions.partition_name(segment.parent, segment.month)
    return (
        f"{segment.rows} {segment.parent} from {between} cannot be read: segment {segment.segment_id}: {why}. "
        f"`python -m logstore verify` looks again; `python -m logstore restore {name}` helps while the table is there"
    )


def _driver(pooled: Any) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", pooled.connection.driver_connection)
