"""DuckDB with the views `events` and `attempts` over the archive's files, on request with the hot months beside them."""

from __future__ import annotations

import contextlib
import glob
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

import duckdb
import pyarrow as pa
from psycopg import sql

from logstore import cold, partitions, segments
from logstore.errors import ArchiveError, InvalidSelection
from logstore.segments import Segment
from logstore.store import LogStore
from logstore.tables import JSON_COLUMNS, PARENTS
from logstore.tiers import Map

Tiers = Literal["cold", "both"]
_HOT = ("open", "closed")
_TYPES = {
    pa.string(): "VARCHAR",
    pa.int32(): "INTEGER",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """The segments that can be read, and a sentence about each that cannot: never a silent gap."""

    segments: tuple[Segment, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, store: LogStore, known: Map) -> Archive:
        """The archive of one map. A month that PostgreSQL serves is not part of it: it may be exported by half."""
        readable: list[Segment] = []
        warnings: list[str] = []
        for month, listed in sorted(known.segments.items()):
            for segment in listed if known.states.get(month) not in _HOT else ():
                if segment.state != "sealed":
                    warnings.append(cold.hole(segment))
                elif not segment.path(store.settings.archive).is_file():
                    warnings.append(cold.hole(segment, "its file is gone"))
                else:
                    readable.append(segment)
        return cls(segments=tuple(readable), warnings=tuple(warnings))


def read_archive(store: LogStore) -> Archive:
    """The archive as the catalog lists it now."""
    return Archive.of(store, store.tiers.steadily(lambda _, known: known))


def connect(store: LogStore, *, tiers: Tiers = "cold") -> duckdb.DuckDBPyConnection:
    """A DuckDB connection of your own with the views `events` and `attempts`; parameters, DataFrames and Arrow are DuckDB's.

    JSON columns are text: `data->>'$.amount'` reads a field. With tiers="both" the hot months are copied in as they are now.
    A segment that cannot be read is warned about.
    """
    connection, missing = open_views(store, tiers)
    for warning in missing:
        warnings.warn(warning, stacklevel=2)
    return connection


def open_views(store: LogStore, tiers: Tiers) -> tuple[duckdb.DuckDBPyConnection, tuple[str, ...]]:
    """A new DuckDB with the views, and what is missing from them."""
    connection = blank(store)
    try:
        return connection, fill(store, connection, tiers)
    except BaseException:
        connection.close()
        raise


def blank(store: LogStore, *, memory: str | None = None) -> duckdb.DuckDBPyConnection:
    """A new DuckDB without views, so that whoever fills it can be watched and interrupted meanwhile."""
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "temp_directory": str(store.settings.home / "tmp"),
            **({"memory_limit": memory} if memory else {}),
        }
    )
    connection.execute("SET GLOBAL TimeZone = 'UTC'")  # cursors do not inherit a session's
    connection.execute("SET parquet_metadata_cache = true")  # sealed files do not change
    return connection


def fill(
    store: LogStore,
    connection: duckdb.DuckDBPyConnection,
    tiers: Tiers,
    *,
    go_on: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Make the views, and say what is missing from them. `go_on` is called between batches of hot rows; it may raise."""
    if tiers not in ("cold", "both"):
        raise InvalidSelection(f"tiers is {tiers!r}; it must be 'cold' or 'both'")

    def make(_: object, known: Map) -> tuple[str, ...]:
        archive = Archive.of(store, known)
        _views(store, connection, archive)
        if tiers == "both":
            for parent in PARENTS:
                moved = sorted(m for (p, m), state in known.states.items() if p == parent and state not in _HOT)
                _copy_hot(store, connection, parent, moved, go_on)
                both = connection.sql(f"SELECT * FROM cold_{parent} UNION ALL SELECT * FROM hot_{parent}")
                both.create_view(parent, replace=True)
        return archive.warnings

    return store.tiers.steadily(make)


def views_of(store: LogStore, archive: Archive) -> duckdb.DuckDBPyConnection:
    """A new DuckDB whose views are over these segments."""
    connection = blank(store)
    try:
        _views(store, connection, archive)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Whatever DuckDB says of a damaged file becomes a sentence that names the remedy."""
    try:
        yield
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except duckdb.Error as error:
        said = str(error).splitlines()[0]
        raise ArchiveError(f"the archive cannot be read: {said}; run `python -m logstore verify`") from error


def _views(store: LogStore, connection: duckdb.DuckDBPyConnection, archive: Archive) -> None:
    for parent in PARENTS:
        files = [str(s.path(store.settings.archive)) for s in archive.segments if s.parent == parent]
        if files:
            with reading():
                archived = connection.read_parquet([glob.escape(file) for file in files])
        else:  # an empty list of files has no columns
            nulls = ", ".join(f'NULL::{_TYPES[field.type]} AS "{field.name}"' for field in segments.schema(parent))
            archived = connection.sql(f"SELECT {nulls} WHERE false")
        archived.create_view(f"cold_{parent}", replace=True)
        connection.sql(f"SELECT * FROM cold_{parent}").create_view(parent, replace=True)


def column_types(parent: str) -> str:
    """The columns of a table's segments as DuckDB declares them."""
    return ", ".join(f'"{field.name}" {_TYPES[field.type]}' for field in segments.schema(parent))


def _copy_hot(
    store: LogStore,
    connection: duckdb.DuckDBPyConnection,
    parent: str,
    moved: list[date],
    go_on: Callable[[], None],
) -> None:
    """Stream the rows that PostgreSQL serves, as Arrow; those of cold months are in the files already."""
    from adbc_driver_postgresql import dbapi

    columns = [
        sql.SQL("{}::text").format(sql.Identifier(name)) if name in JSON_COLUMNS else sql.Identifier(name)
        for name in segments.schema(parent).names
    ]
    hot = [
        sql.SQL("NOT (time >= {} AND time < {})").format(*map(sql.Literal, partitions.month_bounds(month)))
        for month in moved
    ]
    query = sql.SQL("SELECT {} FROM {} WHERE {}").format(
        sql.SQL(", ").join(columns), sql.Identifier(parent), sql.SQL(" AND ").join([sql.SQL("true"), *hot])
    )
    address = store.database.address("-c timezone=UTC -c default_transaction_read_only=on -c jit=off")
    with dbapi.connect(address) as postgres, postgres.cursor() as cursor:
        go_on()
        cursor.execute(query.as_string())
        connection.execute(f"CREATE OR REPLACE TABLE hot_{parent} ({column_types(parent)})")
        for batch in cursor.fetch_record_batch():
            go_on()
            connection.register("incoming", batch)
            connection.execute(f"INSERT INTO hot_{parent} SELECT * FROM incoming")
        connection.unregister("incoming")
