"""Segments become a month in PostgreSQL again, compared before anybody can see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from logstore import partitions, sealing, segments
from logstore.archive import catalog
from logstore.archive.exporting import stream
from logstore.errors import ArchiveError
from logstore.faults import fault
from logstore.segments import Checksum
from logstore.store import LogStore


def restore(store: LogStore, partition: str) -> None:
    """Make a month writable in PostgreSQL again, from its table if that is still there, else from its segments."""
    parent, month = partitions.parse_name(partition)
    with catalog.alone(store, partition) as connection:
        state = partitions.state_of(connection, parent, month)
        if state == "cold" and partitions.table_exists(connection, partition):
            partitions.attach_again(store.database, partition)
            fault("restore.attached")
        elif state in ("cold", "purged"):
            _rebuild_table(store, partition)
        partitions.reopen(store.database, partition)


def _rebuild_table(store: LogStore, partition: str) -> None:
    """A purged month's table from its segments, compared with them before anybody can see it."""
    parent, month = partitions.parse_name(partition)
    archive = store.settings.archive
    with store.database.connection() as connection:
        listed = catalog.of_month(connection, parent, month, "sealed", "quarantined")
        for segment in listed:
            sealing.check(archive, segment)  # a quarantined one raises here: a month with a hole is not restored
        partitions.lock(connection, parent, month)
        # A table of a purged month is what a restore left that was killed before it had compared the rows.
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(partition)))
        partitions.make_table(connection, parent, partition)
        _copy_in(connection, parent, partition, sealing.read_rows(archive, listed))
        connection.commit()
    fault("restore.filled")
    again = Checksum(parent)
    with stream(store, partition) as tables:
        for table in tables:
            again.add(table)
    if listed and again.text != catalog.sums(archive, listed):
        with store.database.connection() as connection:
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(partition)))
        raise ArchiveError(f"{partition}: the restored rows differ from the segments; nothing was changed")
    with store.database.connection(autocommit=True) as connection:
        partitions.note_names(connection, parent, partition)  # a new database does not know them yet
    partitions.attach_again(store.database, partition)


def _copy_in(connection: psycopg.Connection[Any], parent: str, table: str, tables: Iterator[pa.Table]) -> None:
    names = segments.schema(parent).names
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with connection.cursor() as cursor, cursor.copy(copy) as stream:
        for part in tables:
            for row in zip(*(part.column(name).to_pylist() for name in names), strict=True):
                stream.write_row(row)
