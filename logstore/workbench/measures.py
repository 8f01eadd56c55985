"""What is counted rather than listed: histograms, totals, rankings; over the whole range and both tiers.

Counts come from the store's metrics, and so from roll-ups wherever these know enough: then they cost the same however many
records there are. What has to read the records is asked through `later`, within a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Any, TypeVar

import pandas
import psycopg
from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError

from logstore import deadline, metrics, segments
from logstore.cursor import Kind
from logstore.errors import TooBroad
from logstore.metrics import Question, rollups
from logstore.records import Page, Selection, TimeFilter
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tiers import Map, stretches
from logstore.workbench import lasts
from logstore.workbench.bars import Bars
from logstore.workbench.times import Window

__all__ = ["TooBroad", "count", "extent", "histogram", "look_up", "names", "outcomes", "quick", "ranking", "totals"]

T = TypeVar("T")
SECONDS = 5.0
NAMES_MOST = 2000  # in a menu; longer ones are typed
OUTCOMES: dict[Kind, tuple[str, ...]] = {
    "attempt": ("failed", "success"),  # as bars are stacked: what needs attention stands on the ground
    "event": ("published",),  # what became of them takes a look at their attempts: workbench/fates.py
}
_DAY = timedelta(days=1)


def quick(kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> bool:
    """Whether a histogram needs no look at the records but those at the edges of the window."""
    asked = {"selection": selection, "granularity": Bars.of(window, zone).grain, "dimensions": _by(kind)}
    question = Question.of(kind, window.lower, window.upper, **asked)  # type: ignore[arg-type]
    short = window.span <= _DAY and selection.where is None
    return short or rollups.serves(question) is not None


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


def totals(store: LogStore, selection: Selection, window: Window) -> dict[str, int]:
    """How many attempts, failed attempts, and events published, in a window."""
    tried = measured(store, "attempt", selection, window, measures=("count", "failed_count"))
    published = measured(store, "event", selection.but(status=None, destination_ids=()), window)
    attempts, failed = tried.rows[0] if tried.rows else (0, 0)
    return {"attempts": attempts, "failed": failed, "events": published.rows[0][0] if published.rows else 0}


def ranking(store: LogStore, selection: Selection, window: Window, *, by: str) -> pandas.DataFrame:
    """Tenants or destinations, most failures first: attempts, failures, their rate and codes, last success and failure.

    `by` is a column or several, as `tenant_id` or `tenant_id,destination_id`, or `topic`.
    """
    names = tuple(by.split(","))
    ranked: dict[tuple[str, ...], _Rank] = {}
    for row in measured(store, "attempt", selection, window, dimensions=(*names, "status", "code")):
        rank = ranked.setdefault(tuple(row[name] for name in names), _Rank())
        rank.add(row["status"], row["code"] or "no code", row["count"])
    if "tenant_id" in names:
        for seen in lasts.seen(store, selection, window):
            rank_of = ranked.get(tuple(getattr(seen, name) for name in names))
            if rank_of is not None:
                rank_of.saw(seen.status, seen.time)
    rows = [(*key, *rank.row()) for key, rank in ranked.items()]
    order = sorted(rows, key=lambda row: (-row[len(names) + 1], -row[len(names)], row[: len(names)]))
    return pandas.DataFrame(order, columns=[*names, *_RANKED])


_RANKED = ("attempts", "failed", "rate", "codes", "last_success", "last_failure")


@dataclass(slots=True)
class _Rank:
    """What is known of one tenant or destination while its parts are added up."""

    tries: dict[str, int] = field(default_factory=lambda: {"success": 0, "failed": 0})
    last: dict[str, datetime] = field(default_factory=dict)
    codes: list[tuple[int, str]] = field(default_factory=list)

    def add(self, status: str, code: str, tries: int) -> None:
        self.tries[status] += tries
        if status == "failed":
            self.codes.append((tries, code))

    def saw(self, status: str, time: datetime) -> None:
        self.last[status] = max(time, self.last.get(status, time))

    def row(self) -> tuple[Any, ...]:
        attempts, failed = sum(self.tries.values()), self.tries["failed"]
        codes = ", ".join(f"{code} × {tries}" for tries, code in sorted(self.codes, reverse=True))
        rate = failed / attempts if attempts else 0.0
        return attempts, failed, rate, codes, self.last.get("success"), self.last.get("failed")


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
        months = [month for stretch in stretches(known.states, "attempts") for month in stretch.months]
        oldest = min(event.time for event in page)
        for segment in known.listed("attempts", months):
            if segment.state == "sealed" and segment.max_time and segment.max_time >= oldest:  # attempts follow events
                asked = [str(segment.path(store.settings.archive)), ids]
                rows += (
                    segments.engine().execute(statements("duckdb", "workbench")["outcomes_of_events"], asked).fetchall()
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
