"""A closed month becomes verified segments, and segments become a month again; nothing is trusted before it is re-read."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
from psycopg import sql

from logstore import metrics, partitions, sealing, segments
from logstore.errors import ArchiveError
from logstore.faults import fault
from logstore.segments import Checksum, Segment
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import JSON_COLUMNS

SEGMENT_ROWS = 500_000
GRACE_SECONDS = 3600  # a retired file outlives every page that may still read it

_STATES = ("writing", "sealed", "quarantined", "retired")
_SUPERSEDED = "other files hold its rows, or newer ones"
Progress = Callable[[int, int], None]  # rows done, rows in all


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that verify or reconcile has to say."""

    what: str
    problem: str
    done: str = ""


def export(
    store: LogStore, partition: str, *, segment_rows: int = SEGMENT_ROWS, progress: Progress | None = None
) -> list[Segment]:
    """Close a month and write it as sealed segments; what is sealed already is left alone."""
    parent, month = partitions.parse_name(partition)
    with _alone(store, partition) as connection:
        state = partitions.state_of(connection, parent, month)
        if state in ("cold", "purged"):
            return _of_month(connection, parent, month, "sealed")
        partitions.close(store.database, partition)
        fault("export.closed")
        total = partitions.count_rows(connection, partition)
        sealed = _of_month(connection, parent, month, "sealed")
        if sum(segment.rows for segment in sealed) == total:
            return sealed
        # A run that was killed half-way, or files that turned out bad. No reader uses these yet: the month is served
        # from PostgreSQL until the flip.
        _discard(store, connection, _of_month(connection, parent, month, "sealed", "writing", "quarantined"))
        with _stream(store, partition) as tables:
            return list(_seal_all(store, connection, parent, month, tables, segment_rows, progress, total))


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


def verify(store: LogStore, partition: str | None = None, *, progress: Progress | None = None) -> list[Finding]:
    """Read every byte of every listed segment; quarantine what is bad, take back what turned out to be good."""
    found = []
    month = None if partition is None else partitions.parse_name(partition)
    with store.database.connection(autocommit=True) as connection:
        listed = [s for s in segments.listed(connection) if month in (None, (s.parent, s.month))]
        for number, segment in enumerate(listed, 1):
            finding = _verify_one(store, connection, segment)
            found += [finding] if finding else []
            if progress:
                progress(number, len(listed))
    return found


def _verify_one(store: LogStore, connection: psycopg.Connection[Any], segment: Segment) -> Finding | None:
    try:
        sealing.check(store.settings.archive, segment)
    except (ArchiveError, OSError, pa.ArrowException, duckdb.Error) as error:
        if not _set_state(connection, [segment], "quarantined", str(error)[:500]):
            return None  # it was retired while we read it: nobody misses it
        name = partitions.partition_name(segment.parent, segment.month)
        return Finding(what=segment.location, problem=str(error), done=f"quarantined; {_remedy(store, name)}")
    connection.execute(statements("postgres", "segments")["set_verified"], {"id": segment.segment_id})
    if segment.state == "quarantined" and _set_state(connection, [segment], "sealed"):
        return Finding(what=segment.location, problem="was quarantined but is good", done="sealed again")
    return None


def _remedy(store: LogStore, name: str) -> str:
    there = any(partition.name == name for partition in partitions.inventory(store.database))
    if there:
        return f"the table is still there: `python -m logstore restore {name}`, then export it again"
    return "bring the file back from a backup, then verify again"


def reconcile(store: LogStore) -> list[Finding]:
    """Compare folder and catalog both ways; clean what is certainly rubbish, report the rest."""
    archive = store.settings.archive
    with store.database.connection(autocommit=True) as connection:
        found = delete_expired(store, connection)
        writing = {(s.parent, s.month) for s in segments.fetch(connection, "all") if s.state == "writing"}
        for parent, month in sorted(writing):
            found += _clean(store, parent, month)
        # The folder first: a file is not begun before the catalog knows of it.
        paths = sorted(archive.glob("*/*/*.parquet"))
        catalogued = {segment.location: segment for segment in segments.fetch(connection, "all")}
    for place, segment in catalogued.items():
        if not (archive / place).exists() and segment.state in ("sealed", "quarantined"):
            found.append(Finding(what=place, problem="the catalog lists it, but there is no such file"))
    for path in paths:
        if str(path.relative_to(archive)) not in catalogued and path.exists():
            found.append(Finding(what=str(path.relative_to(archive)), problem="the catalog does not list this file"))
    return found


def _clean(store: LogStore, parent: str, month: date) -> list[Finding]:
    """Remove what a killed export or compaction left; one that is at work is left alone, and so is what it sealed since."""
    try:
        with _alone(store, partitions.partition_name(parent, month)) as connection:
            left = _of_month(connection, parent, month, "writing")
            _discard(store, connection, left)
    except ArchiveError:
        return []
    return [Finding(what=segment.location, problem="an export was killed", done="removed") for segment in left]


def retire(store: LogStore, partition: str, *, note: str) -> list[Segment]:
    """Take a purged month's segments from the readers; the files are deleted after their grace."""
    parent, month = partitions.parse_name(partition)
    with _alone(store, partition) as connection, connection.transaction():
        partitions.lock(connection, parent, month)
        state = partitions.state_of(connection, parent, month)
        if state != "purged":
            raise ArchiveError(f"{partition} is {state}: only a month that is purged can leave the archive")
        gone = _of_month(connection, parent, month, "sealed", "quarantined")
        _set_state(connection, gone, "retired", note)
        metrics.forget(connection, parent, month)  # what nobody can read any more is not counted either
        return gone


def delete_expired(store: LogStore, connection: psycopg.Connection[Any]) -> list[Finding]:
    """Delete the files that were retired so long ago that no page can still be reading them."""
    known = statements("postgres", "segments")
    expired = connection.execute(known["expired"], {"grace": GRACE_SECONDS}).fetchall()
    for segment_id, place in expired:
        (store.settings.archive / place).unlink(missing_ok=True)
        connection.execute(known["forget"], {"ids": [segment_id]})
    return [Finding(what=place, problem="retired, and its grace is over", done="deleted") for _, place in expired]


def compact(store: LogStore, partition: str, *, segment_rows: int = SEGMENT_ROWS) -> list[Segment]:
    """Many small segments of a month into few; readers see the old ones until the new ones take over at once."""
    parent, month = partitions.parse_name(partition)
    archive = store.settings.archive
    with _alone(store, partition) as connection:
        _discard(store, connection, _of_month(connection, parent, month, "writing"))
        if _of_month(connection, parent, month, "quarantined"):
            raise ArchiveError(
                f"{partition} has quarantined segments, and a compacted month must be whole: {_remedy(store, partition)}"
            )
        old = _of_month(connection, parent, month, "sealed")
        if len(old) <= 1:
            return old
        for segment in old:
            sealing.check(archive, segment)
        ids = [segment.segment_id for segment in old]
        tables, total = sealing.row_groups(sealing.read_rows(archive, old)), sum(segment.rows for segment in old)
        new = list(_seal_all(store, connection, parent, month, tables, segment_rows, None, total, replaces=ids))
        if _sums(archive, new) != _sums(archive, old):
            _discard(store, connection, new)
            raise ArchiveError(f"{partition}: the compacted rows differ from the old ones; the old ones stay")
        with connection.transaction():
            for segment in new:
                _seal(connection, segment)
            _set_state(connection, old, "retired", "compacted")
        fault("compact.swapped")
        return new


def restore(store: LogStore, partition: str) -> None:
    """Make a month writable in PostgreSQL again, from its table if that is still there, else from its segments."""
    parent, month = partitions.parse_name(partition)
    with _alone(store, partition) as connection:
        state = partitions.state_of(connection, parent, month)
        if state == "cold" and partitions.table_exists(connection, partition):
            partitions.attach_again(store.database, partition)
            fault("restore.attached")
        elif state in ("cold", "purged"):
            _rebuild_table(store, partition)
        partitions.reopen(store.database, partition)


def rebuild_catalog(store: LogStore) -> list[Finding]:
    """Write the catalog anew from the files' footers; what could not be listed is reported.

    What the catalog has stays as it is, above all what is retired, unless newer files hold all of a month that it lists.
    """
    archive = store.settings.archive
    found: list[Finding] = []
    files: dict[partitions.Month, list[Segment]] = {}
    for path in sorted(archive.glob("*/*/*.parquet"), key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            segment = sealing.read_footer(archive, path)
        except ArchiveError as error:
            found.append(Finding(what=str(path.relative_to(archive)), problem=str(error), done="left alone"))
        else:
            files.setdefault((segment.parent, segment.month), []).append(segment)
    for (parent, month), known in sorted(files.items()):
        name = partitions.partition_name(parent, month)
        try:
            with _alone(store, name) as connection, connection.transaction():
                partitions.lock(connection, parent, month)
                found += _list_again(store, connection, parent, month, known)
        except ArchiveError as error:
            found.append(Finding(what=name, problem=str(error), done="left alone"))
    return found


def _list_again(
    store: LogStore, connection: psycopg.Connection[Any], parent: str, month: date, files: list[Segment]
) -> Iterator[Finding]:
    name = partitions.partition_name(parent, month)
    state = partitions.state_of(connection, parent, month, missing="purged")
    known = {s.segment_id: s for s in _of_month(connection, parent, month, *_STATES)}
    listed = {s.segment_id: s for s in known.values() if s.state in ("sealed", "quarantined")}
    there = {s.segment_id: s for s in files if s.path(store.settings.archive).exists()}  # not deleted since we looked
    loose = [s for s in there.values() if s.segment_id not in known]
    if state in ("open", "closed"):
        for segment in loose:
            yield Finding(what=segment.location, problem=f"{name} is {state}: its table serves it", done="left alone")
        return
    of_listed = [there.get(segment_id, segment) for segment_id, segment in listed.items()]
    chosen, whole = segments.standing([*of_listed, *loose], listed.keys())
    new = [segment for segment in chosen if segment.segment_id not in listed]
    for segment in new:
        _record(connection, segment, "sealed")
    if new and state == "purged":
        partitions.note(connection, parent, month, "purged")
        metrics.doubt(connection, parent, month)
    if not whole:
        rows = sum(segment.rows for segment in chosen)
        yield Finding(what=name, problem=f"its files do not hold all of it; those that are listed have {rows} rows")
    others = [segment for segment in (*of_listed, *loose) if segment not in chosen]
    if whole:
        _set_state(connection, [s for s in others if s.segment_id in listed], "retired", _SUPERSEDED)
    for segment in others:
        if whole and segment.segment_id not in listed:
            _record(connection, replace(segment, note=_SUPERSEDED), "retired")
        yield Finding(what=segment.location, problem=_SUPERSEDED, done="retired" if whole else "left alone")


# Parts


@contextlib.contextmanager
def _alone(store: LogStore, partition: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that holds the month's archive lock; one export, compaction or restore of a month at a time."""
    with store.database.connection(autocommit=True) as connection:
        row = connection.execute(
            "SELECT pg_try_advisory_lock(hashtextextended('archive ' || %s, 0))", [partition]
        ).fetchone()
        if row != (True,):
            raise ArchiveError(f"another process is archiving {partition} right now; wait until it is done")
        yield connection


def _seal_all(
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
            _seal(connection, segment)
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
def _stream(store: LogStore, partition: str) -> Iterator[Iterator[pa.Table]]:
    """The rows of a month in order, as Arrow straight from PostgreSQL's binary COPY."""
    from adbc_driver_postgresql import dbapi

    parent, _ = partitions.parse_name(partition)
    with (
        dbapi.connect(store.database.conninfo) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute(export_query(partition))
        batches = cursor.fetch_record_batch()
        yield sealing.row_groups(pa.Table.from_batches([batch]).cast(segments.schema(parent)) for batch in batches)


def _rebuild_table(store: LogStore, partition: str) -> None:
    """A purged month's table from its segments, compared with them before anybody can see it."""
    parent, month = partitions.parse_name(partition)
    archive = store.settings.archive
    with store.database.connection() as connection:
        listed = _of_month(connection, parent, month, "sealed", "quarantined")
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
    with _stream(store, partition) as tables:
        for table in tables:
            again.add(table)
    if listed and again.text != _sums(archive, listed):
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


def _of_month(connection: psycopg.Connection[Any], parent: str, month: date, *states: str) -> list[Segment]:
    return segments.fetch(connection, "of_month", {"parent": parent, "month": month, "states": list(states)})


def _record(connection: psycopg.Connection[Any], segment: Segment, state: str) -> None:
    values = asdict(segment) | {"state": state, "replaces": list(segment.replaces)}
    connection.execute(statements("postgres", "segments")["record"], values)


def _seal(connection: psycopg.Connection[Any], segment: Segment) -> None:
    """List a segment that was re-read and compared."""
    _record(connection, segment, "sealed")
    connection.execute(statements("postgres", "segments")["set_verified"], {"id": segment.segment_id})


def _set_state(connection: psycopg.Connection[Any], listed: list[Segment], state: str, note: str | None = None) -> bool:
    """Whether any was still listed: what somebody retired meanwhile stays so."""
    values = {"ids": [segment.segment_id for segment in listed], "state": state, "note": note}
    return connection.execute(statements("postgres", "segments")["set_state"], values).rowcount > 0


def _discard(store: LogStore, connection: psycopg.Connection[Any], unwanted: list[Segment]) -> None:
    """Files first, then rows: a file without a row would be a riddle."""
    for segment in unwanted:
        path = segment.path(store.settings.archive)
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.tmp").unlink(missing_ok=True)
    ids = [segment.segment_id for segment in unwanted]
    connection.execute(statements("postgres", "segments")["forget"], {"ids": ids})


def _sums(archive: Path, listed: list[Segment]) -> str:
    """The checksum of several segments together, from their files: another DuckDB may have sealed them."""
    if not listed:
        return ""
    together = Checksum(listed[0].parent)
    for segment in listed:
        together.add_file(segment.path(archive))
    return together.text
