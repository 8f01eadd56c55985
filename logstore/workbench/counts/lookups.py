"""What one statement tells: the names in a menu, the extent of the log, whose a destination is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg

from logstore.cursor import Kind
from logstore.statements import statements
from logstore.store import LogStore

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
    # Once more when the connection turns out to be dead, because servers are restarted.
    for last in (False, True):
        try:
            with store.database.reading() as connection:
                return connection.execute(statement, values).fetchall()
        except psycopg.errors.QueryCanceled:
            raise
        except psycopg.OperationalError:
            if last:
                raise
            store.database.forget_connections()
    raise AssertionError("unreachable")
