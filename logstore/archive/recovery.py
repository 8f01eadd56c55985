"""The catalog made anew from the footers of the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import psycopg

from logstore import metrics, partitions, sealing, segments
from logstore.archive import catalog
from logstore.archive.catalog import Finding
from logstore.errors import ArchiveError
from logstore.segments import Segment
from logstore.store import LogStore

_STATES = ("writing", "sealed", "quarantined", "retired")
_SUPERSEDED = "other files hold its rows, or newer ones"


def rebuild_catalog(store: LogStore) -> list[Finding]:
    """Write the catalog anew from the files' footers; what could not be listed is reported.

    What the catalog has stays as it is, above all what is retired, unless newer files hold all of a month that it lists.
    """
    archive = store.settings.archive
    found: list[Finding] = []
    files: dict[partitions.Month, list[Segment]] = {}
    for path in sorted(archive.glob("*/*/*.parquet"), key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            segment = sealing.read_footer(archive, path)
        except ArchiveError as error:
            found.append(Finding(what=str(path.relative_to(archive)), problem=str(error), done="left alone"))
        else:
            files.setdefault((segment.parent, segment.month), []).append(segment)
    for (parent, month), known in sorted(files.items()):
        name = partitions.partition_name(parent, month)
        try:
            with catalog.alone(store, name) as connection, connection.transaction():
                partitions.lock(connection, parent, month)
                found += _list_again(store, connection, parent, month, known)
        except ArchiveError as error:
            found.append(Finding(what=name, problem=str(error), done="left alone"))
    return found


def _list_again(
    store: LogStore, connection: psycopg.Connection[Any], parent: str, month: date, files: list[Segment]
) -> Iterator[Finding]:
    name = partitions.partition_name(parent, month)
    state = partitions.state_of(connection, parent, month, missing="purged")
    known = {s.segment_id: s for s in catalog.of_month(connection, parent, month, *_STATES)}
    listed = {s.segment_id: s for s in known.values() if s.state in ("sealed", "quarantined")}
    there = {s.segment_id: s for s in files if s.path(store.settings.archive).exists()}  # not deleted since we looked
    loose = [s for s in there.values() if s.segment_id not in known]
    if state in ("open", "closed"):
        for segment in loose:
            yield Finding(what=segment.location, problem=f"{name} is {state}: its table serves it", done="left alone")
        return
    of_listed = [there.get(segment_id, segment) for segment_id, segment in listed.items()]
    chosen, whole = segments.standing([*of_listed, *loose], listed.keys())
    new = [segment for segment in chosen if segment.segment_id not in listed]
    for segment in new:
        catalog.record(connection, segment, "sealed")
    if new and state == "purged":
        partitions.note(connection, parent, month, "purged")
        metrics.doubt(connection, parent, month)
    if not whole:
        rows = sum(segment.rows for segment in chosen)
        yield Finding(what=name, problem=f"its files do not hold all of it; those that are listed have {rows} rows")
    others = [segment for segment in (*of_listed, *loose) if segment not in chosen]
    if whole:
        catalog.set_state(connection, [s for s in others if s.segment_id in listed], "retired", _SUPERSEDED)
    for segment in others:
        if whole and segment.segment_id not in listed:
            catalog.record(connection, replace(segment, note=_SUPERSEDED), "retired")
        yield Finding(what=segment.location, problem=_SUPERSEDED, done="retired" if whole else "left alone")
