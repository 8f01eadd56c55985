"""The log as a Spark data frame, over both tiers, for jobs that outgrow one machine.

Each task reads one piece: a stretch of a month by COPY from PostgreSQL, or one sealed segment by DuckDB. JDBC is no way,
because it cannot reach a Unix socket and would read JSON row by row. Predicates run where the rows are.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import psycopg
import pyarrow
import pyarrow.csv
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import BigInteger, ColumnElement, Text, and_, cast, extract, literal, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from logstore import cold, filters, partitions, segments
from logstore.cold import Wanted
from logstore.cursor import Kind
from logstore.errors import InvalidSelection, LoadError, Unimplemented
from logstore.lines import PARENT
from logstore.partitions import partition_name
from logstore.records import Selection
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import BY_KIND, TIME_COLUMNS
from logstore.tiers import Map

_PIECE_ROWS = 200_000
_BLOCK = 32 * 2**20  # a row must fit into one
_DIALECT: Any = PGDialect_psycopg  # untyped in SQLAlchemy


@dataclass(frozen=True, slots=True)
class Hot:
    """A stretch of one month in PostgreSQL: the statement, its values, and the month that must still be there."""

    statement: str
    values: dict[str, Any]
    month: date


@dataclass(frozen=True, slots=True)
class Cold:
    """One segment, and the conditions on its rows."""

    path: str
    conditions: list[segments.Condition]


def records(
    spark: SparkSession, store: LogStore, selection: Selection = Selection(), *, kind: Kind = "attempt"
) -> DataFrame:
    """The records of a selection, unordered, with the table's columns; payloads are JSON text.

    The pieces are those of this moment. A piece whose month has moved to the archive by the time it is read fails the
    job instead of giving nothing: ask again.
    """
    if kind not in BY_KIND:
        raise InvalidSelection(f"kind is {kind!r}; it must be one of {', '.join(BY_KIND)}")
    if kind == "event" and selection.status is not None:
        raise InvalidSelection("events have no status; ask for kind='attempt'")
    if kind == "event" and selection.destination_ids:
        raise Unimplemented("events are destination-agnostic: ask for kind='attempt' to select by destination")
    where = None if selection.where is None else filters.parse(selection.where, kind)

    def plan(_: psycopg.Connection[Any], known: Map) -> list[Hot | Cold]:
        wanted = Wanted(kind, selection, where)
        return [*_hot(store, wanted, known), *_cold(store, wanted, known)]

    pieces = store.tiers.steadily(plan)  # with one map: a month that moves meanwhile is in neither tier, or in both
    fields = ", ".join(f"{field.name} {_spark_type(field.type)}" for field in segments.schema(PARENT[kind]))
    if not pieces:
        return spark.createDataFrame([], fields)
    address = store.database.address("-c timezone=UTC -c default_transaction_read_only=on")
    read = _reader(address, PARENT[kind], pieces)
    return spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(read, fields)


def _spark_type(kind: pyarrow.DataType) -> str:
    if pyarrow.types.is_timestamp(kind):
        return "timestamp"
    return {pyarrow.bool_(): "boolean", pyarrow.int32(): "int"}.get(kind, "string")


def _hot(store: LogStore, wanted: Wanted, known: Map) -> Iterator[Hot]:
    table = BY_KIND[wanted.kind]
    columns = [_column(column) for column in table.c]
    fixed = _conditions(wanted.kind, wanted.selection, wanted.where)
    for month in partitions.inventory(store.database):
        state = known.states.get((month.parent, month.month), "open")
        if month.parent != wanted.parent or state not in ("open", "closed") or not month.attached:
            continue
        if not _overlaps(month.lower, month.upper, wanted.selection):
            continue
        for lower, upper in _stretches(month.lower, month.upper, month.rows):
            asked = select(*columns).where(*fixed, table.c.time >= literal(lower), table.c.time < literal(upper))
            compiled = asked.compile(dialect=_DIALECT())
            filled = compiled.construct_expanded_state(compiled.params)
            yield Hot(f"COPY ({filled.statement}) TO STDOUT (FORMAT csv)", dict(filled.parameters), month.month)


def _overlaps(lower: datetime, upper: datetime, selection: Selection) -> bool:
    time = selection.time
    early = any(bound is not None and bound >= upper for bound in (time.gte, time.gt))
    late = any(bound is not None and bound < lower for bound in (time.lte, time.lt))
    return not early and not late


def _column(column: Any) -> ColumnElement[Any]:
    if column.name in TIME_COLUMNS:
        return cast(extract("epoch", column) * 1_000_000, BigInteger).label(column.name)
    return cast(column, Text).label(column.name) if isinstance(column.type, JSONB) else column


def _conditions(kind: Kind, selection: Selection, where: Any) -> list[ColumnElement[bool]]:
    table = BY_KIND[kind]
    named = {
        "tenant_id": selection.tenant_ids,
        "id" if kind == "event" else "event_id": selection.event_ids,
        "destination_id": selection.destination_ids,
        "topic": selection.topics,
        "status": (selection.status,) if selection.status else (),
    }
    found: list[ColumnElement[bool]] = [table.c[name].in_(values) for name, values in named.items() if values]
    found += [table.c.time.op(operator)(literal(bound)) for operator, bound in selection.time.bounds()]
    return found if where is None else [*found, and_(filters.to_postgres(where, table))]


def _stretches(lower: datetime, upper: datetime, rows: int) -> Iterator[tuple[datetime, datetime]]:
    """A month in pieces of about the same length in time; the planner's estimate says how many are worth it."""
    pieces = max(1, -(-rows // _PIECE_ROWS))
    edges = [lower + (upper - lower) * i / pieces for i in range(pieces)]
    yield from zip(edges, [*edges[1:], upper], strict=True)


def _cold(store: LogStore, wanted: Wanted, known: Map) -> Iterator[Cold]:
    conditions = cold.conditions(wanted)
    states = known.states.items()
    months = [month for (parent, month), state in states if parent == wanted.parent and state in ("cold", "purged")]
    for segment in known.listed(wanted.parent, months):
        if wanted.meets(segment.min_time, segment.max_time):
            if segment.state != "sealed":
                raise LoadError(
                    f"segment {segment.segment_id} is {segment.state}: `python -m logstore verify` says why"
                )
            yield Cold(str(segment.path(store.settings.archive)), conditions)


def _reader(
    conninfo: str, parent: str, pieces: list[Hot | Cold]
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                piece = pieces[number]
                yield from _read_hot(conninfo, parent, piece) if isinstance(piece, Hot) else _read_cold(parent, piece)

    return read


def _read_cold(parent: str, piece: Cold) -> Iterator[pyarrow.RecordBatch]:
    where = " AND ".join(f"({condition})" for condition, _ in piece.conditions) or "true"
    values = [value for _, given in piece.conditions for value in given]
    columns = ", ".join(segments.schema(parent).names)
    found = segments.engine().execute(f"SELECT {columns} FROM read_parquet(?) WHERE {where}", [piece.path, *values])
    for batch in found.to_arrow_reader(10_000):
        yield pyarrow.Table.from_batches([batch]).cast(segments.schema(parent)).to_batches()[0]


def _read_hot(conninfo: str, parent: str, piece: Hot) -> Iterator[pyarrow.RecordBatch]:
    schema = segments.schema(parent)
    times = {f.name: pyarrow.int64() for f in schema if f.name in TIME_COLUMNS}
    options = pyarrow.csv.ConvertOptions(
        column_types={field.name: times.get(field.name, field.type) for field in schema},
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False, true_values=["t"], false_values=["f"],
    )  # fmt: skip
    with psycopg.connect(conninfo) as connection:
        with connection.cursor().copy(piece.statement, piece.values) as copy:
            stream = io.BufferedReader(_Blocks(iter(copy)), _BLOCK)
            if stream.peek(1):
                parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
                reading = pyarrow.csv.ReadOptions(column_names=schema.names, block_size=_BLOCK, use_threads=False)
                for batch in pyarrow.csv.open_csv(stream, reading, parse, options):
                    yield from pyarrow.Table.from_batches([batch]).cast(schema).to_batches()
        # A detached month gives no rows and no error. Looked at after reading: the map turns cold before the detach.
        values = {"parent": parent, "month": piece.month}
        connection.rollback()
        state = connection.execute(statements("postgres", "partitions")["month_state"], values).fetchone()
        if state is None or state[0] not in ("open", "closed"):
            raise LoadError(f"{partition_name(parent, piece.month)} moved while it was read: ask again")


class _Blocks(io.RawIOBase):
    """COPY's blocks as a file."""

    def __init__(self, blocks: Iterator[Any]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(bytes(next(self._blocks, b"")))
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
