"""What is counted rather than listed: histograms, totals, rankings; over the whole range and both tiers.

Counts come from the store's metrics, and so from roll-ups wherever these know enough: then they cost the same however many
records there are. What has to read the records is asked through `later`, within a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, TypeVar

import pandas
import psycopg
from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError

from logstore import deadline, metrics
from logstore.cursor import Kind
from logstore.errors import TooBroad
from logstore.metrics import Question, rollups
from logstore.records import Selection, TimeFilter
from logstore.statements import statements
from logstore.store import LogStore
from logstore.workbench import lasts
from logstore.workbench.bars import Bars
from logstore.workbench.outcomes import outcomes
from logstore.workbench.times import Window

__all__ = ["TooBroad", "count", "extent", "histogram", "look_up", "names", "outcomes", "quick", "ranking", "summary"]

T = TypeVar("T")
SECONDS = 5.0
NAMES_MOST = 2000  # in a menu; longer ones are typed
READ_MOST = 15_000  # records that are read for a count which roll-ups do not have; for more, somebody must ask
OUTCOMES: dict[Kind, tuple[str, ...]] = {
    "attempt": ("failed", "success"),  # as bars are stacked: what needs attention stands on the ground
    "event": ("published",),  # what became of them takes a look at their attempts: workbench/fates.py
}


def quick(kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> bool:
    """Whether a histogram needs no look at the records but those at the edges of the window."""
    asked = {"selection": selection, "granularity": Bars.of(window, zone).grain, "dimensions": _by(kind)}
    question = Question.of(kind, window.lower, window.upper, **asked)  # type: ignore[arg-type]
    return rollups.serves(question) is not None


def histogram(store: LogStore, kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> pandas.DataFrame:
    """Records per bar and outcome; `attrs` carry the bars' width and warnings of what could not be read."""
    bars = Bars.of(window, zone)
    found = measured(store, kind, selection, window, dimensions=_by(kind), granularity=bars.grain)
    counted: dict[tuple[datetime, str], int] = {}
    for row in found:
        if row["count"]:
            key = (
                bars.start(row["time"] if row["time"] >= bars.origin else bars.origin),
                row.get("status", "published"),
            )
            counted[key] = counted.get(key, 0) + row["count"]
    frame = bars.frame(counted, OUTCOMES[kind], window.upper)
    frame.attrs["warnings"] = found.warnings
    return frame


def _by(kind: Kind) -> tuple[str, ...]:
    return ("status",) if kind == "attempt" else ()


def measured(store: LogStore, kind: Kind, selection: Selection, window: Window, **asked: Any) -> metrics.Metrics:
    """The store's metrics over a window; a selection's own time is the window's matter."""
    selection = selection.but(time=TimeFilter())
    return metrics.measure(store.tiers, kind, window.lower, window.upper, selection=selection, **asked)


@dataclass(frozen=True, slots=True)
class Many:
    """So many records that they are not read without being asked."""

    records: int


def unless_many(
    store: LogStore,
    kind: Kind,
    selection: Selection,
    window: Window,
    count: Callable[[], T],
    *,
    everything: bool = False,
) -> T | Many:
    """What has to read all these records, if they are few enough, roll-ups cannot tell, or `everything` is wanted."""
    asked = Question.of(kind, window.lower, window.upper, selection=selection.but(time=TimeFilter()))
    if not everything and rollups.serves(asked) is not None:
        found = measured(store, kind, selection, window)
        if found.rows and found.rows[0][0] > READ_MOST:
            return Many(found.rows[0][0])
    return count()


def unread(*found: metrics.Metrics) -> tuple[str, ...]:
    """What several counts lack, each once."""
    return tuple(dict.fromkeys(warning for part in found for warning in part.warnings))


def ranking(store: LogStore, selection: Selection, window: Window, *, by: str) -> pandas.DataFrame:
    """Tenants or destinations, most failures first: attempts, failures, their rate and codes, last success and failure.

    `by` is a column or several, as `tenant_id` or `tenant_id,destination_id`, or `topic`. `unread` are the outcomes whose
    last time is in a file that cannot be read; `attrs` carry warnings.
    """
    names = tuple(by.split(","))
    ranks, warnings = _ranks(store, selection, window, names)
    return _ranked(ranks, names, warnings)


def tenants_and_destinations(store: LogStore, window: Window) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Both rankings of everybody; a tenant is the sum of its destinations, so they are read once."""
    ranks, warnings = _ranks(store, Selection(), window, ("tenant_id", "destination_id"))
    tenants: dict[tuple[str, ...], _Rank] = {}
    for (tenant, *_), rank in ranks.items():
        tenants.setdefault((tenant,), _Rank()).join(rank)
    return _ranked(tenants, ("tenant_id",), warnings), _ranked(ranks, ("tenant_id", "destination_id"), warnings)


def _ranks(
    store: LogStore, selection: Selection, window: Window, names: tuple[str, ...]
) -> tuple[dict[tuple[str, ...], _Rank], tuple[str, ...]]:
    ranks: dict[tuple[str, ...], _Rank] = {}
    found = measured(store, "attempt", selection, window, dimensions=(*names, "status", "code"))
    warnings = list(found.warnings)
    for *key, status, code, tries in found.rows:
        ranks.setdefault(tuple(key), _Rank()).add(status, code or "no code", tries)
    if "tenant_id" in names and selection == selection.but(topics=(), event_ids=(), where=None):
        newest, holes = lasts.seen(store, selection, window)
        warnings += holes
        for seen in newest:
            rank = ranks.get(tuple(getattr(seen, name) for name in names))
            if rank is not None:
                rank.saw(seen)
    return ranks, tuple(dict.fromkeys(warnings))


def _ranked(ranks: dict[tuple[str, ...], _Rank], names: tuple[str, ...], warnings: tuple[str, ...]) -> pandas.DataFrame:
    rows = [(*key, *rank.row()) for key, rank in ranks.items()]
    order = sorted(rows, key=lambda row: (-row[len(names) + 1], -row[len(names)], row[: len(names)]))
    frame = pandas.DataFrame(order, columns=[*names, *_RANKED])
    frame.attrs["warnings"] = warnings
    return frame


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """How much happened, and how each destination did; `warnings` name what could not be read."""

    events: int
    attempts: int
    failed: int
    destinations: pandas.DataFrame
    warnings: tuple[str, ...]


def summary(store: LogStore, selection: Selection, window: Window) -> Summary:
    """Events that were published in a window, and attempts of the same time."""
    ranked = ranking(store, selection, window, by="tenant_id,destination_id")
    published = measured(store, "event", selection.but(status=None, destination_ids=()), window)
    return Summary(
        events=published.rows[0][0] if published.rows else 0,
        attempts=int(ranked["attempts"].sum()),
        failed=int(ranked["failed"].sum()),
        destinations=ranked,
        warnings=tuple(dict.fromkeys((*ranked.attrs["warnings"], *published.warnings))),
    )


_RANKED = ("attempts", "failed", "rate", "codes", "last_success", "last_failure", "unread")


@dataclass(slots=True)
class _Rank:
    """What is known of one tenant or destination while its parts are added up."""

    tries: dict[str, int] = field(default_factory=lambda: {"success": 0, "failed": 0})
    last: dict[str, datetime] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    codes: dict[str, int] = field(default_factory=dict)  # of failures

    def add(self, status: str, code: str, tries: int) -> None:
        self.tries[status] += tries
        if status == "failed":
            self.codes[code] = self.codes.get(code, 0) + tries

    def join(self, other: _Rank) -> None:
        """Add what is known of a part."""
        for status in self.tries:
            self.tries[status] += other.tries[status]
        for code, tries in other.codes.items():
            self.codes[code] = self.codes.get(code, 0) + tries
        for status, time in other.last.items():
            self.last[status] = max(time, self.last.get(status, time))
        self.unread |= other.unread

    def saw(self, seen: lasts.Seen) -> None:
        if seen.time is None:
            self.unread.add(seen.status)
        else:
            self.last[seen.status] = max(seen.time, self.last.get(seen.status, seen.time))

    def row(self) -> tuple[Any, ...]:
        attempts, failed = sum(self.tries.values()), self.tries["failed"]
        codes = ", ".join(f"{code} × {tries}" for code, tries in sorted(self.codes.items(), key=_most))
        rate = failed / attempts if attempts else 0.0
        # What was counted, and has no time, has one that nobody can read.
        unread = self.unread | {status for status, tries in self.tries.items() if tries and status not in self.last}
        last = (None if status in unread else self.last.get(status) for status in ("success", "failed"))
        return attempts, failed, rate, codes, *last, frozenset(unread)


def _most(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def names(store: LogStore, what: str, **values: Any) -> list[str]:
    """The names of a menu: `tenants`, `topics`, `destinations` of some tenants, `all_destinations`."""
    return [row[0] for row in look_up(store, what, most=NAMES_MOST, **values)]


def extent(store: LogStore, kind: Kind) -> tuple[datetime, datetime] | None:
    """The first and the last time in the log, or None when it is empty."""
    first, last = look_up(store, f"extent_of_{kind}s")[0]
    return None if first is None else (first, last)


def look_up(store: LogStore, name: str, **values: Any) -> list[Any]:
    """The rows of a static statement."""
    statement = statements("postgres", "workbench")[name]
    return _read(store, lambda connection: list(_driver(connection).execute(statement, values).fetchall()))


def count(store: LogStore, statement: Executable) -> list[Any]:
    """The rows of a statement that may read a whole range; TooBroad when that takes too long."""

    def read(connection: Any) -> list[Any]:
        with deadline.limited(_driver(connection)):
            return [tuple(row) for row in connection.execute(statement)]

    if deadline.left() is not None:
        return _read(store, read)
    with deadline.within(SECONDS):
        return _read(store, read)


def _driver(connection: Any) -> psycopg.Connection[Any]:
    found: psycopg.Connection[Any] = connection.connection.driver_connection
    return found


def _read(store: LogStore, read: Callable[[Any], T]) -> T:
    """Read in a transaction; once more when the connection turns out to be dead, because servers are restarted."""
    for last in (False, True):
        try:
            with store.database.engine.begin() as connection:
                return read(connection)
        except (DBAPIError, psycopg.OperationalError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            dead = isinstance(cause, psycopg.OperationalError) and not isinstance(cause, psycopg.errors.QueryCanceled)
            if last or not dead:
                raise
            store.database.engine.dispose()
    raise AssertionError("unreachable")
