"""What staged months need before they are merged: indexes, estimates, roll-ups, names and fields, on all cores at once.

Each of these takes one core and reads the rows from their first to their last, and nobody waits for it; so it happens here
and not inside the merge.
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from logstore import fields, metrics, partitions
from logstore.errors import LoadError
from logstore.faults import fault
from logstore.pipeline.place import Staged, columns_of
from logstore.postgres import Database
from logstore.statements import statements
from logstore.tables import JSON_COLUMNS

log = logging.getLogger(__name__)
_STEM = 56  # characters of a name, which has 63 at most, before the _idx and a number


def estimate(database: Database, load: int) -> None:
    """Give all staging tables their statistics. Not beside the indexes: ANALYZE would wait for each of them."""
    with database.connection(autocommit=True) as connection:
        tables = connection.execute(statements("postgres", "loads")["staging_tables"], {"load": load}).fetchall()
        for name, _, parent, _, _ in tables:
            _analyze(connection, name, parent)


def prepare(database: Database, tables: Sequence[Staged]) -> None:
    """Give the months that do not exist yet their indexes and roll-ups; note which names and fields all of them hold."""
    with database.connection(autocommit=True) as connection:
        new = [table for table in tables if not _exists(connection, table)]
        indexes = [(table, *index) for table in new for index in _indexes(connection, table)]
    doubled: list[Staged] = []

    def key_and_describe(table: Staged) -> None:
        if _make_key(database, table):
            _describe(database, table, counted=True)
        else:
            doubled.append(table)

    steps = [partial(key_and_describe, table) for table in new]
    steps += [partial(_describe, database, table, counted=False) for table in tables if table not in new]
    _all([*steps, *(partial(_make_index, database, *index) for index in indexes)])
    _all([partial(_single_out, database, table) for table in doubled])
    with database.connection(autocommit=True) as connection:
        for table in new:
            key = sql.SQL("ALTER TABLE {} ADD PRIMARY KEY USING INDEX {}")
            connection.execute(key.format(sql.Identifier(table.name), _key_name(table)))


def _all(steps: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        try:
            for done in as_completed([pool.submit(step) for step in steps]):
                done.result()
        except BaseException:  # also Ctrl-C: what runs comes to its end, what waits must not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _exists(connection: psycopg.Connection[Any], table: Staged) -> bool:
    values = {"parent": table.parent, "month": table.month}
    return connection.execute(statements("postgres", "partitions")["month_state"], values).fetchone() is not None


def _key_name(table: Staged) -> sql.Identifier:
    return sql.Identifier(f"{table.name}_pkey")


def _make_key(database: Database, table: Staged) -> bool:
    """The index of the primary key; False where rows have the same key. It becomes the key at last, which needs a lock."""
    key = sql.SQL("CREATE UNIQUE INDEX {} ON {} (time, id)").format(_key_name(table), sql.Identifier(table.name))
    with _indexing(database, table) as connection:
        try:
            connection.execute(key)
        except psycopg.errors.UniqueViolation:
            return False
    return True


def _indexes(connection: psycopg.Connection[Any], table: Staged) -> Iterator[tuple[str, str]]:
    """The names and definitions of the indexes that a new month needs, named as PostgreSQL would one after the other.

    It is not left to name them: two that are made at the same time and look alike would get the same name.
    """
    taken: Counter[str] = Counter()
    values = {"parent": table.parent}
    for columns, definition in connection.execute(statements("postgres", "pipeline")["index_definitions"], values):
        stem = f"{table.name}_{columns}"[:_STEM]
        yield f"{stem}_idx{taken[stem] or ''}", definition
        taken[stem] += 1


def _make_index(database: Database, table: Staged, name: str, definition: str) -> None:
    with _indexing(database, table) as connection:
        connection.execute(
            sql.SQL("CREATE INDEX {} ON {}{}").format(
                sql.Identifier(name), sql.Identifier(table.name), sql.SQL(definition)
            )
        )


def _single_out(database: Database, table: Staged) -> None:
    """Of rows with the same key the one with the greatest path and position stays."""
    with database.connection(autocommit=True) as connection:
        connection.execute(
            sql.SQL(
                "DELETE FROM {table} USING (SELECT ctid AS place, row_number() OVER"
                " (PARTITION BY time, id ORDER BY file DESC, position DESC) AS rank FROM {table}) AS ranked"
                " WHERE {table}.ctid = ranked.place AND ranked.rank > 1"
            ).format(table=sql.Identifier(table.name))
        )
        _analyze(connection, table.name, table.parent)
    if not _make_key(database, table):
        raise LoadError(f"rows of {table.name} have the same key still; nothing was loaded")
    _describe(database, table, counted=True)


def _describe(database: Database, table: Staged, *, counted: bool) -> None:
    """Count a new month, and write which names and fields occur, apart from the merge: no other writer of a new name waits.

    No load fails for want of a field.
    """
    names = table.name
    with database.connection(autocommit=True) as connection:
        if counted:
            names = table.counts
            connection.execute("SET work_mem = '128MB'")
            metrics.count_table(connection, table.parent, table.name, names)
        partitions.note_names(connection, table.parent, names)
        try:
            fields.note_table(connection, table.name, "event" if table.parent == "events" else "attempt", table.rows)
        except Exception:
            log.exception("the fields of %s were not noted; the load goes on", table.name)
    fault("load.described")


def _analyze(connection: psycopg.Connection[Any], name: str, parent: str) -> None:
    """Payloads are left out: no plan asks for their histogram, and sorting them takes longer than all the rest."""
    columns = sql.SQL(", ").join(sql.Identifier(column) for column in columns_of(parent) if column not in JSON_COLUMNS)
    connection.execute(sql.SQL("ANALYZE {} ({})").format(sql.Identifier(name), columns))


@contextmanager
def _indexing(database: Database, table: Staged) -> Iterator[psycopg.Connection[Any]]:
    with database.connection(autocommit=True) as connection:
        connection.execute(
            sql.SQL("SET maintenance_work_mem = {}").format(sql.Literal(f"{_sort_megabytes(table.rows)}MB"))
        )
        connection.execute("SET max_parallel_maintenance_workers = 0")
        yield connection


def _sort_megabytes(rows: int) -> int:
    """Memory to sort an index with: little, but enough for one merge of all its runs.

    Runs that fit the processor's cache sort faster than one of everything: six indexes of a million rows took 6.3 s with
    8 MB, 9.6 s with 256 MB. PostgreSQL merges as many runs at once as its memory has room for buffers of 264 KB.
    """
    entries = rows * 150 / 1e6  # MB; a row's entry in the widest index
    return max(8, math.isqrt(math.ceil(entries * 0.264)) + 1)
