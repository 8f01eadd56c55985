"""What is counted rather than listed: histograms, totals, rankings; in SQL, over the whole range, within a limit.

Counting reads every record of its range, so it gets a few seconds and then says that the range is too broad. Pages ask
for rows first and for counts after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any, TypeVar, cast

import pandas
import psycopg
from sqlalchemy import (
    ColumnElement,
    DateTime,
    Executable,
    Interval,
    Select,
    and_,
    case,
    distinct,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError

from logstore import segments
from logstore.cursor import Kind
from logstore.errors import LogstoreError, Unimplemented
from logstore.records import Page, Selection
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import BY_KIND, attempts, events
from logstore.tiers import Map, stretches
from logstore.workbench import times
from logstore.workbench.times import Window

T = TypeVar("T")
SECONDS = 5
NAMES_MOST = 2000  # in a menu; longer ones are typed
OUTCOMES: dict[Kind, tuple[str, ...]] = {
    "attempt": ("failed", "success"),  # as bars are stacked: what needs attention stands on the ground
    "event": ("not delivered", "never attempted", "delivered"),
}


class TooBroad(LogstoreError):
    """A count that did not finish in its time."""


def conditions(kind: Kind, selection: Selection, window: Window) -> list[ColumnElement[bool]]:
    """The predicates of a selection over a window."""
    if selection.where is not None:
        raise Unimplemented("counts do not take a filter expression yet: clear it to see them")
    columns = BY_KIND[kind].c
    named: dict[str, Sequence[str]] = {
        "tenant_id": selection.tenant_ids,
        "id" if kind == "event" else "event_id": selection.event_ids,
        "topic": selection.topics,
    }
    if kind == "attempt":
        status = (selection.status,) if selection.status else ()
        named |= {"destination_id": selection.destination_ids, "status": status}
    found = [_any_of(columns[name], values) for name, values in named.items() if values]
    return [*found, columns.time >= window.lower, columns.time < window.upper]


def _any_of(column: Any, values: Sequence[str]) -> ColumnElement[bool]:
    found = column == values[0] if len(values) == 1 else column.in_(values)
    return cast("ColumnElement[bool]", found)


def histogram(store: LogStore, kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> pandas.DataFrame:
    """Records per bar and outcome (`start`, `outcome`, `count`), with zeros where nothing happened.

    The one place that counts over time, so that roll-ups can answer here.
    """
    width = times.bar_width(window.span)
    origin = times.bar_origin(window.lower, width, zone)
    start = func.date_bin(literal(width, Interval), BY_KIND[kind].c.time, literal(origin, DateTime(timezone=True)))
    bars = _attempt_bars(selection, window, start) if kind == "attempt" else _event_bars(selection, window, start)
    counted = {(row[0], row[1]): int(row[2]) for row in count(store, bars)}
    starts = times.bar_starts(origin, window.upper, width)
    rows = [(at, outcome, counted.get((at, outcome), 0)) for outcome in OUTCOMES[kind] for at in starts]
    frame = pandas.DataFrame(rows, columns=["start", "outcome", "count"])
    frame.attrs["width"] = width
    return frame


def _attempt_bars(selection: Selection, window: Window, start: Any) -> Select[Any]:
    # Grouped by position: PostgreSQL takes the same parameters in two places for two different expressions.
    bars = select(start, attempts.c.status, func.count()).where(*conditions("attempt", selection, window))
    return bars.group_by(text("1"), text("2"))


def _event_bars(selection: Selection, window: Window, start: Any) -> Select[Any]:
    """Events by what became of them: every destination that was tried was reached, or not, or none was tried."""
    keys = (attempts.c.tenant_id, attempts.c.event_id, attempts.c.event_time)
    # An attempt follows its event: its own time prunes months, the event's time makes it exact.
    tried = [attempts.c.time >= window.lower, attempts.c.event_time >= window.lower]
    tried += [attempts.c.event_time < window.upper]
    if selection.tenant_ids:
        tried.append(_any_of(attempts.c.tenant_id, selection.tenant_ids))
    if selection.event_ids:
        tried.append(_any_of(attempts.c.event_id, selection.event_ids))
    reached = func.bool_or(attempts.c.status == "success").label("reached")
    each = select(*keys, reached).where(*tried).group_by(*keys, attempts.c.destination_id).subquery("each_destination")
    names = (each.c.tenant_id, each.c.event_id, each.c.event_time)
    fates = select(*names, func.bool_and(each.c.reached).label("everywhere")).group_by(*names).subquery("fates")
    same = and_(
        fates.c.tenant_id == events.c.tenant_id, fates.c.event_id == events.c.id, fates.c.event_time == events.c.time
    )
    missed, never, delivered = OUTCOMES["event"]
    outcome = case((fates.c.event_id.is_(None), never), (fates.c.everywhere, delivered), else_=missed)
    bars = select(start, outcome, func.count()).select_from(events.outerjoin(fates, same))
    return bars.where(*conditions("event", selection, window)).group_by(text("1"), text("2"))


def totals(store: LogStore, selection: Selection, window: Window) -> dict[str, int]:
    """How many attempts, failed attempts, destinations and tenants of attempts, and events published, in a window."""
    columns = attempts.c
    tried = select(
        func.count(),
        func.count().filter(columns.status == "failed"),
        func.count(distinct(columns.destination_id)),
        func.count(distinct(columns.tenant_id)),
    ).where(*conditions("attempt", selection, window))
    published = select(func.count()).select_from(events)
    published = published.where(*conditions("event", selection.but(status=None, destination_ids=()), window))
    numbers = [*count(store, tried)[0], *count(store, published)[0]]
    return dict(zip(("attempts", "failed", "destinations", "tenants", "events"), map(int, numbers), strict=True))


def ranking(store: LogStore, selection: Selection, window: Window, *, by: str) -> pandas.DataFrame:
    """Tenants or destinations, most failures first: attempts, failures, their rate and codes, last success and failure.

    `by` is a column or several, as `tenant_id` or `tenant_id,destination_id`.
    """
    names = by.split(",")
    keys = [attempts.c[name] for name in names]
    columns = (attempts.c.status, func.coalesce(attempts.c.code, "no code").label("code"))
    parts = select(*keys, *columns, func.count().label("attempts"), func.max(attempts.c.time).label("last"))
    parts = parts.where(*conditions("attempt", selection, window)).group_by(*keys, attempts.c.status, attempts.c.code)
    ranked: dict[tuple[str, ...], _Rank] = {}
    for *key, status, code, tries, last in count(store, parts):
        ranked.setdefault(tuple(key), _Rank()).add(status, code, tries, last)
    rows = [(*key, *rank.row()) for key, rank in ranked.items()]
    order = sorted(rows, key=lambda row: (-row[len(names) + 1], -row[len(names)], row))
    return pandas.DataFrame(order, columns=[*names, *_RANKED])


_RANKED = ("attempts", "failed", "rate", "codes", "last_success", "last_failure")


class _Rank:
    """What is known of one tenant or destination while its parts are added up."""

    def __init__(self) -> None:
        self.tries = {"success": 0, "failed": 0}
        self.last: dict[str, datetime] = {}
        self.codes: list[tuple[int, str]] = []

    def add(self, status: str, code: str, tries: int, last: datetime) -> None:
        self.tries[status] += tries
        self.last[status] = max(last, self.last.get(status, last))
        if status == "failed":
            self.codes.append((tries, code))

    def row(self) -> tuple[Any, ...]:
        attempts_, failed = sum(self.tries.values()), self.tries["failed"]
        codes = ", ".join(f"{code} × {tries}" for tries, code in sorted(self.codes, reverse=True))
        return attempts_, failed, failed / attempts_, codes, self.last.get("success"), self.last.get("failed")


def names(store: LogStore, what: str, **values: Any) -> list[str]:
    """The names of a menu: `tenants`, `topics`, `destinations` of some tenants, `all_destinations`."""
    return [row[0] for row in look_up(store, what, most=NAMES_MOST, **values)]


def extent(store: LogStore, kind: Kind) -> tuple[datetime, datetime] | None:
    """The first and the last time in the log, or None when it is empty."""
    first, last = look_up(store, f"extent_of_{kind}s")[0]
    return None if first is None else (first, last)


def outcomes(store: LogStore, page: Page[Any]) -> dict[tuple[str, str], list[bool]]:
    """Of the events of a page, by (tenant, id): was each destination reached that was tried? Over both tiers."""
    ids = [event.id for event in page]

    def read(connection: psycopg.Connection[Any], known: Map) -> list[Any]:
        rows = connection.execute(statements("postgres", "workbench")["outcomes_of_events"], {"events": ids}).fetchall()
        cold = [month for stretch in stretches(known.states, "attempts") for month in stretch.months]
        oldest = min(event.time for event in page)
        for segment in known.listed("attempts", cold):
            if segment.state == "sealed" and segment.max_time and segment.max_time >= oldest:  # attempts follow events
                path = str(segment.path(store.settings.archive))
                rows += (
                    segments.engine()
                    .execute(statements("duckdb", "workbench")["outcomes_of_events"], [path, ids])
                    .fetchall()
                )
        return rows

    reached: dict[tuple[str, str, str], bool] = {}
    for event, tenant, destination, success in store.tiers.steadily(read) if ids else ():
        reached[tenant, event, destination] = reached.get((tenant, event, destination), False) or success
    found: dict[tuple[str, str], list[bool]] = {}
    for (tenant, event, _), success in reached.items():
        found.setdefault((tenant, event), []).append(success)
    return found


def look_up(store: LogStore, name: str, **values: Any) -> list[Any]:
    """The rows of a static statement."""
    statement = statements("postgres", "workbench")[name]

    def read(connection: Any) -> list[Any]:
        return list(connection.connection.driver_connection.execute(statement, values).fetchall())

    return _read(store, read)


def count(store: LogStore, statement: Executable) -> list[Any]:
    """The rows of a statement that reads a whole range; TooBroad when that takes too long."""

    def read(connection: Any) -> list[Any]:
        connection.execute(text(f"SET LOCAL statement_timeout = '{SECONDS}s'"))
        return [tuple(row) for row in connection.execute(statement)]

    return _read(store, read)


def _read(store: LogStore, read: Callable[[Any], T]) -> T:
    """Read in a transaction; once more when the connection turns out to be dead, because servers are restarted."""
    for last in (False, True):
        try:
            with store.database.engine.begin() as connection:
                return read(connection)
        except (DBAPIError, psycopg.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if isinstance(cause, psycopg.errors.QueryCanceled):
                raise TooBroad(f"Too broad to count within {SECONDS} s: narrow the time or choose a tenant.") from error
            if last or not isinstance(cause, psycopg.OperationalError):
                raise
            store.database.engine.dispose()
    raise AssertionError("unreachable")
