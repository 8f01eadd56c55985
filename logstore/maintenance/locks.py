"""Patience: a step waits, without queueing, for those who hold what it needs; when that lasts too long, it says who."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg.errors import LockNotAvailable
from psycopg.rows import class_row

from logstore.errors import MaintenanceError
from logstore.maintenance.steps import Step
from logstore.postgres import Database
from logstore.records import rfc3339
from logstore.statements import statements

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a step waits. Each try that queues for a lock is bounded by the lock_timeout of `partitions`."""

    seconds: float = 20.0  # for those who hold it now; nobody queues behind us meanwhile
    tries: int = 3
    pause: float = 0.2  # between tries, so that who queued behind us gets through


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocker:
    """Somebody's open transaction."""

    pid: int
    application_name: str | None
    state: str | None
    xact_start: datetime | None
    query_start: datetime | None
    query: str | None

    @property
    def key(self) -> tuple[int, datetime | None]:
        return self.pid, self.xact_start

    def __str__(self) -> str:
        since = rfc3339(self.xact_start) if self.xact_start else "just now"
        asked = f", its last query since {rfc3339(self.query_start)}" if self.query_start else ""
        name, query = self.application_name or "no application name", " ".join((self.query or "").split())
        return f"process {self.pid} ({name}, {self.state}), in a transaction since {since}{asked}: {query[:120]}"


@contextlib.contextmanager
def the_only_one(database: Database, actor: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection outside the pool that holds the maintenance lock; who else holds it is named."""
    known = statements("postgres", "maintenance")
    with database.connection(autocommit=True) as connection:
        connection.execute("SELECT set_config('application_name', %s, false)", [f"logstore maintain ({actor})"[:63]])
        if connection.execute(known["take_lock"]).fetchone() != (True,):
            holder = connection.execute(known["lock_holder"]).fetchone()
            who = (
                f"process {holder[0]} ({holder[1]}), since {rfc3339(holder[2])}" if holder else "somebody, a moment ago"
            )
            raise MaintenanceError(f"maintenance is already at work: {who}. Wait until it is done, then plan again")
        yield connection  # closing it gives the lock back, and so does dying


def patiently(connection: psycopg.Connection[Any], step: Step, work: Callable[[], T], patience: Patience) -> T:
    """Do the work when nobody is in its way; give up, naming who was, when that does not come."""
    for left in reversed(range(patience.tries)):
        _wait(connection, step, patience)
        try:
            return work()
        except LockNotAvailable as error:
            if not left:
                raise _blocked(step, blockers(connection, step), queued=True) from error
            time.sleep(patience.pause)
    raise AssertionError("a Patience has at least one try")


def blockers(connection: psycopg.Connection[Any], step: Step) -> list[Blocker]:
    """Who holds what the step needs, the oldest transaction first."""
    with connection.cursor(row_factory=class_row(Blocker)) as cursor:
        return cursor.execute(statements("postgres", "maintenance")["blockers"], _needs(step)).fetchall()


def _needs(step: Step) -> dict[str, Any]:
    """What stands in a step's way: any lock on these tables, locks of writers on those, an old snapshot."""
    parent, name = step.table, step.partition
    anything: list[str] = []
    writers: list[str] = []
    if step.action in ("detach", "finalise"):
        anything = [parent, name]
    elif step.action in ("purge", "attach", "undo"):
        anything = [name]
    elif step.action == "close":
        writers = [name]
    return {"any": anything, "writers": writers, "snapshots": step.action == "finalise", "name": name}


def _wait(connection: psycopg.Connection[Any], step: Step, patience: Patience) -> None:
    """Wait for those who are there now; who comes later is no reason to wait longer, or it would never end."""
    first = {blocker.key for blocker in blockers(connection, step)}
    end = time.monotonic() + patience.seconds
    while first:
        still = [blocker for blocker in blockers(connection, step) if blocker.key in first]
        if not still:
            return
        if time.monotonic() >= end:
            raise _blocked(step, still)
        time.sleep(min(0.1, patience.seconds / 10))


def _blocked(step: Step, found: list[Blocker], *, queued: bool = False) -> MaintenanceError:
    who = "; ".join(str(blocker) for blocker in found[:3]) or "somebody who is gone by now"
    # Only a concurrent detach commits before it waits; its rows are served from the archive by then.
    half = queued and step.action == "detach"
    left = "It may be half done, and the next apply finalises it" if half else "This step changed nothing"
    return MaintenanceError(f"{step.what} waits for {who}. {left}: let that end, or end it, then plan and apply again")
