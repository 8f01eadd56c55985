"""LogStore: the five operations over one log, wherever its months are."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, cast

import psycopg
from psycopg.errors import CheckViolation, DiskFull

from logstore import cursor, fields, metrics, partitions
from logstore.cursor import Kind, Position
from logstore.errors import InvalidSelection, PartitionError, ServerError, Unimplemented
from logstore.explain import Explanation, explain
from logstore.inserts import Batch, InsertReport, make_months
from logstore.metrics import Metrics
from logstore.partitions import Month
from logstore.postgres import Database
from logstore.records import Attempt, Event, Page, Selection, from_micros, to_micros
from logstore.settings import Settings
from logstore.statements import statements
from logstore.tables import RECORDS
from logstore.tiers import Tiers

log = logging.getLogger(__name__)
LIMIT_MOST = 1000
_PLACES = ("LOGSTORE_DSN", "LOGSTORE_ARCHIVE", "LOGSTORE_INBOX")


class LogStore:
    """Events and attempts; opened by `logstore.open`, closed by `close` or the end of a `with` block."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.tiers = Tiers(database, settings.archive)
        self._known: dict[str, set[Any]] = {"tenants": set(), "destinations": set(), "topics": set()}
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def open(cls, dsn: str | None = None, *, role: str | None = None, home: str | Path | None = None) -> Self:
        """Open the store of the settings; an embedded server is started and prepared when it has to be.

        A home that is given holds all of the store: it must not meet the server or the archive of the environment.
        """
        env = dict(os.environ)
        if home is not None:
            env = {name: value for name, value in env.items() if name not in _PLACES} | {"LOGSTORE_HOME": str(home)}
        settings = Settings.read(env)
        return cls(Database.open(settings, dsn=dsn, role=role), settings)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing

    def insert_many(self, events: Iterable[Event] = (), attempts: Iterable[Attempt] = ()) -> InsertReport:
        """Write a batch in one transaction: whole or not at all; what is there already is not doubled."""
        if self.database.role == "reader":
            raise ServerError("this store was opened to read: set LOGSTORE_ROLE=operator to write")
        batch = Batch.of(events, attempts)
        now = datetime.now(UTC)
        batch.check_times(self.settings, now)
        self._make_months(batch.months(), now)
        self._note_names(*batch.names())
        try:
            report = self._write(batch)
        except CheckViolation:
            # No month takes a row: one was detached since we looked. Look again; making it says why it may not exist.
            self.tiers.refresh()
            make_months(self.database, batch.months())
            report = self._write(batch)
        self._note_fields(batch)
        return report

    def _note_fields(self, batch: Batch) -> None:
        """After the batch and apart from it: its rows are shared by all writers, who would wait for each other.

        The batch is written: whatever goes wrong here is told to the log and not to the caller, who would write it again.
        """
        try:
            with self.database.transaction() as connection:
                connection.execute("SET LOCAL synchronous_commit = off")  # losing a look at a batch loses no record
                fields.note(connection, batch.events, batch.attempts)
        except Exception:
            log.exception("the fields of a batch were not noted; its records are written")

    def _write(self, batch: Batch) -> InsertReport:
        try:
            with self.database.transaction() as connection:
                return batch.write(connection)
        except DiskFull as error:
            raise ServerError(
                "the database's disk is full; nothing of this batch was written: free some space"
            ) from error
        except psycopg.Error as error:
            if error.sqlstate == "LS001":
                raise PartitionError(f"{error.diag.message_primary}; {error.diag.message_hint}") from error
            raise

    def _make_months(self, months: set[Month], now: datetime) -> None:
        """Make what is missing, and while at it what is needed soon."""
        states = self.tiers.map().states
        if all(states.get(month) == "open" for month in months):
            return
        ahead = now + timedelta(days=self.settings.ahead)
        soon = {(parent, partitions.month_of(time)) for parent in ("events", "attempts") for time in (now, ahead)}
        make_months(self.database, months | {month for month in soon if month not in states})
        self.tiers.refresh()

    def _note_names(self, tenants: set[str], pairs: set[tuple[str, str]], topics: set[str]) -> None:
        """Write names that are new to this process: before and apart from the batch, so that no writer waits for it."""
        known = statements("postgres", "store")
        found: dict[str, set[Any]] = {"tenants": tenants, "destinations": pairs, "topics": topics}
        new = {kind: sorted(names - self._known[kind]) for kind, names in found.items()}
        if not any(new.values()):
            return
        with self.database.transaction() as connection:
            if new["tenants"]:
                connection.execute(known["note_tenants"], [new["tenants"]])
            if new["destinations"]:
                columns = [list(column) for column in zip(*new["destinations"], strict=True)]
                connection.execute(known["note_destinations"], columns)
            if new["topics"]:
                connection.execute(known["note_topics"], [new["topics"]])
        with self._lock:
            for kind, names in found.items():
                self._known[kind] |= names

    # Reading

    def list_event(
        self,
        selection: Selection = Selection(),
        *,
        limit: int = 100,
        next: str | None = None,
        prev: str | None = None,
        order: str = "desc",
    ) -> Page[Event]:
        """A page of events in the order of (time, id)."""
        if selection.status is not None:
            raise InvalidSelection("events have no status; list_attempt answers which deliveries failed")
        if selection.destination_ids:
            raise Unimplemented("events are destination-agnostic: use list_attempt to select by destination")
        return cast("Page[Event]", self._list("event", selection, limit=limit, next=next, prev=prev, order=order))

    def list_attempt(
        self,
        selection: Selection = Selection(),
        *,
        limit: int = 100,
        next: str | None = None,
        prev: str | None = None,
        order: str = "desc",
    ) -> Page[Attempt]:
        """A page of attempts in the order of (time, id)."""
        return cast("Page[Attempt]", self._list("attempt", selection, limit=limit, next=next, prev=prev, order=order))

    def lister(self, kind: Kind) -> Callable[..., Page[Any]]:
        """`list_event` or `list_attempt`, for whoever learns only then which."""
        return self.list_event if kind == "event" else self.list_attempt

    def retrieve_event(
        self, event_id: str, *, tenant_id: str | None = None, destination_id: str | None = None
    ) -> Event | None:
        """The newest event of that id; with a destination only if an attempt went there."""

        def accepts(event: Event) -> bool:
            own = tenant_id is None or event.tenant_id == tenant_id
            return own and (destination_id is None or self._was_sent(event, destination_id))

        event: Event | None = self.tiers.lookup("event", event_id, accepts)
        if event is None or destination_id is None:
            return event
        return replace(event, destination_id=destination_id)

    def retrieve_attempt(self, attempt_id: str, *, tenant_id: str | None = None) -> Attempt | None:
        """The newest attempt of that id."""
        found = self.tiers.lookup("attempt", attempt_id, lambda a: tenant_id is None or a.tenant_id == tenant_id)
        return cast("Attempt | None", found)

    def explain(self, selection: Selection = Selection(), kind: Kind = "attempt") -> Explanation:
        """What the engines would do for a page of this selection; nothing is run."""
        return explain(self.tiers, selection, kind)

    def event_metrics(
        self,
        start: datetime,
        end: datetime,
        *,
        selection: Selection = Selection(),
        measures: Iterable[str] = ("count",),
        dimensions: Iterable[str] = (),
        granularity: str | None = None,
    ) -> Metrics:
        """Events counted over [start, end), by bucket and dimensions; `destination_id` is the publish input."""
        shape: dict[str, Any] = {"measures": measures, "dimensions": dimensions, "granularity": granularity}
        return metrics.measure(self.tiers, "event", start, end, selection=selection, **shape)

    def attempt_metrics(
        self,
        start: datetime,
        end: datetime,
        *,
        selection: Selection = Selection(),
        measures: Iterable[str] = ("count",),
        dimensions: Iterable[str] = (),
        granularity: str | None = None,
    ) -> Metrics:
        """Attempts measured over [start, end), by bucket and dimensions.

        Roll-ups answer by themselves, exactly as the scan would, when `metrics.rollups.serves` says so: whole hours by
        tenant and status, or whole days by tenant, destination, topic, status and code; no percentiles, no `where`.
        """
        shape: dict[str, Any] = {"measures": measures, "dimensions": dimensions, "granularity": granularity}
        return metrics.measure(self.tiers, "attempt", start, end, selection=selection, **shape)

    def _was_sent(self, event: Event, destination_id: str) -> bool:
        sent = Selection(tenant_ids=(event.tenant_id,), event_ids=(event.id,), destination_ids=(destination_id,))
        return bool(self.list_attempt(sent, limit=1).data)

    def _list(
        self, kind: Kind, selection: Selection, *, limit: int, next: str | None, prev: str | None, order: str
    ) -> Page[Any]:
        _check_page(selection, limit, next, prev, order)
        backward = prev is not None
        token = prev if backward else next
        position = None if token is None else cursor.decode(kind, token)
        ascending = (order == "asc") != backward
        found = self.tiers.page(kind, selection, position=position, ascending=ascending, limit=limit + 1)
        more = len(found.records) > limit
        turned = slice(None, None, -1 if backward else 1)
        data, tiers = tuple(found.records[:limit][turned]), tuple(found.tiers[:limit][turned])
        newer, older = _neighbours(kind, data, position=position, backward=backward, more=more, order=order)

        def turn(**where: str) -> Page[Any]:
            return self._list(kind, selection, limit=limit, next=where.get("next"), prev=where.get("prev"), order=order)

        return Page(
            data=data,
            next=older,
            prev=newer,
            tiers=tiers,
            warnings=tuple(found.warnings),
            order=order,
            kind=cast("type[Any]", RECORDS[kind]),
            turn=turn,
        )


def _check_page(selection: object, limit: object, next: object, prev: object, order: object) -> None:
    if not isinstance(selection, Selection):
        raise InvalidSelection("the selection must be a Selection(…)")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT_MOST:
        raise InvalidSelection(f"limit is {limit!r}; it must be a whole number from 1 to {LIMIT_MOST}")
    if next is not None and prev is not None:
        raise InvalidSelection("next and prev are both given; a page can turn only one way")
    if order not in ("asc", "desc"):
        raise InvalidSelection(f"order is {order!r}; it must be 'asc' or 'desc'")


def _neighbours(
    kind: Kind, data: tuple[Any, ...], *, position: Position | None, backward: bool, more: bool, order: str
) -> tuple[str | None, str | None]:
    """The cursors before and after a page. An empty page beyond the end keeps a way back over its own cursor."""
    if data:
        before, after = (cursor.encode(kind, Position(edge.time, edge.id)) for edge in (data[0], data[-1]))
    elif position is not None:
        before = after = cursor.encode(kind, _just_past(position, up=(order == "asc") != backward))
    else:
        return None, None
    has_before = more if backward else position is not None
    has_after = True if backward else more
    return before if has_before else None, after if has_after else None


def _just_past(position: Position, *, up: bool) -> Position:
    """A position from which turning round shows the record at `position` again."""
    if not up:
        return Position(position.time, "")
    try:
        return Position(from_micros(to_micros(position.time) + 1), "")
    except OverflowError:  # the end of the year 9999; nothing can be stored there
        return position
