"""Writing a batch: checked, made unique, sorted, and sent as two statements of binary arrays in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg.errors import LockNotAvailable

from logstore import display, partitions
from logstore.errors import InvalidRecord, PartitionError
from logstore.partitions import Month, month_of
from logstore.postgres import Database
from logstore.records import Attempt, Event, Json, rfc3339
from logstore.settings import Settings
from logstore.statements import statements
from logstore.tables import JSON_COLUMNS

RecordT = TypeVar("RecordT", Event, Attempt)
_CONFLICT_COLUMNS = ("time", "id", "status", "code", "response_data")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # json.dumps would make one for each payload
_PATIENCE = 4  # times the five seconds after which a lock is given up


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertReport:
    """What a batch did; inserted and skipped, or inserted and updated, add up to what was given."""

    events_inserted: int
    events_skipped: int
    attempts_inserted: int
    attempts_updated: int

    def _repr_html_(self) -> str:
        return display.fields({name.replace("_", " "): n for name, n in asdict(self).items()}, caption="insert_many")


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Records ready to be written: unique by (time, id), the last one given winning, and sorted."""

    events: list[Event]
    attempts: list[Attempt]
    events_given: int
    attempts_given: int

    @classmethod
    def of(cls, events: Iterable[Event], attempts: Iterable[Attempt]) -> Batch:
        events, attempts = list(events), list(attempts)
        for record, kind in [(e, Event) for e in events] + [(a, Attempt) for a in attempts]:
            if not isinstance(record, kind):
                raise InvalidRecord(f"insert_many takes {kind.__name__} objects here, not {type(record).__name__}")
        return cls(
            events=_unique(events),
            attempts=_unique(attempts),
            events_given=len(events),
            attempts_given=len(attempts),
        )

    def months(self) -> set[Month]:
        """The months that the records fall into."""
        return {("events", month_of(e.time)) for e in self.events} | {
            ("attempts", month_of(a.time)) for a in self.attempts
        }

    def names(self) -> tuple[set[str], set[tuple[str, str]], set[str]]:
        """The tenants, (tenant, destination) pairs and topics that occur."""
        records: list[Event | Attempt] = [*self.events, *self.attempts]
        return (
            {record.tenant_id for record in records},
            {(attempt.tenant_id, attempt.destination_id) for attempt in self.attempts},
            {record.topic for record in records},
        )

    def check_times(self, settings: Settings, now: datetime) -> None:
        """Refuse times that are absurd; a wrong clock must not make a thousand months."""
        oldest, newest = settings.oldest_day(now), now + timedelta(days=settings.ahead)
        # Both lists are sorted by time: the edges speak for all.
        edges: list[Event | Attempt] = [*self.events[:1], *self.events[-1:], *self.attempts[:1], *self.attempts[-1:]]
        for record in edges:
            if not oldest <= record.time <= newest:
                raise PartitionError(
                    f"{record.id!r} has the time {rfc3339(record.time)}, outside {rfc3339(oldest)} to "
                    f"{rfc3339(newest)}: correct it, or widen LOGSTORE_OLDEST or LOGSTORE_AHEAD"
                )

    def write(self, connection: psycopg.Connection[Any]) -> InsertReport:
        """Send the batch on a connection that is in a transaction."""
        known = statements("postgres", "store")
        events_inserted = attempts_inserted = 0
        if self.events:
            events_inserted = connection.execute(known["insert_events"], _arrays(self.events, Event.columns)).rowcount
        if self.attempts:
            arrays = _arrays(self.attempts, Attempt.columns)
            inserted = set(connection.execute(known["insert_attempts"], arrays).fetchall())
            attempts_inserted = len(inserted)
            there = [a for a in self.attempts if (a.time, a.id) not in inserted]
            if there:
                connection.execute(known["update_attempts"], _arrays(there, _CONFLICT_COLUMNS))
        return InsertReport(
            events_inserted=events_inserted,
            events_skipped=self.events_given - events_inserted,
            attempts_inserted=attempts_inserted,
            attempts_updated=self.attempts_given - attempts_inserted,
        )


def make_months(database: Database, months: Iterable[Month]) -> None:
    """Make the months that are missing; a load that attaches one, or maintenance, may hold it for a while."""
    for left in reversed(range(_PATIENCE)):
        try:
            partitions.ensure(database, months)
        except LockNotAvailable as error:
            if left == 0:
                raise PartitionError(
                    "a load or maintenance holds a month that this batch needs, and did not let it go in time; nothing of "
                    "the batch was written: try again in a moment (`python -m logstore loads` shows what runs)"
                ) from error
        else:
            return


def _unique(records: Sequence[RecordT]) -> list[RecordT]:
    # Sorted by code points, which is the order of UTF-8 bytes and so of COLLATE "C".
    unique = {(record.time, record.id): record for record in records}
    return [unique[key] for key in sorted(unique)]


def _arrays(records: Sequence[Any], columns: Sequence[str]) -> list[list[Any]]:
    return [
        [_dump(getattr(record, name), record, name) for record in records]
        if name in JSON_COLUMNS
        else [getattr(record, name) for record in records]
        for name in columns
    ]


def _dump(value: Json, record: Event | Attempt, name: str) -> str | None:
    if value is None and name == "response_data":
        return None
    try:
        text = _encode(value)
        text.encode()
        _check_keys(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"{name} of {record.id!r} is not JSON: {error}") from error
    if "\\u0000" in text and _has_nul(value):
        raise InvalidRecord(f"{name} of {record.id!r} holds a NUL character, which PostgreSQL cannot store")
    return text


def _check_keys(value: Json) -> None:
    """Refuse keys that are no text: the encoder makes texts of some, and the record that comes back would be another."""
    if isinstance(value, dict):
        try:
            "".join(value)  # looks at all keys at once
        except TypeError:
            odd = next(key for key in value if not isinstance(key, str))
            raise TypeError(f"the key {odd!r} is no text") from None
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        kind = type(item)
        if kind is not str and kind is not int and isinstance(item, (dict, list, tuple)):
            _check_keys(item)


def _has_nul(value: Json) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, (list, tuple)) and any(_has_nul(item) for item in value)
