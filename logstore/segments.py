"""The catalog of Parquet segments, and DuckDB's reading of the files that it lists.

A segment holds a run of one month of one table, sorted by (time, id): columns named and ordered as the table's, texts as
strings, JSON as the text that PostgreSQL gave, times as microseconds in UTC.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg.rows import class_row

from logstore import deadline
from logstore.cursor import Kind
from logstore.records import to_micros
from logstore.statements import statements
from logstore.tables import BY_KIND, TIME_COLUMNS

SCHEMA_VERSION = 1
ROW_GROUP = 20_000
KINDS: dict[str, Kind] = {"events": "event", "attempts": "attempt"}
_TYPES = {"attempt_number": pa.int32(), "manual": pa.bool_(), "eligible_for_retry": pa.bool_()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """One Parquet file and what the catalog says of it."""

    segment_id: str
    parent: str
    month: date
    base_offset: int
    end_offset: int
    rows: int
    bytes: int
    sha256: str
    checksum: str
    min_time: datetime | None
    max_time: datetime | None
    min_id: str | None
    max_id: str | None
    location: str
    schema_version: int = SCHEMA_VERSION
    replaces: Sequence[str] = ()
    state: str = "sealed"
    note: str | None = None
    created: datetime | None = None  # the same for all that were written together
    verified: datetime | None = None
    total: int = 0  # rows of all that were written together; only the footer says it

    def path(self, archive: Path) -> Path:
        return archive / self.location


def schema(parent: str) -> pa.Schema:
    """The Arrow schema of a table's segments."""
    table = BY_KIND[KINDS[parent]]
    return pa.schema(
        [
            pa.field(c.name, pa.timestamp("us", "UTC") if c.name in TIME_COLUMNS else _TYPES.get(c.name, pa.string()))
            for c in table.columns
        ]
    )


def listed(connection: psycopg.Connection[Any]) -> list[Segment]:
    """The segments that readers use (sealed) or must warn about (quarantined)."""
    return fetch(connection, "listed")


def fetch(connection: psycopg.Connection[Any], name: str, values: dict[str, Any] | None = None) -> list[Segment]:
    """The segments that one of the catalog's statements gives."""
    with connection.cursor(row_factory=class_row(Segment)) as cursor:
        return cursor.execute(statements("postgres", "segments")[name], values).fetchall()


_NEVER = datetime.min.replace(tzinfo=UTC)


def standing(files: Sequence[Segment], listed: Set[str]) -> tuple[list[Segment], bool]:
    """Of all files of a month, those that the catalog should list, and whether they hold the whole month.

    Files that were written together make a generation; two of them hold the same rows, or one of them older rows. The newest
    whole one stands, but none that is older than what is listed. Where a write was cut short or files are gone, and there is
    none, what is listed stands; and if nothing is, the generation with the most rows.
    """
    generations: dict[Any, list[Segment]] = {}
    for file in sorted(files, key=lambda file: file.base_offset):
        generations.setdefault((file.created, *file.replaces), []).append(file)
    rows = {file.segment_id: file.rows for file in files}
    since = max((_age(file) for file in files if file.segment_id in listed), default=_NEVER)
    whole = [
        made
        for made in generations.values()
        if _is_whole(made, rows) and (_age(made[0]) >= since or not listed.isdisjoint(made[0].replaces))
    ]
    replaced = {segment_id for made in whole for segment_id in made[0].replaces}
    if whole:
        return max(whole, key=lambda made: (made[0].segment_id not in replaced, _age(made[0]))), True
    known = [made for made in generations.values() if any(file.segment_id in listed for file in made)]
    most = sorted(generations.values(), key=lambda made: sum(file.rows for file in made))[-1:]
    return _apart([file for made in known or most for file in made]), not files


def _age(file: Segment) -> datetime:
    return file.created or _NEVER


def _is_whole(files: Sequence[Segment], rows: dict[str, int]) -> bool:
    """Whether a generation has every row; one that does not say how many there are is measured by what it replaces."""
    ends = [0, *(file.end_offset for file in files)]
    replaced = [rows.get(segment_id) for segment_id in files[0].replaces]
    known = sum(count or 0 for count in replaced) if replaced and None not in replaced else ends[-1]
    return [file.base_offset for file in files] == ends[:-1] and ends[-1] == (files[0].total or known)


def _apart(files: Sequence[Segment]) -> list[Segment]:
    """Files without those that overlap the one before: two exports that do not say when they were made look like one."""
    kept: list[Segment] = []
    for file in sorted(files, key=lambda file: file.base_offset):
        if not kept or file.base_offset >= kept[-1].end_offset:
            kept.append(file)
    return kept


# One in-memory DuckDB for the process; a cursor of it for each reading, because a connection is not for several threads.
_lock = threading.Lock()
_engine: duckdb.DuckDBPyConnection | None = None


def engine() -> duckdb.DuckDBPyConnection:
    """A cursor on this process's DuckDB; times are UTC, nothing is fetched from outside."""
    global _engine
    with _lock:
        if _engine is None:
            _engine = duckdb.connect(config={"autoinstall_known_extensions": "false", "threads": "2"})
            _engine.execute("SET GLOBAL TimeZone = 'UTC'")  # global: cursors do not inherit a session's setting
        return _engine.cursor()


# The checksum of rows: how many, and the sum of one 64-bit hash per row over all columns (times as whole microseconds;
# the hash keeps fields and NULLs apart). Sums do not depend on order, so they add up over segments. DuckDB computes it
# on both sides, on the stream from PostgreSQL and on the file; the hash may change with DuckDB's version, so it says which.
_CHECKSUM_KIND = f"duckdb-{duckdb.__version__}"


def checksum_sql(parent: str) -> str:
    """The select list that gives a relation's (rows, sum)."""
    fields = [f"epoch_us({n})" if n in TIME_COLUMNS else f'"{n}"' for n in schema(parent).names]
    return f"count(*), coalesce(sum(hash({', '.join(fields)})::HUGEINT), 0)"


@dataclass(slots=True)
class Checksum:
    """A running checksum; `text` is what the catalog holds."""

    parent: str
    rows: int = 0
    total: int = 0

    def add(self, table: pa.Table) -> None:
        cursor = engine()
        cursor.register("part", table)
        self._add(cursor.execute(f"SELECT {checksum_sql(self.parent)} FROM part").fetchone())

    def add_file(self, path: Path) -> None:
        self._add(engine().execute(f"SELECT {checksum_sql(self.parent)} FROM read_parquet(?)", [str(path)]).fetchone())

    def _add(self, row: Any) -> None:
        self.rows += int(row[0])
        self.total += int(row[1])

    @property
    def text(self) -> str:
        return f"{_CHECKSUM_KIND}:{self.rows}:{self.total:x}"


def same_checksum(one: str, other: str) -> bool:
    """Whether two checksums agree; those of different kinds cannot be compared, and the file's sha256 must do."""
    return one == other or one.split(":")[0] != other.split(":")[0]


@dataclass(frozen=True, slots=True)
class Window:
    """Neighbouring row groups of a file, as an interval of time, both ends included."""

    first: datetime
    last: datetime


@lru_cache(maxsize=4096)
def _row_groups(path: Path, size: int, changed: int) -> tuple[Window, ...]:
    """The time of each row group; files never change, `size` and `changed` only notice that somebody did it anyway."""
    footer = pq.read_metadata(path)
    column = footer.schema.names.index("time")
    found = []
    for number in range(footer.num_row_groups):
        stats = footer.row_group(number).column(column).statistics
        found.append(Window(stats.min, stats.max))
    return tuple(found)


def windows(path: Path, *, ascending: bool) -> Iterator[Window]:
    """Intervals that cover the file in the direction of reading, each twice as wide as the one before.

    A page that fills is read from one or two row groups, however long the file; one that does not costs one pass.
    """
    stat = path.stat()
    groups = _row_groups(path, stat.st_size, stat.st_mtime_ns)
    groups = groups if ascending else groups[::-1]
    width, start = 1, 0
    while start < len(groups):
        part = groups[start : start + width]
        yield Window(min(w.first for w in part), max(w.last for w in part))
        start, width = start + width, width * 2


Condition = tuple[str, list[Any]]


def select_rows(
    path: Path, parent: str, conditions: Sequence[Condition], *, ascending: bool, limit: int
) -> list[tuple[Any, ...]]:
    """Rows of a file that meet all conditions, in order; keys first, so that payloads are read only for what is shown."""
    direction = "ASC" if ascending else "DESC"
    where = " AND ".join(f"({text})" for text, _ in conditions) or "true"
    values = [value for _, found in conditions for value in found]
    columns = ", ".join(f"epoch_us({n}) AS {n}" if n in TIME_COLUMNS else f'"{n}"' for n in schema(parent).names)
    cursor = engine()
    with deadline.interrupted(cursor):
        keys = cursor.execute(
            f"SELECT file_row_number, epoch_us(time) FROM read_parquet(?, file_row_number = true) WHERE {where}"
            f" ORDER BY time {direction}, id {direction} LIMIT {int(limit)}",
            [str(path), *values],
        ).fetchall()
        if not keys:
            return []
        return cursor.execute(
            f"SELECT {columns} FROM read_parquet(?, file_row_number = true)"
            f" WHERE time BETWEEN make_timestamptz(?) AND make_timestamptz(?) AND file_row_number IN (SELECT unnest(?))"
            f" ORDER BY file_row_number {direction}",
            [str(path), min(key[1] for key in keys), max(key[1] for key in keys), [key[0] for key in keys]],
        ).fetchall()


def time_condition(operator: str, time: datetime) -> Condition:
    assert operator in (">=", "<=", ">", "<")
    return f"time {operator} make_timestamptz(?)", [to_micros(time)]
