"""Rows of Parquet as the lines that would have meant the same, so that all sources share what follows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from logstore.errors import LoadError
from logstore.pipeline.read import Limits, Split, check_unpacked
from logstore.statements import statements

# Few rows are decoded at once: a long value that a page holds once may be meant by each of them.
_FIRST, _MOST = 64, 512
_PIECE = 4096

Columns = dict[str, pyarrow.Array]


def pieces(split: Split, limits: Limits) -> Iterator[tuple[Columns, pyarrow.Array]]:
    """A few megabytes at a time: the columns, and each row as an object; as empty text where it cannot be written as one."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    try:
        for batch in _batches(split, limits):
            columns = _columns(batch)
            yield columns, _as_lines(connection, columns)
    except (pyarrow.ArrowException, duckdb.Error, UnicodeDecodeError, OSError) as error:
        raise LoadError(f"{split.path} cannot be read: {error}; nothing of it was kept") from error
    finally:
        connection.close()


def readable(columns: Columns, row: int) -> str:
    """What can be read of a row, for a person."""
    values: dict[str, Any] = {}
    for name, column in columns.items():
        cell = column[row]
        try:
            if isinstance(cell, pyarrow.BinaryScalar) and cell.is_valid:
                values[name] = cell.as_buffer().to_pybytes().decode(errors="backslashreplace")
            else:
                values[name] = cell.as_py()
        # In a struct: a text that is not UTF-8, a moment beyond all years, an unknown zone, a name that is there twice.
        except (ValueError, OverflowError, LookupError, pyarrow.ArrowException):
            values[name] = "\ufffd"
    return json.dumps(values, ensure_ascii=False, default=str)


def _batches(split: Split, limits: Limits) -> Iterator[pyarrow.RecordBatch]:
    """The rows as they are decoded, put together to pieces of bounded size; a file that unpacks to too much is stopped."""
    packed, unpacked = os.stat(split.path).st_size, 0
    held: list[pyarrow.RecordBatch] = []
    rows = size = 0
    with pyarrow.parquet.ParquetFile(split.path, buffer_size=2**20) as file:
        for decoded in file.iter_batches(_FIRST, row_groups=list(range(split.start, split.stop))):
            batch = _spelt_out(decoded)
            grown = batch.nbytes
            unpacked += grown
            check_unpacked(split, packed, unpacked, limits)
            # The longer these rows, the fewer are decoded next.
            file.reader.set_batch_size(min(max(len(batch) * limits.chunk_bytes // max(grown, 1), 1), _MOST))
            if held and (size + grown > limits.chunk_bytes or rows + len(batch) > _PIECE):
                yield from _cut(held, size, limits)
                held, rows, size = [], 0, 0
            held.append(batch)
            rows, size = rows + len(batch), size + grown
    if held:
        yield from _cut(held, size, limits)


def _cut(held: list[pyarrow.RecordBatch], size: int, limits: Limits) -> Iterator[pyarrow.RecordBatch]:
    batch = pyarrow.concat_batches(held)
    step = max(1, len(batch) * limits.chunk_bytes // max(size, 1))
    for start in range(0, len(batch), step):
        yield batch.slice(start, step)


def _spelt_out(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Without dictionaries: they are as large for few rows as for all, and say nothing of the size of the lines."""
    if not any(map(pyarrow.types.is_dictionary, batch.schema.types)):
        return batch
    columns = [
        column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _columns(batch: pyarrow.RecordBatch) -> Columns:
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if isinstance(kind, pyarrow.JsonType):
            # DuckDB would write its numbers anew, and refuse all rows for one bad value.
            column, kind = column.storage, kind.storage_type
        if pyarrow.types.is_timestamp(kind):
            column = _moments(column, kind)
        elif pyarrow.types.is_binary(kind):
            column = column.view(pyarrow.string())  # not checked: it would be refused as a whole
        elif pyarrow.types.is_large_binary(kind):
            column = column.view(pyarrow.large_string())
        columns[name] = column
    return columns


def _as_lines(connection: duckdb.DuckDBPyConnection, columns: Columns) -> pyarrow.Array:
    # One column: DuckDB would rename columns of a table that differ in case only, and find `rows` itself in one named so.
    row = pyarrow.StructArray.from_arrays(list(columns.values()), names=list(columns))
    connection.register("rows", pyarrow.table({"row": row}))
    lines = connection.execute(statements("duckdb", "pipeline")["rows_to_lines"]).to_arrow_table()["line"]
    return pyarrow.concat_arrays(lines.chunks) if lines.num_chunks else pyarrow.array([], pyarrow.string())


def _moments(column: pyarrow.Array, kind: pyarrow.DataType) -> pyarrow.Array:
    """Moments as RFC 3339; a column without a zone stays naive, and its rows become dead letters."""
    zoned = kind.tz is not None
    column = column.cast(pyarrow.timestamp("us", tz="UTC" if zoned else None), safe=False)
    text = pyarrow.compute.strftime(column.cast(pyarrow.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    return pyarrow.compute.binary_join_element_wise(text, "Z", "") if zoned else text
