"""Loads and dead letters: what was loaded from where, what could not be, and what became of that.

Everything here works without Spark; the pipeline fills these tables, pages and the command line read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from logstore import display, lines, partitions
from logstore.errors import LoadError, ServerError
from logstore.lines import COLUMNS, PARENT, Row
from logstore.postgres import Database
from logstore.settings import Settings
from logstore.statements import statements
from logstore.validation import Rejected, Rules

STATES = ("running", "done", "failed", "cancelled")
LETTER_STATES = ("open", "requeued", "resolved", "discarded")
# What PostgreSQL may refuse in a row that passed our own rules: numbers out of range, stack depth, sizes.
REFUSALS = (psycopg.DataError, psycopg.errors.StatementTooComplex, psycopg.errors.ProgramLimitExceeded)
_NOT_OPEN = ("LS001", "23514")  # the month was closed or detached since we looked


class HasDatabase(Protocol):
    """A LogStore, as far as loads need it."""

    database: Database
    settings: Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """One load: its sources, its state, and its figures, which are live while it runs."""

    id: int
    state: str
    stage: str
    forced: bool
    bytes: int
    bytes_read: int
    rows_read: int
    inserted: int
    updated: int
    skipped: int
    dead: int
    seconds: dict[str, float]
    error: str | None
    started: datetime
    changed: datetime
    finished: datetime | None
    sources: list[dict[str, Any]]
    alive: bool  # a process works on it; one that is running and not alive was killed, and the next load ends it

    def _repr_html_(self) -> str:
        names = ("state", "rows_read", "inserted", "updated", "skipped", "dead", "started", "finished", "error")
        values = {name.replace("_", " "): getattr(self, name) for name in names}
        values["seconds"] = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in self.seconds.items())
        values["sources"] = "\n".join(str(source["path"]) for source in self.sources)
        return display.fields(values, caption=f"load {self.id}", most=1000)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A row that could not be loaded: where it stood, what it said, and why."""

    id: int
    load: int
    file: str
    position: int
    line: int | None
    raw: str
    truncated: bool
    reason: str
    message: str
    state: str
    attempts: int
    first_seen: datetime
    last_seen: datetime
    corrected: str | None

    def _repr_html_(self) -> str:
        values = {name.replace("_", " "): getattr(self, name) for name in self.__slots__}
        return display.fields(values, caption=f"dead letter {self.id}", most=1000)


def history(store: HasDatabase, *, limit: int = 50) -> list[Load]:
    """The latest loads, newest first."""
    return _loads(store, id=None, limit=limit)


def get(store: HasDatabase, id: int) -> Load:
    found = _loads(store, id=id, limit=1)
    if not found:
        raise LoadError(f"there is no load {id}; see `python -m logstore loads`")
    return found[0]


def _loads(store: HasDatabase, *, id: int | None, limit: int) -> list[Load]:
    found = []
    for row in _fetch(store, "list_loads", {"id": id, "limit": limit}):
        running = row.pop("rows_running"), row.pop("bytes_running")
        if row["state"] == "running":  # the tasks' own figures are newer than what the driver last wrote
            row["rows_read"], row["bytes_read"] = max(row["rows_read"], running[0]), max(row["bytes_read"], running[1])
        found.append(Load(**row))
    return found


def dead_letters(
    store: HasDatabase,
    *,
    state: str | None = "open",
    load: int | None = None,
    reason: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[DeadLetter]:
    """Dead letters, newest first; `before` is the id that the last page ended with."""
    if state is not None and state not in LETTER_STATES:
        raise LoadError(f"unknown state {state!r}: use one of {', '.join(LETTER_STATES)}")
    values = {"id": None, "load": load, "state": state, "reason": reason, "before": before, "limit": limit}
    return [DeadLetter(**row) for row in _fetch(store, "list_letters", values)]


def dead_letter(store: HasDatabase, id: int) -> DeadLetter:
    values = {"id": id, "load": None, "state": None, "reason": None, "before": None, "limit": 1}
    for row in _fetch(store, "list_letters", values):
        return DeadLetter(**row)
    raise LoadError(f"there is no dead letter {id}; see `python -m logstore dead-letters list`")


def letter_counts(store: HasDatabase, *, load: int | None = None) -> list[tuple[str, str, int]]:
    """How many letters there are, of one load or of all, by (state, reason)."""
    return [(row["state"], row["reason"], row["letters"]) for row in _fetch(store, "count_letters", {"load": load})]


def discard(store: HasDatabase, id: int) -> None:
    """Say that a letter does not matter."""
    letter = dead_letter(store, id)
    _check_writable(store)
    with store.database.transaction() as connection:
        if connection.execute(statements("postgres", "loads")["discard"], {"id": id}).rowcount == 0:
            raise LoadError(f"dead letter {id} is {letter.state} already; only an open one can be discarded")


def requeue(store: HasDatabase, id: int, text: str | None = None) -> Row:
    """Load a letter's row, as it was or corrected; once, and together with the note that it happened."""
    letter = dead_letter(store, id)
    _check_writable(store)
    if letter.state != "open":
        raise LoadError(f"dead letter {id} is {letter.state} already; a letter is requeued once")
    if text is None and letter.truncated:
        raise LoadError(f"dead letter {id} keeps only part of its row: requeue it with the whole text")
    with store.database.transaction() as connection:
        states = partitions.read_map(connection).states
    rules = Rules.of(store.settings, states, now=datetime.now(UTC))
    if text is None:  # a row that was written anew when its month closed may have grown a little
        rules = replace(rules, row_bytes=max(rules.row_bytes, len(letter.raw.encode())))
    try:
        row = lines.parse(letter.raw if text is None else text, rules)
        _take(store, id, text, row)
    except Rejected as error:
        with store.database.transaction() as connection:
            values = {"id": id, "reason": error.reason, "message": str(error)}
            connection.execute(statements("postgres", "loads")["refuse_again"], values)
        raise LoadError(f"dead letter {id} is still refused ({error.reason}): {error}") from error
    return row


def _take(store: HasDatabase, id: int, text: str | None, row: Row) -> None:
    """Write the row, and that it is written."""
    month = PARENT[row.kind], partitions.month_of(row.time)
    try:
        partitions.ensure(store.database, [month])
        with store.database.transaction() as connection:
            values = {"id": id, "corrected": text}
            if connection.execute(statements("postgres", "loads")["take_letter"], values).rowcount == 0:
                raise LoadError(f"dead letter {id} was requeued or discarded by somebody else just now")
            _insert(connection, row)
    except psycopg.Error as error:
        said = error.diag.message_primary or str(error)
        if isinstance(error, REFUSALS):
            raise Rejected("refused", f"PostgreSQL refuses it: {said}") from error
        if error.sqlstate in _NOT_OPEN:
            name = partitions.partition_name(*month)
            raise Rejected(
                "month_not_open", f"{name} takes no rows: reopen it with `python -m logstore restore {name}`"
            ) from error
        raise LoadError(f"dead letter {id} could not be loaded now: {said}; try again") from error


def _insert(connection: psycopg.Connection[Any], row: Row) -> None:
    """The statements of insert_many, fed with the text as it stands; the triggers note new names."""
    known = statements("postgres", "store")
    arrays = [[value] for value in row.values]
    if row.kind == "event":
        connection.execute(known["insert_events"], arrays)
    elif not connection.execute(known["insert_attempts"], arrays).fetchall():
        by_name = dict(zip(COLUMNS["attempt"], arrays, strict=True))
        columns = ("time", "id", "status", "code", "response_data")
        connection.execute(known["update_attempts"], [by_name[name] for name in columns])


def sweep(database: Database) -> list[int]:
    """Clean up after loads whose driver is gone, however it went; returns which they were."""
    known = statements("postgres", "loads")
    gone = []
    with database.connection(autocommit=True) as connection:
        for (load,) in connection.execute(known["running"]).fetchall():
            if connection.execute(known["live_lock"], {"load": load}).fetchone() == (True,):
                abandon(connection, load, state="failed", error="the process that ran it is gone")
                connection.execute(known["live_unlock"], {"load": load})
                gone.append(int(load))
        # First what is left, then who lives: a load that begins in between is in neither.
        left = {row[1] for row in connection.execute(known["staging_tables"], {"load": None}).fetchall()}
        left |= {load for (load,) in connection.execute(known["orphans"]).fetchall()}
        alive = {load for (load,) in connection.execute(known["running"]).fetchall()}
        for load in sorted(left - alive):
            _clean(connection, load)
    return gone


def abandon(connection: psycopg.Connection[Any], load: int, *, state: str, error: str) -> None:
    """End a load without its rows: mark it, end its tasks, drop its staging. On an autocommit connection."""
    values = {"load": load, "state": state, "error": error[:2000]}
    connection.execute(statements("postgres", "loads")["fail"], values)
    _clean(connection, load)


def _clean(connection: psycopg.Connection[Any], load: int) -> None:
    known = statements("postgres", "loads")
    connection.execute(known["end_tasks"], {"application": application_name(load)})
    for name, *_ in connection.execute(known["staging_tables"], {"load": load}).fetchall():
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
    connection.execute(known["clean"], {"load": load})


def application_name(load: int) -> str:
    """What the tasks of a load call themselves in pg_stat_activity, so that they can be ended with it."""
    return f"logstore load {load}"


def _check_writable(store: HasDatabase) -> None:
    if store.database.role == "reader":
        raise ServerError("this store was opened to read: set LOGSTORE_ROLE=operator to change dead letters")


def _fetch(store: HasDatabase, name: str, values: dict[str, Any]) -> Sequence[dict[str, Any]]:
    with store.database.reading() as connection, connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statements("postgres", "loads")[name], values).fetchall()
