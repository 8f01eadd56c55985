"""When each destination was last reached, and last failed: the day from a roll-up, the moment from that day's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from logstore import deadline, partitions
from logstore.records import Selection, from_micros, to_micros
from logstore.segments import Segment
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tiers import Map
from logstore.workbench.counts import archived_rows
from logstore.workbench.times import Window

_DAY = timedelta(days=1)
_GAP = (
    "when destinations last answered: a month of the range came without its counts; metrics.rebuild(store) makes them"
)
Key = tuple[str, str, str]  # tenant, destination, status


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest attempt of a destination with one outcome; no time: it is in a file that cannot be read."""

    tenant_id: str
    destination_id: str
    status: str
    time: datetime | None


def seen(store: LogStore, selection: Selection, window: Window) -> tuple[list[Seen], list[str]]:
    """The newest success and the newest failure of each destination in a window, over both tiers; and what is unreadable.

    Of a selection its tenants and destinations count; nothing else tells destinations apart. Two days are looked into,
    because the records of the newest may lie beyond the end of the window.
    """
    values = {
        "tenants": list(selection.tenant_ids) or None,
        "destinations": list(selection.destination_ids) or None,
        "first": window.lower.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0),
        "lower": window.lower,
        "upper": window.upper,
    }

    def read(connection: psycopg.Connection[Any], known: Map) -> tuple[list[Seen], list[str]]:
        span = {"start": window.lower, "end": window.upper}
        if connection.execute(statements("postgres", "metrics")["has_gap_attempts"], span).fetchone() != (False,):
            return [], [_GAP]
        with deadline.limited(connection):
            rows = connection.execute(statements("postgres", "workbench")["last_attempts"], values).fetchall()
        search = _Search(selection, window)
        for tenant, destination, status, days, time in rows:
            cold = [day for day in days if known.states.get(_month(day)) in ("cold", "purged")]
            search.want((tenant, destination, status), time, [day for day in cold if not time or day > time])
        search.look(store, known)
        return search.seen(), search.warnings

    return store.tiers.steadily(read)


def _month(day: datetime) -> partitions.Month:
    return ("attempts", partitions.month_of(day))


@dataclass(slots=True)
class _Search:
    """Destinations whose newest attempt is in the archive: one reading of a segment serves all of them."""

    selection: Selection
    window: Window
    days: dict[Key, list[datetime]] = field(default_factory=dict)  # that a roll-up has them on, in cold months
    found: dict[Key, datetime] = field(default_factory=dict)
    holes: list[Segment] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def want(self, key: Key, time: datetime | None, days: list[datetime]) -> None:
        if time is not None:
            self.found[key] = time
        if days:
            self.days[key] = days

    def look(self, store: LogStore, known: Map) -> None:
        """Segments from the newest on, as long as one can hold something newer than what was found."""
        months = {partitions.month_of(day) for days in self.days.values() for day in days}
        for segment in reversed(known.listed("attempts", months)):
            days = [day for key in self.days for day in self._days_in(key, segment)]
            if not days:
                continue
            hole = self._read(store, segment, days)
            if hole is not None:
                self.holes.append(segment)
                self.warnings.append(hole)

    def seen(self) -> list[Seen]:
        unread = {key for key in self.days if any(self._days_in(key, segment) for segment in self.holes)}
        known = [Seen(*key, time) for key, time in self.found.items() if key not in unread]
        return [*known, *(Seen(*key, None) for key in unread)]

    def _days_in(self, key: Key, segment: Segment) -> list[datetime]:
        """The days of a destination on which the segment may hold something newer than is known."""
        if segment.min_time is None or segment.max_time is None:
            return []
        if key in self.found and self.found[key] >= segment.max_time:
            return []
        return [day for day in self.days[key] if day <= segment.max_time and segment.min_time < day + _DAY]

    def _read(self, store: LogStore, segment: Segment, days: Sequence[datetime]) -> str | None:
        lower, upper = max(min(days), self.window.lower), min(max(days) + _DAY, self.window.upper)
        chosen = (self.selection.tenant_ids, self.selection.destination_ids)
        values = [to_micros(lower), to_micros(upper), *(list(names) for names in chosen for _ in range(2))]
        rows, hole = archived_rows.rows(store, segment, "last_attempts", values)
        for tenant, destination, status, micros in rows:
            key, time = (tenant, destination, status), from_micros(micros)
            if key in self.days:
                self.found[key] = max(time, self.found.get(key, time))
        return hole
