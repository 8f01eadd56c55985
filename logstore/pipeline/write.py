"""A task's half of a load: one split, parsed and staged in one transaction, at most once.

Rows go as binary COPY into a staging table per month, together with their file and position. The last statement of the
transaction writes the split's row into `load_splits`, whose primary key lets it happen once: a task that Spark runs again,
or twice at a time, finds the row and rolls its own work back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Any

import pgpq
import psycopg
import pyarrow
import pyarrow.compute
from pgpq.encoders import StringEncoderBuilder
from pgpq.schema import Jsonb
from psycopg import sql

from logstore import lines
from logstore.cursor import Kind
from logstore.errors import LoadError
from logstore.faults import fault
from logstore.lines import COLUMNS, PARENT
from logstore.loads import REFUSALS
from logstore.partitions import add_bounds_check, check_free, make_table, partition_name
from logstore.pipeline.chunks import BLANKS, Chunk, Letter, chunks
from logstore.pipeline.read import Limits, Split
from logstore.pipeline.transform import Group, letter, transform
from logstore.statements import statements
from logstore.tables import JSON_COLUMNS
from logstore.validation import Rejected, Rules

_PROGRESS_SECONDS = 1.0


def staging_name(load: int, parent: str, month: date) -> str:
    return f"load_{load}_{partition_name(parent, month)}"


class Stale(LoadError):
    """The load that a task works for is over."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a task needs to know; it travels to the workers."""

    load: int
    conninfo: str
    rules: Rules
    limits: Limits


@dataclass(slots=True)
class Counts:
    """What a split held."""

    bytes: int = 0
    lines: int = 0
    staged: int = 0
    letters: int = 0
    positions: int = 0
    letter_bytes: int = field(default=0, repr=False)


class Stage:
    """The connections of one task: `rows` holds the split's transaction, `side` makes tables and reports progress."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.rows = psycopg.connect(job.conninfo)
        self.side = psycopg.connect(job.conninfo, autocommit=True)
        self._made: set[str] = set()

    def close(self) -> None:
        self.rows.close()
        self.side.close()

    def run(self, split: Split) -> Counts:
        """Stage one split, unless that happened before."""
        done = self._find(split)
        if done is not None:
            return done
        counts = Counts(bytes=split.bytes)
        with self.rows.transaction():
            for chunk in self._reporting(split, counts):
                self._write(split, chunk, counts)
            if split.format == "parquet" and counts.staged + counts.letters != split.rows:
                raise LoadError(
                    f"{split.path} has {split.rows} rows in a part of which {counts.staged} were read and {counts.letters} "
                    "refused; nothing of it was kept"
                )
            fault("load.task.before_commit")
            values = {"load": self.job.load, "split": split.split, "file": split.file, **_columns(counts)}
            if self.rows.execute(statements("postgres", "pipeline")["add_split"], values).rowcount == 0:
                raise psycopg.Rollback
        fault("load.task.after_commit")
        done = self._find(split)
        if done is None:
            raise Stale(f"load {self.job.load} is over")
        return done

    def _find(self, split: Split) -> Counts | None:
        values = {"load": self.job.load, "split": split.split}
        row = self.side.execute(statements("postgres", "pipeline")["find_split"], values).fetchone()
        return None if row is None else Counts(*row)

    def _reporting(self, split: Split, counts: Counts) -> Iterator[Chunk]:
        reported = time.monotonic()
        whole = max(split.stop - split.start, 1)
        for chunk in chunks(split, self.job.limits):
            yield chunk
            if time.monotonic() - reported > _PROGRESS_SECONDS and len(chunk.table):
                reported = time.monotonic()
                share = (chunk.position(len(chunk.table) - 1) - split.start) / whole if split.format == "lines" else 0.5
                self._report(split, counts, int(split.bytes * min(max(share, 0.0), 1.0)))
        self._report(split, counts, split.bytes)

    def _report(self, split: Split, counts: Counts, size: int) -> None:
        rows = counts.staged + counts.letters
        values = {"load": self.job.load, "split": split.split, "rows": rows, "bytes": size}
        self.side.execute(statements("postgres", "pipeline")["add_progress"], values)

    def _write(self, split: Split, chunk: Chunk, counts: Counts) -> None:
        parsed = transform(chunk, self.job.rules)
        letters = list(parsed.letters)
        for group in parsed.groups:
            for written in self._copy(split, chunk, group, letters):
                counts.staged += len(written)
                counts.positions += pyarrow.compute.sum(written).as_py() or 0
        counts.lines += chunk.lines
        self._keep(split, letters, counts)

    def _copy(self, split: Split, chunk: Chunk, group: Group, letters: list[Letter]) -> Iterator[pyarrow.Array]:
        """Write a group without the rows that PostgreSQL refuses. Gives the positions written.

        In a group that is refused our own rules find the bad rows, and why, at once; halving finds what else there is.
        """
        try:
            yield self._send(split, group)
        except REFUSALS:
            good = self._judged(chunk, group, letters)
            yield from self._halved(split, chunk, good, letters)

    def _halved(self, split: Split, chunk: Chunk, group: Group, letters: list[Letter]) -> Iterator[pyarrow.Array]:
        if not len(group.rows):
            return
        try:
            yield self._send(split, group)
        except REFUSALS as error:
            if len(group.rows) == 1:
                said = error.diag.message_primary or str(error)
                letters.append(letter(chunk, group.numbers[0].as_py(), "refused", f"PostgreSQL refuses it: {said}"))
                return
            for half in _halves(group):
                yield from self._halved(split, chunk, half, letters)

    def _send(self, split: Split, group: Group) -> pyarrow.Array:
        statement = _copy_statement(self._table(group.kind, group.month), group.kind)
        with self.rows.transaction(), self.rows.cursor().copy(statement) as copy:
            for piece in _encode(group, split.file):
                copy.write(piece)
        return group.positions

    def _judged(self, chunk: Chunk, group: Group, letters: list[Letter]) -> Group:
        """The group without what the columnwise path let pass and our rules refuse."""
        good = []
        for place, number in enumerate(group.numbers.to_pylist()):
            try:
                lines.parse(chunk.text(number).strip(BLANKS), self.job.rules)
                good.append(place)
            except Rejected as rejected:
                letters.append(letter(chunk, number, rejected.reason, str(rejected)))
        kept = pyarrow.array(good, pyarrow.int64())
        return Group(
            group.kind, group.month, *(part.take(kept) for part in (group.rows, group.numbers, group.positions))
        )

    def _keep(self, split: Split, letters: list[Letter], counts: Counts) -> None:
        if not letters:
            return
        counts.letters += len(letters)
        counts.letter_bytes += sum(len(kept.raw) for kept in letters)
        limits = self.job.limits
        if counts.letters > limits.letters or counts.letter_bytes > limits.letter_bytes:
            raise LoadError(
                f"{split.path} has {counts.letters} bad rows and more to come, too many to keep; the last: "
                f"{letters[-1].message}. Is it a log? Correct it and load it again"
            )
        columns = dict(zip(Letter._fields, map(list, zip(*letters, strict=True)), strict=True))
        values = {"load": self.job.load, "split": split.split, "file": split.file, **columns}
        self.rows.execute(statements("postgres", "pipeline")["add_letters"], values)

    def _table(self, kind: Kind, month: date) -> str:
        name = staging_name(self.job.load, PARENT[kind], month)
        if name not in self._made:
            make_staging(self.side, self.job.load, PARENT[kind], month)
            self._made.add(name)
        return name


def make_staging(connection: psycopg.Connection[Any], load: int, parent: str, month: date) -> None:
    """The staging table of a month: the parent's columns without its indexes, then the two that say where a row came from.

    It may become the month itself, so it has the month's CHECK from the start, when that costs nothing.
    """
    name = staging_name(load, parent, month)
    with connection.transaction():
        if connection.execute(statements("postgres", "pipeline")["alive"], {"load": load}).fetchone() is None:
            raise Stale(f"load {load} is over")
        connection.execute(statements("postgres", "partitions")["lock_month"], {"name": name})
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
            return
        check_free(connection, parent, month)
        make_table(connection, parent, name, including="ALL EXCLUDING INDEXES")
        add_bounds_check(connection, name, month, check=f"{partition_name(parent, month)}_bounds")
        connection.execute(
            sql.SQL(
                "ALTER TABLE {} ADD COLUMN position bigint NOT NULL, ADD COLUMN file integer NOT NULL,"
                " SET (autovacuum_enabled = off)"
            ).format(sql.Identifier(name))
        )


def _columns(counts: Counts) -> dict[str, Any]:
    names = ("bytes", "lines", "staged", "letters", "positions")
    return {name: getattr(counts, name) for name in names}


def _halves(group: Group) -> Iterator[Group]:
    middle = len(group.rows) // 2
    for start, length in ((0, middle), (middle, len(group.rows) - middle)):
        parts = (part.slice(start, length) for part in (group.rows, group.numbers, group.positions))
        yield Group(group.kind, group.month, *parts)


def _copy_statement(name: str, kind: Kind) -> sql.Composed:
    columns = sql.SQL(", ").join(sql.Identifier(column) for column in (*COLUMNS[kind], "position", "file"))
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(name), columns)


def _encode(group: Group, file: int) -> Iterator[bytes]:
    table = group.rows.append_column("position", group.positions)
    table = table.append_column("file", pyarrow.array([file] * len(table), pyarrow.int32()))
    encoder = pgpq.ArrowToPostgresBinaryEncoder.new_with_encoders(table.schema, _encoders(table.schema))
    yield encoder.write_header()
    for batch in table.to_batches():
        yield encoder.write_batch(batch)
    yield encoder.finish()


@cache
def _encoders(schema: pyarrow.Schema) -> dict[str, Any]:
    infer = pgpq.ArrowToPostgresBinaryEncoder.infer_encoder
    return {
        field.name: StringEncoderBuilder.new_with_output(field, Jsonb()) if field.name in JSON_COLUMNS else infer(field)
        for field in schema
    }
