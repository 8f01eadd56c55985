"""The lines of one split as Arrow tables of bounded size, each line with its position and number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from logstore.pipeline import parquet
from logstore.pipeline.doubt import Bytes, doubtful, doubtful_lines, places
from logstore.pipeline.read import Limits, Split, blocks

BLANKS = " \t\n\v\f\r"
_BLANK = numpy.isin(numpy.arange(256), list(BLANKS.encode()))


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
    """Some lines: `table` has position, line (the text), doubtful."""

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
            letter = Letter.of(position, seen + 1, data[: limits.raw_bytes], "oversize", _too_large(limits))
            seen += 1
            yield Chunk(
                line_table(numpy.empty(0, numpy.int64), pyarrow.array([], pyarrow.string()), None), 1, None, [letter]
            )
            continue
        for start, ends in _ends(data, None if stop is None else stop - position, limits.chunk_lines):
            piece = memoryview(data)[start : ends[-1]]
            yield _chunk(piece, ends - start, position + start, seen, limits)
            seen += len(ends)


def _too_large(limits: Limits) -> str:
    return f"the row is larger than {limits.row_bytes} bytes"


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
            yield start, b"".join((rest, memoryview(block)[:cut])), False
            start, rest = start + len(rest) + cut, block[cut:]
        else:
            rest += block
        if len(rest) > limits.row_bytes:
            yield start, rest, True
            skipping, rest = True, b""
    if rest and start is not None and (stop is None or start < stop):
        yield start, rest, False


def _ends(data: bytes, stop: int | None, most: int) -> Iterator[tuple[int, numpy.ndarray[Any, Any]]]:
    """Where the lines of a piece end, as many at a time as a chunk may hold, and where the first of them starts."""
    characters = numpy.frombuffer(data, numpy.uint8)
    ends = places(len(characters), lambda at: characters[at] == 0x0A) + 1
    if not ends.size or ends[-1] != len(data):
        ends = numpy.append(ends, len(data))
    if stop is not None:  # lines that start beyond the split belong to the next one
        ends = ends[: 1 + int(numpy.searchsorted(ends[:-1], stop))]
    for first in range(0, len(ends), most):
        yield int(ends[first - 1]) if first else 0, ends[first : first + most]


def _chunk(data: memoryview, ends: numpy.ndarray[Any, Any], position: int, seen: int, limits: Limits) -> Chunk:
    characters = numpy.frombuffer(data, numpy.uint8)
    offsets = numpy.concatenate(([0], ends)).astype(numpy.int32)
    large = numpy.diff(offsets) > limits.row_bytes
    letters = []
    for i in numpy.flatnonzero(large):
        head = bytes(data[offsets[i] : offsets[i] + limits.raw_bytes])
        letters.append(Letter.of(position + int(offsets[i]), seen + int(i) + 1, head, "oversize", _too_large(limits)))
    rows = numpy.flatnonzero(~large & ~_blank(characters, offsets))
    binary = pyarrow.Array.from_buffers(
        pyarrow.binary(), len(ends), [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    )
    if len(rows) < len(ends):
        binary = binary.take(pyarrow.array(rows))
    try:
        text = binary.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        text, good = _decoded(binary)
        for i in rows[~good]:
            raw = bytes(data[offsets[i] : min(offsets[i + 1], offsets[i] + limits.raw_bytes)])
            letters.append(
                Letter.of(position + int(offsets[i]), seen + int(i) + 1, raw, "malformed", "the row is not UTF-8")
            )
        rows = rows[good]
    unsure = doubtful(characters, ends, limits.depth)
    starts = offsets[:-1].astype(numpy.int64) + position
    if len(rows) < len(ends):
        unsure, starts = unsure[rows], starts[rows]
    return Chunk(line_table(starts, text, unsure), len(ends), rows + seen + 1, letters)


def _blank(characters: Bytes, offsets: numpy.ndarray[Any, Any]) -> Any:
    """Which lines hold nothing but blanks. All characters are looked at only if some line begins with one."""
    starts = offsets[:-1]
    blank = _BLANK[characters[starts]]
    return numpy.logical_and.reduceat(_BLANK[characters], starts) if blank.any() else blank


def _decoded(binary: pyarrow.Array) -> tuple[pyarrow.Array, Any]:
    """The lines that are UTF-8 as text, and which those are."""
    texts, good = [], numpy.ones(len(binary), dtype=bool)
    for i, line in enumerate(binary.to_pylist()):
        try:
            texts.append(line.decode())
        except UnicodeDecodeError:
            good[i] = False
    return pyarrow.array(texts, pyarrow.string()), good


def line_table(positions: Any, text: pyarrow.Array, doubtful: Any) -> pyarrow.Table:
    return pyarrow.table(
        {
            "position": pyarrow.array(positions, pyarrow.int64()),
            "line": text,
            "doubtful": pyarrow.array(numpy.zeros(len(text), dtype=bool) if doubtful is None else doubtful),
        }
    )


def _parquet_chunks(split: Split, limits: Limits) -> Iterator[Chunk]:
    position = split.first_row
    for columns, text in parquet.pieces(split, limits):
        yield _parquet_chunk(columns, text, position, limits)
        position += len(text)


def _parquet_chunk(columns: parquet.Columns, text: pyarrow.Array, position: int, limits: Limits) -> Chunk:
    sizes = pyarrow.compute.fill_null(pyarrow.compute.binary_length(text), 0).to_numpy()
    letters = []
    for i in numpy.flatnonzero(sizes > limits.row_bytes):
        head = text[int(i)].as_buffer().to_pybytes()[: limits.raw_bytes]
        letters.append(Letter.of(position + int(i), None, head, "oversize", _too_large(limits)))
    for i in numpy.flatnonzero(sizes == 0):  # DuckDB writes nothing for a row that holds a text that is none
        raw = parquet.readable(columns, int(i)).encode()[: limits.raw_bytes]
        letters.append(Letter.of(position + int(i), None, raw, "malformed", "the row is not UTF-8"))
    rows = numpy.flatnonzero((sizes > 0) & (sizes <= limits.row_bytes))
    if len(rows) < len(text):
        text = text.take(pyarrow.array(rows))
    return Chunk(line_table(rows + position, text, doubtful_lines(text, limits.depth)), 0, None, letters)
