"""Lines to rows: columnwise for those that are certainly good, by `logstore.lines` for all others. Pure.

Lines are parsed within the task, because moving parsed columns between the JVM and Python costs more than parsing them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import numpy
import pyarrow
import pyarrow.compute

from logstore import lines
from logstore.cursor import Kind
from logstore.lines import COLUMNS, PARENT
from logstore.partitions import month_of
from logstore.pipeline import decode
from logstore.pipeline.chunks import Chunk, Letter
from logstore.pipeline.doubt import doubtful_lines
from logstore.records import to_micros
from logstore.tables import JSON_COLUMNS
from logstore.validation import Rejected, Rules

_TYPES: dict[str, pyarrow.DataType] = {
    **dict.fromkeys(("time", "event_time"), pyarrow.timestamp("us", tz="UTC")),
    **dict.fromkeys(("eligible_for_retry", "manual"), pyarrow.bool_()),
    "attempt_number": pyarrow.int32(),
}
# What stands for a missing value or null; other columns have none, or none is allowed.
_DEFAULTS: dict[tuple[Kind, str], Any] = {
    ("event", "destination_id"): "",
    ("event", "eligible_for_retry"): True,
    ("attempt", "eligible_for_retry"): True,
    ("attempt", "manual"): False,
}
_EMPTY = {"metadata": b"{}", "event_metadata": b"{}"}
_MOMENT = r"^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
_SOME_MOMENT = "1970-01-01T00:00:00Z"
_LEAST, _MOST = 10**11, 10**14  # milliseconds; a number outside may be seconds, or beyond all years
_YEARS = (to_micros(datetime.min.replace(tzinfo=UTC)), to_micros(datetime.max.replace(tzinfo=UTC)))
_OPENING = numpy.frombuffer(b"{[", numpy.uint8)

Mask = Any  # a numpy array of bool


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one month of one table, in the order of its columns, and which of the chunk's lines they were."""

    kind: Kind
    month: date
    rows: pyarrow.Table
    numbers: pyarrow.Array
    positions: pyarrow.Array


@dataclass(frozen=True, slots=True)
class Parsed:
    """A chunk, told apart: rows to write and letters to keep; blank lines are in neither."""

    groups: list[Group]
    letters: list[Letter]


def schema(kind: Kind) -> pyarrow.Schema:
    """The Arrow types of a table's columns; payloads are JSON text."""
    return pyarrow.schema([(name, _TYPES.get(name, pyarrow.string())) for name in COLUMNS[kind]])


def transform(chunk: Chunk, rules: Rules) -> Parsed:
    """A chunk to rows under one set of rules."""
    if not len(chunk.table):
        return Parsed([], chunk.letters)
    undecided = numpy.ones(len(chunk.table), dtype=bool)
    groups = []
    for kind, (numbers, found) in decode.records(_certain(chunk)).items():
        if found:
            for group in _groups(chunk, kind, numpy.array(numbers), found, rules):
                undecided[group.numbers.to_numpy()] = False
                groups.append(group)
    slow, letters = _one_by_one(chunk, numpy.flatnonzero(undecided).tolist(), rules)
    return Parsed(groups + slow, [*chunk.letters, *letters])


def _certain(chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    """The lines that can be decoded without a second look, numbered."""
    text = chunk.table["line"].combine_chunks()
    _, ends, data = text.buffers()
    held = data.to_pybytes() if data else b""
    at = numpy.frombuffer(ends, numpy.int32)[text.offset : text.offset + len(text) + 1].tolist()
    doubtful = chunk.table["doubtful"].to_numpy()
    for number in numpy.flatnonzero(~doubtful).tolist():
        yield number, held[at[number] : at[number + 1]]


# Columns


def _groups(
    chunk: Chunk, kind: Kind, numbers: numpy.ndarray[Any, Any], records: Sequence[Any], rules: Rules
) -> Iterator[Group]:
    """The records whose values are good as well, month by month, as far as the months are open."""
    values = dict(zip(COLUMNS[kind], zip(*map(msgspec.structs.astuple, records), strict=True), strict=False))
    good = numpy.ones(len(records), dtype=bool)
    columns = {}
    for name in COLUMNS[kind]:
        if name in ("time", "event_time"):
            columns[name], certain = _moments(values[name])
            good &= certain
        elif name in JSON_COLUMNS:
            columns[name], certain = _payloads(
                values[name], rules.depth, missing=_EMPTY.get(name), nullable=name == "response_data"
            )
            good &= certain
        else:
            columns[name] = _plain(values[name], _TYPES.get(name, pyarrow.string()), _DEFAULTS.get((kind, name)))
    micros = columns["time"].view(pyarrow.int64()).to_numpy()
    good &= (micros >= to_micros(rules.oldest)) & (micros <= to_micros(rules.newest))
    months = micros.astype("datetime64[us]").astype("datetime64[M]")
    table = pyarrow.table(columns, schema=schema(kind))
    positions = chunk.table["position"].combine_chunks()
    for month in numpy.unique(months[good]):
        first = month.astype(date)
        if rules.month_state(PARENT[kind], first) != "open":
            continue
        chosen = numpy.flatnonzero(good & (months == month))
        of_month = pyarrow.array(numbers[chosen])
        rows = table if len(chosen) == len(records) else table.take(pyarrow.array(chosen))
        yield Group(kind, first, rows, of_month, positions.take(of_month))


def _plain(values: Sequence[Any], kind: pyarrow.DataType, default: Any) -> pyarrow.Array:
    array = pyarrow.array(values, kind)
    return array if default is None else array.fill_null(default)


def _moments(values: Sequence[Any]) -> tuple[pyarrow.Array, Mask]:
    """RFC 3339 texts, or milliseconds, as moments; and which of them are certain."""
    kinds = set(map(type, values))
    if kinds == {int} and min(values) >= _LEAST and max(values) < _MOST:
        micros = numpy.array(values, numpy.int64) * 1000
        return pyarrow.array(micros).view(_TYPES["time"]), numpy.ones(len(values), dtype=bool)
    texts = pyarrow.array(values if kinds == {str} else list(map(str, values)), pyarrow.string())
    shaped = pyarrow.compute.match_substring_regex(texts, _MOMENT)
    good = shaped.to_numpy(zero_copy_only=False)
    if not good.all():
        texts = pyarrow.compute.if_else(shaped, texts, _SOME_MOMENT)
    try:
        times = texts.cast(_TYPES["time"])
    except pyarrow.ArrowInvalid:  # such as the 30th of February; one by one finds it
        return pyarrow.array(numpy.zeros(len(values), numpy.int64)).view(_TYPES["time"]), numpy.zeros(len(values), bool)
    micros = times.view(pyarrow.int64()).to_numpy()
    return times, good & (micros >= _YEARS[0]) & (micros <= _YEARS[1])


def _payloads(
    values: Sequence[msgspec.Raw], depth: int, *, missing: bytes | None, nullable: bool
) -> tuple[pyarrow.Array, Mask]:
    """Objects and lists as they stand, also those inside a text; and which of them are certain."""
    texts = list(map(bytes, values))
    absent = numpy.array([text == decode.NULL for text in texts])
    if missing is not None and absent.any():
        texts = [missing if text == decode.NULL else text for text in texts]
    array, starts = _joined(texts, absent if nullable else None)
    good = numpy.isin(starts, _OPENING)
    if nullable:
        good |= absent
    quoted = numpy.flatnonzero(starts == ord('"'))
    if len(quoted):
        found = [decode.inner(texts[i]) for i in quoted]
        for i, text in zip(quoted, found, strict=True):
            texts[i] = text or b"{}"
        array, _ = _joined(texts, absent if nullable else None)
        sure = numpy.array([text is not None for text in found])
        inside, _ = _joined([text or b"{}" for text in found], None)
        good[quoted] = sure & ~doubtful_lines(inside, depth)
    return array, good


def _joined(texts: Sequence[bytes], absent: Mask | None) -> tuple[pyarrow.Array, numpy.ndarray[Any, Any]]:
    """An array of these texts, which are UTF-8, without copying each twice; and their first characters."""
    data = b"".join(texts)
    ends = numpy.zeros(len(texts) + 1, numpy.int32)
    numpy.cumsum(numpy.fromiter(map(len, texts), numpy.int32, len(texts)), out=ends[1:])
    valid = None
    if absent is not None and absent.any():
        valid = pyarrow.py_buffer(numpy.packbits(~absent, bitorder="little"))
    buffers = [valid, pyarrow.py_buffer(ends), pyarrow.py_buffer(data)]
    array = pyarrow.Array.from_buffers(pyarrow.string(), len(texts), buffers)
    return array, numpy.frombuffer(data, numpy.uint8)[ends[:-1]]


# One by one


def _one_by_one(chunk: Chunk, numbers: list[int], rules: Rules) -> tuple[list[Group], list[Letter]]:
    rows: dict[tuple[Kind, date], list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    letters = []
    texts = pyarrow.compute.ascii_trim_whitespace(chunk.table["line"].take(pyarrow.array(numbers, pyarrow.int64())))
    for number, text in zip(numbers, texts.to_pylist(), strict=True):
        if not text and chunk.rows_of is not None:  # only text has blank lines; a row of Parquet is always one
            continue
        try:
            row = lines.parse(text or "", rules)
        except Rejected as error:
            letters.append(letter(chunk, number, error.reason, str(error)))
        else:
            rows[row.kind, month_of(row.time)].append((number, row.values))
    return [_group(chunk, kind, month, found) for (kind, month), found in rows.items()], letters


def letter(chunk: Chunk, number: int, reason: str, message: str) -> Letter:
    """The letter of one of the chunk's lines."""
    return Letter.of(chunk.position(number), chunk.line_number(number), chunk.text(number), reason, message)


def _group(chunk: Chunk, kind: Kind, month: date, found: list[tuple[int, tuple[Any, ...]]]) -> Group:
    columns = list(zip(*(values for _, values in found), strict=True))
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema(kind), strict=True)]
    numbers = pyarrow.array([number for number, _ in found], pyarrow.int64())
    return Group(
        kind, month, pyarrow.table(arrays, schema=schema(kind)), numbers, chunk.table["position"].take(numbers)
    )
