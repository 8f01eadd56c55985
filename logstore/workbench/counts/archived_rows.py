"""A static statement over one segment of the archive: its rows, or the sentence that names what cannot be read."""

from __future__ import annotations

from typing import Any

from logstore import cold, deadline, segments
from logstore.segments import Segment
from logstore.statements import statements
from logstore.store import LogStore


def rows(store: LogStore, segment: Segment, name: str, values: list[Any]) -> tuple[list[Any], str | None]:
    """The rows, or none and why; `values` follow the file. TooBroad when this thread's time is over."""
    if segment.state != "sealed":
        return [], cold.hole(segment)
    cursor = segments.engine()
    asked = [str(segment.path(store.settings.archive)), *values]
    try:
        with deadline.interrupted(cursor):
            return cursor.execute(statements("duckdb", "workbench")[name], asked).fetchall(), None
    except cold.UNREADABLE as error:
        return [], cold.hole(segment, error)
