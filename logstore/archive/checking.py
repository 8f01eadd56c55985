"""Is the archive whole? Every byte read again, folder and catalog compared both ways."""

from __future__ import annotations

from datetime import date
from typing import Any

import duckdb
import psycopg
import pyarrow as pa

from logstore import partitions, sealing, segments
from logstore.archive import catalog
from logstore.archive.catalog import Finding
from logstore.archive.exporting import Progress
from logstore.archive.retiring import delete_expired
from logstore.errors import ArchiveError
from logstore.segments import Segment
from logstore.statements import statements
from logstore.store import LogStore


def verify(store: LogStore, partition: str | None = None, *, progress: Progress | None = None) -> list[Finding]:
    """Read every byte of every listed segment; quarantine what is bad, take back what turned out to be good."""
    found = []
    month = None if partition is None else partitions.parse_name(partition)
    with store.database.connection(autocommit=True) as connection:
        if month is None:
            catalog.require_folder(store, connection)
        listed = [s for s in segments.listed(connection) if month in (None, (s.parent, s.month))]
        for number, segment in enumerate(listed, 1):
            finding = _verify_one(store, connection, segment)
            found += [finding] if finding else []
            if progress:
                progress(number, len(listed))
    return found


def _verify_one(store: LogStore, connection: psycopg.Connection[Any], segment: Segment) -> Finding | None:
    try:
        sealing.check(store.settings.archive, segment)
    except (ArchiveError, OSError, pa.ArrowException, duckdb.Error) as error:
        if not catalog.set_state(connection, [segment], "quarantined", str(error)[:500]):
            return None  # it was retired while we read it: nobody misses it
        name = partitions.partition_name(segment.parent, segment.month)
        return Finding(what=segment.location, problem=str(error), done=f"quarantined; {catalog.remedy(store, name)}")
    connection.execute(statements("postgres", "segments")["set_verified"], {"id": segment.segment_id})
    if segment.state == "quarantined" and catalog.set_state(connection, [segment], "sealed"):
        return Finding(what=segment.location, problem="was quarantined but is good", done="sealed again")
    return None


def reconcile(store: LogStore) -> list[Finding]:
    """Compare folder and catalog both ways; clean what is certainly rubbish, report the rest."""
    archive = store.settings.archive
    with store.database.connection(autocommit=True) as connection:
        found = delete_expired(store, connection)
        writing = {(s.parent, s.month) for s in segments.fetch(connection, "all") if s.state == "writing"}
        for parent, month in sorted(writing):
            found += _clean(store, parent, month)
        # The folder first: a file is not begun before the catalog knows of it.
        paths = sorted(archive.glob("*/*/*.parquet"))
        catalogued = {segment.location: segment for segment in segments.fetch(connection, "all")}
    for place, segment in catalogued.items():
        if not (archive / place).exists() and segment.state in ("sealed", "quarantined"):
            found.append(Finding(what=place, problem="the catalog lists it, but there is no such file"))
    for path in paths:
        if str(path.relative_to(archive)) not in catalogued and path.exists():
            found.append(Finding(what=str(path.relative_to(archive)), problem="the catalog does not list this file"))
    return found


def _clean(store: LogStore, parent: str, month: date) -> list[Finding]:
    """Remove what a killed export or compaction left; one that is at work is left alone, and so is what it sealed since."""
    try:
        with catalog.alone(store, partitions.partition_name(parent, month)) as connection:
            left = catalog.of_month(connection, parent, month, "writing")
            catalog.discard(store, connection, left)
    except ArchiveError:
        return []
    return [Finding(what=segment.location, problem="an export was killed", done="removed") for segment in left]
