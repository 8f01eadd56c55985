"""One list over both tiers: hot months in PostgreSQL, cold ones in Parquet, read in the order of time with one cursor.

A reader keeps a copy of the map (states of months, listed segments) with its epoch. After every reading it compares the
epoch: if it changed, a month may have moved under the reading, and it is done again with the new map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from logstore import cold, deadline, fields, filters, partitions, segments
from logstore.cold import Wanted
from logstore.cursor import Kind, Position
from logstore.errors import ArchiveError
from logstore.partitions import Month
from logstore.postgres import Database
from logstore.queries import KNOWN_TENANTS_MOST, Interval, Question, question
from logstore.records import Selection
from logstore.segments import Segment
from logstore.statements import statements
from logstore.tables import BY_KIND, RECORDS

T = TypeVar("T")
_RETRIES = 20  # each means that somebody moved a month meanwhile
_COLD = ("cold", "purged")


@dataclass(frozen=True, slots=True)
class Map:
    """Which month is where, at one epoch."""

    epoch: int
    states: dict[Month, str]
    segments: dict[Month, tuple[Segment, ...]]

    def listed(self, parent: str, months: Iterable[date]) -> list[Segment]:
        """The segments of these months, in the order of time."""
        return [segment for month in sorted(months) for segment in self.segments.get((parent, month), ())]


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
        with self.database.reading() as connection:
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
        except psycopg.OperationalError:
            self.database.forget_connections()
            return self._steadily(read)

    def _steadily(self, read: Callable[[psycopg.Connection[Any], Map], T]) -> T:
        for _ in range(_RETRIES):
            known = self.map()
            with self.database.reading() as connection:
                try:
                    answer = read(connection, known)
                except psycopg.errors.QueryCanceled as error:  # its own limit, or that of the reader's role
                    raise deadline.too_broad() from error
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
        wanted = Wanted(kind, selection, where, position, ascending)

        def read(connection: psycopg.Connection[Any], known: Map) -> Found:
            found = Found()
            for stretch in _ahead(known, wanted):
                left = limit - len(found.records)
                if left <= 0:
                    break
                if stretch.months:
                    self._add_cold(found, wanted, known.listed(wanted.parent, stretch.months), left)
                else:
                    asked = self.ask(connection, wanted, left, within=(stretch.lower, stretch.upper))
                    with deadline.limited(connection):
                        rows = connection.execute(*asked.sql()).fetchall()
                    found.add(RECORDS[kind]._rows(rows), "hot")
            return found

        return self.steadily(read)

    def ask(
        self, connection: psycopg.Connection[Any], wanted: Wanted, limit: int, within: Interval = (None, None)
    ) -> Question:
        """How PostgreSQL is asked, given what is known of tenants and indexed fields."""
        selection, where = wanted.selection, wanted.where
        return question(
            wanted.kind,
            selection,
            position=wanted.position,
            ascending=wanted.ascending,
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

    def _add_cold(self, found: Found, wanted: Wanted, listed: list[Segment], limit: int) -> None:
        for segment in listed if wanted.ascending else reversed(listed):
            if limit <= 0:
                return
            if not wanted.meets(segment.min_time, segment.max_time):
                continue
            if segment.state == "quarantined":
                found.warnings.append(cold.hole(segment))
                continue
            try:
                records = cold.read_segment(self.archive, segment, wanted, limit)
            except cold.UNREADABLE as error:
                found.warnings.append(cold.hole(segment, error))
                continue
            found.add(records, "cold")
            limit -= len(records)

    # Look-ups

    def lookup(self, kind: Kind, id: str, accepts: Callable[[Any], bool]) -> Any | None:
        """The newest record of an id that is accepted: another tenant's may have the same id."""
        if "\x00" in id:
            return None  # no stored text holds a NUL, and PostgreSQL would refuse to look
        found, holes = self.steadily(lambda connection, known: self._of_id(connection, known, kind, id))
        accepted = next(filter(accepts, found), None)
        if accepted is None and holes is None:
            found, holes = self.steadily(
                lambda connection, known: self._of_id(connection, known, kind, id, everywhere=True)
            )
            accepted = next(filter(accepts, found), None)
        if accepted is None and holes:
            raise ArchiveError(f"{kind} {id!r} is in nothing that can be read; {holes[0]}")
        return accepted

    def _of_id(
        self, connection: psycopg.Connection[Any], known: Map, kind: Kind, id: str, *, everywhere: bool = False
    ) -> tuple[list[Any], list[str] | None]:
        """The records of an id, newest first, and what could not be read.

        Where some are newer than every cold month, only these, and None: unless asked for, no file is looked into.
        """
        with deadline.limited(connection):
            hot = connection.execute(statements("postgres", "store")[f"find_{kind}"], {"id": id}).fetchall()
        found = {(r.time, r.id): r for r in RECORDS[kind]._rows(hot)}
        parent = BY_KIND[kind].name
        months = [month for (name, month), state in known.states.items() if name == parent and state in _COLD]
        holes: list[str] | None = []
        if months:
            edge = max(partitions.month_bounds(month)[1] for month in months)
            newer = {key: r for key, r in found.items() if r.time >= edge}
            if newer and not everywhere:
                found, holes = newer, None
            else:
                archived, holes = self._cold_lookup(kind, id, known.listed(parent, months))
                found |= {(r.time, r.id): r for r in archived}
        return sorted(found.values(), key=lambda r: r.time, reverse=True), holes

    def _cold_lookup(self, kind: Kind, id: str, listed: list[Segment]) -> tuple[list[Any], list[str]]:
        found: list[Any] = []
        holes: list[str] = []
        for segment in listed:
            if segment.state == "quarantined":
                holes.append(cold.hole(segment))
                continue
            try:
                found += cold.find(self.archive, segment, kind, id)
            except cold.UNREADABLE as error:
                holes.append(cold.hole(segment, error))
        return found, holes


def _ahead(known: Map, wanted: Wanted) -> Iterator[Stretch]:
    """The stretches that can hold an answer, in the direction of reading."""
    all_stretches = stretches(known.states, wanted.parent)
    for stretch in all_stretches if wanted.ascending else reversed(all_stretches):
        if wanted.meets(stretch.lower, stretch.upper):
            yield stretch
