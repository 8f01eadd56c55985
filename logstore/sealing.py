"""Writing a segment's file, and proving from the file that it holds what went in."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from logstore.errors import ArchiveError
from logstore.faults import fault
from logstore.records import from_micros, to_micros
from logstore.segments import KINDS, ROW_GROUP, SCHEMA_VERSION, Checksum, Segment, same_checksum, schema
from logstore.tables import JSON_COLUMNS

ROW_GROUP_BYTES = 64_000_000  # of rows in memory; payloads may be megabytes each, and a row group is held as a whole
_FOOTER = b"logstore.segment"
_TIMES = ("min_time", "max_time", "created")

# Names repeat, sorted times grow by little, ids and payloads do neither: a sixth smaller than with dictionaries for all.
_ENCODING: dict[str, Any] = {
    "use_dictionary": ["tenant_id", "destination_id", "topic", "status", "code"],
    "column_encoding": {"time": "DELTA_BINARY_PACKED", "event_time": "DELTA_BINARY_PACKED"},
}


def _compression(parent: str) -> dict[str, dict[str, Any]]:
    """Ids and payloads are most of a file. What questions read of all rows is small, and LZ4 unpacks it in no time."""
    names = schema(parent).names
    large = [name for name in names if name in ("id", "event_id") or name in JSON_COLUMNS]
    return {
        "compression": {name: "zstd" if name in large else "lz4" for name in names},
        "compression_level": dict.fromkeys(large, 3),
    }


def location(parent: str, month: date, base_offset: int, segment_id: str) -> str:
    return f"{parent}/{month:%Y-%m}/{base_offset:020d}-{segment_id}.parquet"


def write(archive: Path, draft: Segment, tables: Iterable[pa.Table]) -> Segment:
    """Write the rows of a draft under a temporary name, make them durable, and only then give the file its name.

    The checksum is of the rows as they came, not as they were written; `check` compares the two.
    """
    path = draft.path(archive)
    _make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.tmp")
    checksum = Checksum(draft.parent)
    edges: list[tuple[datetime, str]] = []
    with pq.ParquetWriter(temporary, schema(draft.parent), **_ENCODING, **_compression(draft.parent)) as writer:
        for table in tables:
            checksum.add(table)
            edges += [_edge(table, 0), _edge(table, -1)]
            edges[1:-1] = []
            writer.write_table(table, row_group_size=ROW_GROUP)
        segment = replace(
            draft,
            end_offset=draft.base_offset + checksum.rows,
            rows=checksum.rows,
            checksum=checksum.text,
            min_time=edges[0][0],
            max_time=edges[-1][0],
            min_id=edges[0][1],
            max_id=edges[-1][1],
        )
        writer.add_key_value_metadata({_FOOTER: json.dumps(_to_footer(segment))})
    fault("export.written")
    _sync(temporary)
    temporary.rename(path)
    _sync(path.parent)
    fault("export.renamed")
    return replace(segment, bytes=path.stat().st_size, sha256=sha256(path))


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of one row group each: so many rows, or fewer where these are large."""
    kept: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        while table.num_rows:
            part = table.slice(0, ROW_GROUP - rows)
            if kept and (rows == ROW_GROUP or size + part.nbytes > ROW_GROUP_BYTES):
                yield _joined(kept)
                rows = size = 0
                continue
            kept.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
            table = table.slice(part.num_rows)
    if kept:
        yield _joined(kept)


def _joined(parts: list[pa.Table]) -> pa.Table:
    """One table of several, which are let go: nobody needs the rows twice."""
    table = pa.concat_tables(parts).combine_chunks()
    parts.clear()
    return table


def read_rows(archive: Path, listed: Iterable[Segment]) -> Iterator[pa.Table]:
    """The rows of several files in order, never more at once than a row group may hold, however they were written."""
    for segment in listed:
        with pq.ParquetFile(segment.path(archive)) as file:
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                fit = ROW_GROUP_BYTES * group.num_rows // max(group.total_byte_size, 1)
                for batch in file.iter_batches(max(1, min(fit, ROW_GROUP)), row_groups=[number]):
                    yield pa.Table.from_batches([batch]).cast(schema(segment.parent))


def check(archive: Path, segment: Segment) -> None:
    """Read the whole file again and compare; ArchiveError says what differs."""
    path = segment.path(archive)
    if not path.exists():
        raise ArchiveError("its file is missing")
    if sha256(path) != segment.sha256:
        raise ArchiveError("its bytes have changed since it was sealed")
    found = read_footer(archive, path)
    for name in ("parent", "month", "rows", "base_offset", "end_offset", "min_time", "max_time", "min_id", "max_id"):
        if getattr(found, name) != getattr(segment, name):
            raise ArchiveError(f"its footer says {name} {getattr(found, name)}, the catalog {getattr(segment, name)}")
    again = Checksum(segment.parent)
    again.add_file(path)
    if again.rows != segment.rows or not same_checksum(again.text, segment.checksum):
        raise ArchiveError(f"its rows differ from what was written ({again.text} instead of {segment.checksum})")


def read_footer(archive: Path, path: Path) -> Segment:
    """The segment that a file's own footer describes."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        fields: dict[str, Any] = json.loads(metadata[_FOOTER])
        for name in _TIMES:  # a file of an older version does not say when it was created
            fields[name] = from_micros(fields[name]) if fields.get(name) is not None else None
        fields["month"] = date.fromisoformat(fields["month"])
        place = str(path.relative_to(archive))
        found = Segment(**fields, location=place, bytes=path.stat().st_size, sha256=sha256(path))
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ArchiveError(f"{path.name} is no segment of ours ({type(error).__name__})") from error
    if found.parent not in KINDS or location(found.parent, found.month, found.base_offset, found.segment_id) != place:
        raise ArchiveError(f"{path.name} is not where its footer says that it belongs: it is a copy, or was moved")
    return found


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def new_draft(
    parent: str,
    month: date,
    base_offset: int,
    segment_id: str,
    replaces: Iterable[str] = (),
    *,
    created: datetime,
    total: int,
) -> Segment:
    """A segment of which only its place is known, and what it will be part of."""
    return Segment(
        segment_id=segment_id,
        parent=parent,
        month=month,
        base_offset=base_offset,
        end_offset=base_offset,
        rows=0,
        bytes=0,
        sha256="",
        checksum="",
        min_time=None,
        max_time=None,
        min_id=None,
        max_id=None,
        location=location(parent, month, base_offset, segment_id),
        schema_version=SCHEMA_VERSION,
        replaces=list(replaces),
        state="writing",
        created=created,
        total=total,
    )


def _to_footer(segment: Segment) -> dict[str, Any]:
    known = ("segment_id", "parent", "month", "base_offset", "end_offset", "rows", "checksum", "min_time", "max_time",
             "min_id", "max_id", "schema_version", "replaces", "created", "total")  # fmt: skip
    fields = {name: value for name, value in asdict(segment).items() if name in known}
    for name in _TIMES:
        fields[name] = to_micros(fields[name])
    fields["month"] = segment.month.isoformat()
    return fields


def _edge(table: pa.Table, row: int) -> tuple[datetime, str]:
    micros = table.column("time").cast(pa.int64())[row].as_py()
    return from_micros(micros), table.column("id")[row].as_py()


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durable in the one that holds it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        _sync(made.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
