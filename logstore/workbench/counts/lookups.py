"""What one statement tells: the names in a menu, the extent of the log, whose a destination is; within a limit of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError

from logstore import deadline
from logstore.cursor import Kind
from logstore.statements import statements
from logstore.store import LogStore

T = TypeVar("T")

SECONDS = 5.0
NAMES_MOST = 2000  # in a menu; longer ones are typed


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
