"""The lines of one split as Arrow tables of bounded size, each line with its position and number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb
import numpy
import pyarrow
import pyarrow.parquet

from logstore.errors import LoadError
from logstore.pipeline.read import Limits, Split, blocks
from logstore.statements import statements

_PARQUET_ROWS = 4096


class Letter(NamedTuple):
    """A row that is not loaded, and why; `line` counts within the split."""

    position: int
    line: int | None
    raw: str
    truncated: bool
    reason: str
    message: str

    @classmethod
    def of(cls, position: int, line: int | None, raw: bytes | str, reason: str, message: str) -> Letter:
        text = raw if isinstance(raw, str) else raw.decode(errors="backslashreplace")
        whole = isinstance(raw, str) and "\x00" not in text
        return cls(position, line, text.replace("\x00", "\ufffd").rstrip("\r\n"), not whole, reason, message)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines: `table` has number (its own rows from 0), position, line (the text), doubtful."""

    table: pyarrow.Table
    lines: int  # counted, with blank and rejected ones
    rows_of: numpy.ndarray[Any, Any] | None = None  # line numbers within the split; None where there are no lines
    letters: list[Letter] = field(default_factory=list)

    def line_number(self, number: int) -> int | None:
        return None if self.rows_of is None else int(self.rows_of[number])

    def text(self, number: int) -> str:
        return str(self.table["line"][number].as_py())

    def position(self, number: int) -> int:
        return int(self.table["position"][number].as_py())


def chunks(split: Split, limits: Limits) -> Iterator[Chunk]:
    """The split's lines, a few megabytes at a time."""
    return _parquet_chunks(split, limits) if split.format == "parquet" else _text_chunks(split, limits)


def _text_chunks(split: Split, limits: Limits) -> Iterator[Chunk]:
    stop = split.stop if split.format == "lines" else None
    seen = 0
    for position, data, cut_off in _whole_lines(split, limits):
        if cut_off:
            message = f"the row is larger than {limits.row_bytes} bytes"
            letter = Letter.of(position, seen + 1, data[: limits.raw_bytes], "oversize", message)
            chunk = Chunk(
                line_table(numpy.empty(0, numpy.int64), pyarrow.array([], pyarrow.string()), None), 1, None, [letter]
            )
        else:
            chunk = _chunk(data, position, seen, limits, stop)
        seen += chunk.lines
        yield chunk


def _whole_lines(split: Split, limits: Limits) -> Iterator[tuple[int, bytes, bool]]:
    """Pieces that end with a line's end, as (position, bytes, False), or the head of a line that is too long, with True."""
    stop = split.stop if split.format == "lines" else None
    rest, start, skipping = b"", None, False
    for position, block in blocks(split, limits):
        cut = block.rfind(b"\n") + 1
        if skipping:
            first = block.find(b"\n") + 1
            if not first:
                continue
            skipping, start, rest = False, position + first, b""
            block, cut = block[first:], max(cut - first, 0)
        start = position if start is None else start
        if stop is not None and start >= stop:
            return
        if cut:
            yield start, rest + block[:cut], False
            start, rest = start + len(rest) + cut, block[cut:]
        else:
            rest += block
        if len(rest) > limits.row_bytes:
            yield start, rest, True
            skipping, rest = True, b""
    if rest and start is not None and (stop is None or start < stop):
        yield start, rest, False


def _chunk(data: bytes, position: int, seen: int, limits: Limits, stop: int | None) -> Chunk:
    characters = numpy.frombuffer(data, numpy.uint8)
    ends = numpy.flatnonzero(characters == 10) + 1
    if not ends.size or ends[-1] != len(data):
        ends = numpy.append(ends, len(data))
    if stop is not None:  # lines that start beyond the split belong to the next one
        ends = ends[: 1 + int(numpy.searchsorted(ends[:-1], stop - position))]
    offsets = numpy.concatenate(([0], ends)).astype(numpy.int32)
    count = len(ends)
    binary = pyarrow.Array.from_buffers(
        pyarrow.binary(), count, [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    )
    rows = numpy.arange(count)
    letters: list[Letter] = []
    for i in numpy.flatnonzero(numpy.diff(offsets) > limits.row_bytes):
        head = data[offsets[i] : offsets[i] + limits.raw_bytes]
        message = f"the row is larger than {limits.row_bytes} bytes"
        letters.append(Letter.of(position + int(offsets[i]), seen + int(i) + 1, head, "oversize", message))
        rows = rows[rows != i]
    try:
        text = binary.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        text, bad = _decoded(binary)
        for place in bad:
            raw = data[offsets[place] : min(offsets[place + 1], offsets[place] + limits.raw_bytes)]
            letters.append(
                Letter.of(position + int(offsets[place]), seen + place + 1, raw, "malformed", "the row is not UTF-8")
            )
        rows = rows[~numpy.isin(rows, bad)]
    doubtful = _doubtful(characters[: offsets[-1]], ends, limits.depth)
    starts = offsets[:-1].astype(numpy.int64) + position
    if len(rows) < count:
        text, doubtful, starts = text.take(pyarrow.array(rows)), doubtful[rows], starts[rows]
    return Chunk(line_table(starts, text, doubtful), count, rows + seen + 1, letters)


def _decoded(binary: pyarrow.Array) -> tuple[pyarrow.Array, list[int]]:
    """The lines as text, those that are not UTF-8 as empty text, and which those are."""
    texts, bad = [], []
    for i, line in enumerate(binary.to_pylist()):
        try:
            texts.append(line.decode())
        except UnicodeDecodeError:
            texts.append("")
            bad.append(i)
    return pyarrow.array(texts, pyarrow.string()), bad


def _doubtful(characters: numpy.ndarray[Any, Any], ends: numpy.ndarray[Any, Any], depth: int) -> Any:
    """Which lines must be looked at one by one, as far as bytes can tell.

    Those with more opening brackets than levels are allowed, because only they can be nested too deep; and those with nine
    digits before a point: together with seven behind it, which the statement allows, a double may not hold the number.
    """
    opening = numpy.flatnonzero((characters & 0xDF) == 0x5B)  # [ and { differ in one bit
    line = numpy.searchsorted(ends, opening, side="right")
    doubtful = numpy.zeros(len(ends), dtype=bool)
    doubtful[line[depth:][line[depth:] == line[: max(len(line) - depth, 0)]]] = True
    points = numpy.flatnonzero(characters == 0x2E)
    for back in (1, 5, 9, 2, 3, 4, 6, 7, 8):  # few survive the first three
        points = points[points >= back]
        points = points[characters[points - back] - 0x30 < 10]
    doubtful[numpy.searchsorted(ends, points, side="right")] = True
    return doubtful


def doubtful_lines(text: pyarrow.Array, depth: int) -> Any:
    """The same for an array of lines."""
    _, offsets, data = text.buffers()
    ends = numpy.frombuffer(offsets, numpy.int32)[text.offset + 1 : text.offset + 1 + len(text)]
    return _doubtful(numpy.frombuffer(data or b"", numpy.uint8), ends, depth)


def line_table(positions: Any, text: pyarrow.Array, doubtful: Any) -> pyarrow.Table:
    count = len(text)
    return pyarrow.table(
        {
            "number": pyarrow.array(numpy.arange(count, dtype=numpy.int64)),
            "position": pyarrow.array(positions, pyarrow.int64()),
            "line": text,
            "doubtful": pyarrow.array(numpy.zeros(count, dtype=bool) if doubtful is None else doubtful),
        }
    )


def _parquet_chunks(split: Split, limits: Limits) -> Iterator[Chunk]:
    """Rows of Parquet as the lines that would have meant the same."""
    position = split.first_row
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    try:
        with pyarrow.parquet.ParquetFile(split.path, buffer_size=2**20) as file:
            for batch in file.iter_batches(_PARQUET_ROWS, row_groups=list(range(split.start, split.stop))):
                lines = _as_lines(connection, batch)
                positions = numpy.arange(position, position + len(lines), dtype=numpy.int64)
                position += len(lines)
                yield Chunk(line_table(positions, lines, doubtful_lines(lines, limits.depth)), 0)
    except (pyarrow.ArrowException, OSError) as error:
        raise LoadError(f"{split.path} cannot be read: {error}; nothing of it was kept") from error
    finally:
        connection.close()


def _as_lines(connection: duckdb.DuckDBPyConnection, batch: pyarrow.RecordBatch) -> pyarrow.Array:
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if pyarrow.types.is_timestamp(kind):
            column = _moments(column, kind)
        elif pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind):
            column = column.cast(pyarrow.string())
        columns[name] = column
    connection.register("rows", pyarrow.table(columns))
    lines = connection.execute(statements("duckdb", "pipeline")["rows_to_lines"]).to_arrow_table()["line"]
    return pyarrow.concat_arrays(lines.chunks) if lines.num_chunks else pyarrow.array([], pyarrow.string())


def _moments(column: pyarrow.Array, kind: pyarrow.DataType) -> pyarrow.Array:
    """Moments as RFC 3339; a column without a zone stays naive, and its rows become dead letters."""
    import pyarrow.compute

    zoned = kind.tz is not None
    column = column.cast(pyarrow.timestamp("us", tz="UTC" if zoned else None), safe=False)
    text = pyarrow.compute.strftime(column.cast(pyarrow.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    return pyarrow.compute.binary_join_element_wise(text, "Z", "") if zoned else text
