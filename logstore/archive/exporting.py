"""A closed month becomes sealed segments, and is served from them; nothing is trusted before it is re-read."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from logstore import partitions, sealing, segments
from logstore.archive import catalog
from logstore.errors import ArchiveError
from logstore.faults import fault
from logstore.segments import Segment
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import JSON_COLUMNS

SEGMENT_ROWS = 500_000
Progress = Callable[[int, int], None]  # rows done, rows in all


def export(
    store: LogStore, partition: str, *, segment_rows: int = SEGMENT_ROWS, progress: Progress | None = None
) -> list[Segment]:
    """Close a month and write it as sealed segments; what is sealed already is left alone."""
    parent, month = partitions.parse_name(partition)
    with catalog.alone(store, partition) as connection:
        catalog.require_folder(store, connection)
        state = partitions.state_of(connection, parent, month)
        if state in ("cold", "purged"):
            return catalog.of_month(connection, parent, month, "sealed")
        partitions.close(store.database, partition)
        fault("export.closed")
        total = partitions.count_rows(connection, partition)
        sealed = catalog.of_month(connection, parent, month, "sealed")
        if sum(segment.rows for segment in sealed) == total:
            return sealed
        # A run that was killed half-way, or files that turned out bad. No reader uses these yet: the month is served
        # from PostgreSQL until the flip.
        catalog.discard(
            store, connection, catalog.of_month(connection, parent, month, "sealed", "writing", "quarantined")
        )
        with stream(store, partition) as tables:
            return list(seal_all(store, connection, parent, month, tables, segment_rows, progress, total))


def flip(store: LogStore, partition: str) -> None:
    """Serve a month from its segments from now on; its table stays for undo."""
    parent, month = partitions.parse_name(partition)
    with store.database.connection() as connection:
        partitions.lock(connection, parent, month)
        state = partitions.state_of(connection, parent, month)
        if state == "cold":
            return
        if state != "closed":
            raise ArchiveError(f"{partition} is {state}; close and export it before it can be served from the archive")
        total = partitions.count_rows(connection, partition)
        if partitions.sealed_rows(connection, parent, month) != total:
            raise ArchiveError(f"{partition} has {total} rows but its sealed segments do not: export it first")
        partitions.note(connection, parent, month, "cold")


def seal_all(
    store: LogStore,
    connection: psycopg.Connection[Any],
    parent: str,
    month: date,
    tables: Iterator[pa.Table],
    segment_rows: int,
    progress: Progress | None,
    total: int,
    replaces: list[str] | None = None,
) -> Iterator[Segment]:
    """Segment after segment until the rows end. Compaction (`replaces`) leaves them `writing`: it swaps all at once."""
    archive, offset, created = store.settings.archive, 0, datetime.now(UTC)
    first = next(tables, None)
    while first is not None:
        draft = sealing.new_draft(parent, month, offset, uuid.uuid4().hex, replaces or (), created=created, total=total)
        connection.execute(statements("postgres", "segments")["begin"], asdict(draft))
        fault("export.begun")
        rest = _Until(first, tables, segment_rows)
        segment = sealing.write(archive, draft, rest)
        sealing.check(archive, segment)
        fault("export.checked")
        if replaces is None:
            catalog.seal(connection, segment)
        fault("export.sealed")
        offset, first = segment.end_offset, rest.beyond
        if progress:
            progress(offset, total)
        yield segment


class _Until:
    """Tables until a number of rows is reached; what comes next is kept in `beyond`."""

    def __init__(self, first: pa.Table, tables: Iterator[pa.Table], rows: int) -> None:
        self.beyond: pa.Table | None = first
        self._tables = tables
        self._rows = rows

    def __iter__(self) -> Iterator[pa.Table]:
        left = self._rows
        while self.beyond is not None and left > 0:
            table, self.beyond = self.beyond, None
            if table.num_rows > left:
                table, self.beyond = table.slice(0, left), table.slice(left)
            left -= table.num_rows
            yield table
            if self.beyond is None:
                self.beyond = next(self._tables, None)


def export_query(partition: str) -> str:
    """The statement by which a month leaves: in order, JSON as the text that goes into the segment."""
    parent, _ = partitions.parse_name(partition)
    columns = [
        sql.SQL("{0}::text AS {0}").format(sql.Identifier(n)) if n in JSON_COLUMNS else sql.Identifier(n)
        for n in segments.schema(parent).names
    ]
    query = sql.SQL("SELECT {} FROM {} ORDER BY time, id").format(
        sql.SQL(", ").join(columns), sql.Identifier(partition)
    )
    return query.as_string()


@contextlib.contextmanager
def stream(store: LogStore, partition: str) -> Iterator[Iterator[pa.Table]]:
    """The rows of a month in order, as Arrow straight from PostgreSQL's binary COPY."""
    from adbc_driver_postgresql import dbapi

    parent, _ = partitions.parse_name(partition)
    try:
        with (
            dbapi.connect(store.database.address("-c timezone=UTC")) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(export_query(partition))
            batches = cursor.fetch_record_batch()
            yield sealing.row_groups(pa.Table.from_batches([batch]).cast(segments.schema(parent)) for batch in batches)
    except (dbapi.Error, pa.ArrowException) as error:  # they belong to no tree of ours
        said = str(error).splitlines()[0]
        raise ArchiveError(f"PostgreSQL did not give all rows of {partition}: {said}; try again") from error
