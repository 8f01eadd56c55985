"""The run log: every step of every run, when it starts and how it ends; rows are only ever added."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from logstore import display
from logstore.maintenance.steps import Plan, Step
from logstore.statements import statements
from logstore.store import LogStore


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What a step did."""

    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """The last word on one step of a run; `started` means that it is at work, or was killed."""

    run: uuid.UUID
    actor: str
    plan_hash: str
    step: int
    steps: int
    action: str
    partition: str
    sql: str
    result: str
    error: str | None
    rows: int | None
    bytes: int | None
    milliseconds: int | None
    time: datetime
    id: int = 0

    @property
    def what(self) -> str:
        return f"{self.action} {self.partition}".rstrip()

    @property
    def ends(self) -> bool:
        """Whether its run has nothing more to say."""
        return self.result == "failed" or (self.result == "done" and self.step == self.steps)


Progress = Callable[[Entry], None]


@dataclass(kw_only=True, slots=True)
class Run:
    """One run that writes its steps into the log as it goes; what it did is in `entries`."""

    actor: str
    plan: Plan
    run: uuid.UUID = field(default_factory=uuid.uuid4)
    entries: list[Entry] = field(default_factory=list)

    def _repr_html_(self) -> str:
        names = ("step", "action", "partition", "result", "rows", "bytes", "milliseconds", "error")
        rows = [[getattr(entry, name) for name in names] for entry in self.entries]
        return display.table(names, rows, caption=f"plan {self.plan.hash[:12]}, by {self.actor}", most=1000)

    def do(
        self,
        connection: psycopg.Connection[Any],
        number: int,
        work: Callable[[], Effect],
        progress: Progress | None,
    ) -> None:
        """Do one step; its start is in the log before it, its end after it, whichever way it ends."""
        start = time.monotonic()
        self._write(connection, number, "started", progress)
        try:
            effect = work()
        except Exception as error:
            taken = round((time.monotonic() - start) * 1000)
            self._write(connection, number, "failed", progress, error=f"{type(error).__name__}: {error}", taken=taken)
            raise
        taken = round((time.monotonic() - start) * 1000)
        self._write(connection, number, "done", progress, effect=effect, taken=taken)

    def _write(
        self,
        connection: psycopg.Connection[Any],
        number: int,
        result: str,
        progress: Progress | None,
        *,
        effect: Effect | None = None,
        error: str | None = None,
        taken: int | None = None,
    ) -> None:
        step: Step = self.plan.steps[number - 1]
        values: dict[str, Any] = {
            "run": self.run,
            "actor": self.actor,
            "plan_hash": self.plan.hash,
            "step": number,
            "steps": len(self.plan),
            "action": step.action,
            "partition": step.partition,
            "sql": step.sql,
            "result": result,
            "error": error,
            "rows": effect.rows if effect else None,
            "bytes": effect.bytes if effect else None,
            "milliseconds": taken,
        }
        row = connection.execute(statements("postgres", "maintenance")["record_run"], values).fetchone()
        assert row is not None
        entry = Entry(**values, id=row[0], time=row[1])
        if result != "started":
            self.entries.append(entry)
        if progress:
            progress(entry)


def log(store: LogStore, *, limit: int = 50, run: uuid.UUID | None = None) -> list[Entry]:
    """The last word on each step, newest first."""
    with store.database.connection(autocommit=True) as connection:
        return recent(connection, limit=limit, run=run)


def ever_ended(store: LogStore) -> bool:
    """Whether any run, of whomever, has come to its end."""
    with store.database.connection(autocommit=True) as connection:
        row = connection.execute(statements("postgres", "maintenance")["ever_ended"]).fetchone()
    return row == (True,)


def working(store: LogStore) -> list[Entry] | None:
    """The steps so far of the run that is at work, newest first; None when nobody works, none at all before the first."""
    with store.database.connection(autocommit=True) as connection:
        if connection.execute(statements("postgres", "maintenance")["lock_holder"]).fetchone() is None:
            return None
        last = recent(connection, limit=1)
        # One works at a time, so the newest word is the worker's own, unless it is the last one of a run that has ended.
        if not last or last[0].ends:
            return []
        return recent(connection, limit=last[0].steps, run=last[0].run)


def recent(connection: psycopg.Connection[Any], *, limit: int, run: uuid.UUID | None = None) -> list[Entry]:
    with connection.cursor(row_factory=class_row(Entry)) as cursor:
        values = {"limit": limit, "run": run}
        return cursor.execute(statements("postgres", "maintenance")["runs"], values).fetchall()
