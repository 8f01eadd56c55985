"""Lines to rows: columnwise for those that are certainly good, by `logstore.lines` for all others. Pure.

DuckDB parses a chunk within the task, with one thread, because moving parsed columns between the JVM and Python costs more
than parsing them. What it accepts is what `lines.parse` would accept, with the same values; what it does not accept it
leaves undecided.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import pyarrow
import pyarrow.compute

from logstore import lines
from logstore.cursor import Kind
from logstore.lines import COLUMNS, PARENT
from logstore.partitions import month_of
from logstore.pipeline.chunks import Chunk, Letter
from logstore.statements import statements
from logstore.validation import Rejected, Rules

_TYPES: dict[str, pyarrow.DataType] = {
    **dict.fromkeys(("time", "event_time"), pyarrow.timestamp("us", tz="UTC")),
    **dict.fromkeys(("eligible_for_retry", "manual"), pyarrow.bool_()),
    "attempt_number": pyarrow.int32(),
}
# The statement has one column for what the two tables name differently.
_PARSED_NAME = {"event_data": "data", "event_metadata": "metadata"}


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


class Transform:
    """Chunks to rows under one set of rules; holds an in-memory DuckDB, so make one per task."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._duckdb = duckdb.connect(config={"threads": 1, "memory_limit": "1GB"})
        self._duckdb.execute("SET TimeZone = 'UTC'")
        self._duckdb.execute(statements("duckdb", "pipeline")["macros"])

    def close(self) -> None:
        self._duckdb.close()

    def __call__(self, chunk: Chunk) -> Parsed:
        if not len(chunk.table):
            return Parsed([], chunk.letters)
        parsed = self._parse(chunk.table)
        undecided = pyarrow.compute.invert(parsed["ok"])
        good = parsed if not pyarrow.compute.any(undecided).as_py() else parsed.filter(parsed["ok"])
        numbers = parsed.filter(undecided)["number"].to_pylist() if len(good) < len(parsed) else []
        groups: list[Group] = []
        for kind, month, rows in _by_month(good):
            if self.rules.month_state(PARENT[kind], month) == "open":
                columns = {name: rows[_PARSED_NAME.get(name, name)] for name in COLUMNS[kind]}
                table = pyarrow.table(columns).cast(schema(kind))
                groups.append(Group(kind, month, table, rows["number"], rows["position"]))
            else:
                numbers += rows["number"].to_pylist()
        slow, letters = self._one_by_one(chunk, sorted(numbers))
        return Parsed(groups + slow, [*chunk.letters, *letters])

    def _parse(self, table: pyarrow.Table) -> pyarrow.Table:
        self._duckdb.register("lines", table)
        bounds = {"oldest": self.rules.oldest, "newest": self.rules.newest}
        parsed = self._duckdb.execute(statements("duckdb", "pipeline")["parse"], bounds).to_arrow_table()
        self._duckdb.unregister("lines")
        return parsed

    def _one_by_one(self, chunk: Chunk, numbers: list[int]) -> tuple[list[Group], list[Letter]]:
        rows: dict[tuple[Kind, date], list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
        letters = []
        texts = pyarrow.compute.ascii_trim_whitespace(chunk.table["line"].take(pyarrow.array(numbers, pyarrow.int64())))
        for number, text in zip(numbers, texts.to_pylist(), strict=True):
            if not text and chunk.rows_of is not None:  # only text has blank lines; a row of Parquet is always one
                continue
            try:
                row = lines.parse(text or "", self.rules)
            except Rejected as error:
                letters.append(letter(chunk, number, error.reason, str(error)))
            else:
                rows[row.kind, month_of(row.time)].append((number, row.values))
        return [_group(chunk, kind, month, found) for (kind, month), found in rows.items()], letters


def letter(chunk: Chunk, number: int, reason: str, message: str) -> Letter:
    """The letter of one of the chunk's lines."""
    return Letter.of(chunk.position(number), chunk.line_number(number), chunk.text(number), reason, message)


def _by_month(table: pyarrow.Table) -> list[tuple[Kind, date, pyarrow.Table]]:
    found = table.group_by(["attempt", "month"], use_threads=False).aggregate([]).to_pylist()
    parts: list[tuple[Kind, date, pyarrow.Table]] = []
    for key in found:
        kind: Kind = "attempt" if key["attempt"] else "event"
        month = date(key["month"] // 12, key["month"] % 12 + 1, 1)
        if len(found) == 1:
            return [(kind, month, table)]
        same = pyarrow.compute.and_(
            pyarrow.compute.equal(table["attempt"], key["attempt"]), pyarrow.compute.equal(table["month"], key["month"])
        )
        parts.append((kind, month, table.filter(same)))
    return parts


def _group(chunk: Chunk, kind: Kind, month: date, found: list[tuple[int, tuple[Any, ...]]]) -> Group:
    columns = list(zip(*(values for _, values in found), strict=True))
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema(kind), strict=True)]
    numbers = pyarrow.array([number for number, _ in found], pyarrow.int64())
    return Group(
        kind, month, pyarrow.table(arrays, schema=schema(kind)), numbers, chunk.table["position"].take(numbers)
    )
