"""A whole selection as a file: walked page by page over both tiers and encoded as it goes, so that memory stays flat."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from logstore import cold, segments
from logstore.cursor import Kind
from logstore.errors import ArchiveError, InvalidSelection
from logstore.records import Page, Selection, rfc3339
from logstore.store import LIMIT_MOST, LogStore
from logstore.tables import BY_KIND, JSON_COLUMNS, RECORDS, TIME_COLUMNS
from logstore.tiers import stretches

FORMATS = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
_FIRST = 100  # records of the first page; after it, as many as make about this many bytes
_PAGE_BYTES = 4_000_000
_GROUP_BYTES = 16_000_000  # of a row group of Parquet, before it is compressed
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def export(store: LogStore, kind: Kind, selection: Selection, format: str) -> Iterator[bytes]:
    """The bytes of a file with every record of the selection, newest first.

    Nothing is held between two pieces, so it can be left at any time. What cannot be read raises: a file that ends is whole.
    """
    if format not in FORMATS:
        raise InvalidSelection(f"unknown format {format!r}: use one of {', '.join(FORMATS)}")
    encoder = _ENCODERS[format](kind)
    for data in walk(store, kind, selection, encoder):
        piece = encoder.add(data)
        if piece:
            yield piece
    yield encoder.end()


class Weighing(Protocol):
    """Who says how many bytes the last page made, so that the next one is neither too large nor too small."""

    weight: int


def walk(store: LogStore, kind: Kind, selection: Selection, weighing: Weighing) -> Iterator[Sequence[Any]]:
    """All records of a selection by pages; the cursor keeps its place while rows arrive and months move."""
    whole(store, kind, selection)
    limit, next_ = _FIRST, None
    while True:
        page = _page(store, kind, selection, limit, next_)
        if page.warnings:
            raise ArchiveError(page.warnings[0])
        yield page.data
        if page.next is None:
            return
        next_ = page.next
        limit = min(LIMIT_MOST, max(1, limit * _PAGE_BYTES // max(1, weighing.weight)))


def whole(store: LogStore, kind: Kind, selection: Selection) -> None:
    """Refuse a selection of which a part cannot be read, before anything of it is written."""
    wanted, known = cold.Wanted(kind, selection), store.tiers.refresh()
    for stretch in stretches(known.states, wanted.parent):
        for segment in known.listed(wanted.parent, stretch.months):
            if segment.state == "quarantined" and wanted.meets(segment.min_time, segment.max_time):
                raise ArchiveError(cold.hole(segment))


def _page(store: LogStore, kind: Kind, selection: Selection, limit: int, next: str | None) -> Page[Any]:
    if kind == "event":
        return store.list_event(selection, limit=limit, next=next)
    return store.list_attempt(selection, limit=limit, next=next)


def harmless(text: str) -> str:
    """A text for a cell of CSV: one that a spreadsheet would run gets an apostrophe in front."""
    return f"'{text}" if text.startswith(_FORMULA) else text


class _Csv:
    """A line of names, then a line for each record; JSON as text, times in RFC 3339, nothing for null."""

    def __init__(self, kind: Kind) -> None:
        self.weight = 0
        self._columns = RECORDS[kind].columns
        self._head: tuple[str, ...] | None = self._columns

    def add(self, records: Sequence[Any]) -> bytes:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        if self._head is not None:
            writer.writerow(self._head)
            self._head = None
        writer.writerows([_cell(name, getattr(record, name)) for name in self._columns] for record in records)
        found = out.getvalue().encode()
        self.weight = len(found)
        return found

    def end(self) -> bytes:
        return b""


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if name in TIME_COLUMNS:
        return rfc3339(value)
    if name in JSON_COLUMNS:
        return harmless(_json(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return harmless(value) if isinstance(value, str) else value


_json = json.JSONEncoder(ensure_ascii=False).encode


class _Lines:
    """A JSON object a line, as `load` reads it again."""

    def __init__(self, kind: Kind) -> None:
        self.weight = 0

    def add(self, records: Sequence[Any]) -> bytes:
        found = "".join(f"{record.to_json()}\n" for record in records).encode()
        self.weight = len(found)
        return found

    def end(self) -> bytes:
        return b""


class _Parquet:
    """Columns as the archive's own files have them; written into a buffer that is emptied with every row group."""

    def __init__(self, kind: Kind) -> None:
        self.weight = 0
        self._schema = segments.schema(BY_KIND[kind].name)
        self._buffer = _Drain()
        self._writer = pq.ParquetWriter(self._buffer, self._schema, compression="zstd")
        self._tables: list[pa.Table] = []

    def add(self, records: Sequence[Any]) -> bytes:
        columns = [self._column(field, records) for field in self._schema]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self.weight = table.nbytes
        self._tables.append(table)
        full = sum(len(t) for t in self._tables) >= segments.ROW_GROUP
        if full or sum(t.nbytes for t in self._tables) >= _GROUP_BYTES:
            self._write()
        return self._buffer.drained()

    def end(self) -> bytes:
        self._write()
        self._writer.close()
        return self._buffer.drained()

    def _write(self) -> None:
        table = pa.concat_tables(self._tables) if self._tables else self._schema.empty_table()
        self._tables = []
        if len(table):
            self._writer.write_table(table, row_group_size=len(table))

    @staticmethod
    def _column(field: Any, records: Sequence[Any]) -> Any:
        values = [getattr(record, field.name) for record in records]
        if field.name in JSON_COLUMNS:
            values = [None if value is None else _json(value) for value in values]
        return pa.array(values, type=field.type)


class _Drain(io.RawIOBase):
    """A file that forgets what was taken from it, and still knows how far it is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, piece: Any) -> int:
        self._pieces.append(bytes(piece))
        self._at += len(self._pieces[-1])
        return len(self._pieces[-1])

    def drained(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


_ENCODERS: dict[str, Any] = {"csv": _Csv, "jsonl": _Lines, "parquet": _Parquet}
