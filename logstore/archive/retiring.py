"""Segments that nobody needs any more: taken from the readers first, deleted after a grace."""

from __future__ import annotations

from typing import Any

import psycopg

from logstore import metrics, partitions
from logstore.archive import catalog
from logstore.archive.catalog import Finding
from logstore.errors import ArchiveError
from logstore.segments import Segment
from logstore.statements import statements
from logstore.store import LogStore

GRACE_SECONDS = 3600  # a retired file outlives every page that may still read it


def retire(store: LogStore, partition: str, *, note: str) -> list[Segment]:
    """Take a purged month's segments from the readers; the files are deleted after their grace."""
    parent, month = partitions.parse_name(partition)
    with catalog.alone(store, partition) as connection, connection.transaction():
        partitions.lock(connection, parent, month)
        state = partitions.state_of(connection, parent, month)
        if state != "purged":
            raise ArchiveError(f"{partition} is {state}: only a month that is purged can leave the archive")
        gone = catalog.of_month(connection, parent, month, "sealed", "quarantined")
        catalog.set_state(connection, gone, "retired", note)
        metrics.forget(connection, parent, month)  # what nobody can read any more is not counted either
        return gone


def delete_expired(store: LogStore, connection: psycopg.Connection[Any]) -> list[Finding]:
    """Delete the files that were retired so long ago that no page can still be reading them."""
    catalog.require_folder(store, connection)
    known = statements("postgres", "segments")
    expired = connection.execute(known["expired"], {"grace": GRACE_SECONDS}).fetchall()
    for segment_id, place in expired:
        (store.settings.archive / place).unlink(missing_ok=True)
        connection.execute(known["forget"], {"ids": [segment_id]})
    return [Finding(what=place, problem="retired, and its grace is over", done="deleted") for _, place in expired]
