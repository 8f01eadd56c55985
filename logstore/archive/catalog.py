"""What every work on the archive needs: a month to itself, and its segments' rows in the catalog."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg

from logstore import partitions, segments
from logstore.errors import ArchiveError
from logstore.segments import Checksum, Segment
from logstore.statements import statements
from logstore.store import LogStore


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that verify or reconcile has to say."""

    what: str
    problem: str
    done: str = ""


@contextlib.contextmanager
def alone(store: LogStore, partition: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that holds the month's archive lock; one export, compaction or restore of a month at a time."""
    with store.database.connection(autocommit=True) as connection:
        row = connection.execute(
            "SELECT pg_try_advisory_lock(hashtextextended('archive ' || %s, 0))", [partition]
        ).fetchone()
        if row != (True,):
            raise ArchiveError(f"another process is archiving {partition} right now; wait until it is done")
        yield connection


def require_folder(store: LogStore, connection: psycopg.Connection[Any]) -> None:
    """Refuse to work where none of the listed files is: a wrong setting, or a disk that is not mounted.

    Verifying there would take the whole archive from its readers, and exporting would tear it in two.
    """
    archive = store.settings.archive
    if next(archive.glob("*/*/*.parquet"), None) is not None:
        return
    if any(segment.state == "sealed" for segment in segments.listed(connection)):
        raise ArchiveError(
            f"none of the archive's files is in {archive}: check LOGSTORE_ARCHIVE, or mount its disk. "
            "Should they really be lost, verify their months by name, which takes them from the readers"
        )


def of_month(connection: psycopg.Connection[Any], parent: str, month: date, *states: str) -> list[Segment]:
    return segments.fetch(connection, "of_month", {"parent": parent, "month": month, "states": list(states)})


def record(connection: psycopg.Connection[Any], segment: Segment, state: str) -> None:
    values = asdict(segment) | {"state": state, "replaces": list(segment.replaces)}
    connection.execute(statements("postgres", "segments")["record"], values)


def seal(connection: psycopg.Connection[Any], segment: Segment) -> None:
    """List a segment that was re-read and compared."""
    record(connection, segment, "sealed")
    connection.execute(statements("postgres", "segments")["set_verified"], {"id": segment.segment_id})


def set_state(connection: psycopg.Connection[Any], listed: list[Segment], state: str, note: str | None = None) -> bool:
    """Whether any was still listed: what somebody retired meanwhile stays so."""
    values = {"ids": [segment.segment_id for segment in listed], "state": state, "note": note}
    return connection.execute(statements("postgres", "segments")["set_state"], values).rowcount > 0


def discard(store: LogStore, connection: psycopg.Connection[Any], unwanted: list[Segment]) -> None:
    """Files first, then rows: a file without a row would be a riddle."""
    for segment in unwanted:
        path = segment.path(store.settings.archive)
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.tmp").unlink(missing_ok=True)
    ids = [segment.segment_id for segment in unwanted]
    connection.execute(statements("postgres", "segments")["forget"], {"ids": ids})


def sums(archive: Path, listed: list[Segment]) -> str:
    """The checksum of several segments together, from their files: another DuckDB may have sealed them."""
    if not listed:
        return ""
    together = Checksum(listed[0].parent)
    for segment in listed:
        together.add_file(segment.path(archive))
    return together.text


def remedy(store: LogStore, name: str) -> str:
    there = any(partition.name == name for partition in partitions.inventory(store.database))
    if there:
        return f"the table is still there: `python -m logstore restore {name}`, then export it again"
    return "bring the file back from a backup, then verify again"
