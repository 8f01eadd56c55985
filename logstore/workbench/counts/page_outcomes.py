"""What became of the events on one page: was each destination reached that was tried? Over both tiers."""

from __future__ import annotations

from typing import Any

import psycopg

from logstore import deadline
from logstore.records import Event, Page, to_micros
from logstore.segments import Segment
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tiers import Map, stretches
from logstore.workbench.counts import archived_rows

SECONDS = 5.0  # where nobody set another limit
Key = tuple[str, str]  # tenant, event


class Outcomes(dict[Key, list[bool]]):
    """Per event that was tried: was each destination reached?

    `unknown` are events whose attempts may be in the files that `warnings` name, which cannot be read.
    """

    unknown: frozenset[Key] = frozenset()
    warnings: tuple[str, ...] = ()


def outcomes(store: LogStore, page: Page[Any]) -> Outcomes:
    """The outcomes of the events of a page; TooBroad when that takes too long."""
    if not page.data:
        return Outcomes()
    if deadline.left() is not None:
        return _look(store, page)
    with deadline.within(SECONDS):
        return _look(store, page)


def _look(store: LogStore, page: Page[Any]) -> Outcomes:
    ids = [event.id for event in page]
    oldest, newest = min(event.time for event in page), max(event.time for event in page)

    def read(connection: psycopg.Connection[Any], known: Map) -> tuple[list[Any], list[tuple[Segment, str]]]:
        with deadline.limited(connection):
            statement = statements("postgres", "workbench")["outcomes_of_events"]
            rows = connection.execute(statement, {"events": ids}).fetchall()
        holes = []
        months = [month for stretch in stretches(known.states, "attempts") for month in stretch.months]
        for segment in known.listed("attempts", months):
            if segment.max_time is None or segment.max_time < oldest:  # attempts follow events
                continue
            asked = [ids, to_micros(oldest), to_micros(newest)]
            found, hole = archived_rows.rows(store, segment, "outcomes_of_events", asked)
            rows += found
            holes += [(segment, hole)] if hole else []
        return rows, holes

    rows, holes = store.tiers.steadily(read)
    found = _by_event(rows)
    found.unknown = frozenset(
        (event.tenant_id, event.id) for event in page if any(_may_change(segment, event, found) for segment, _ in holes)
    )
    found.warnings = tuple(hole for _, hole in holes)
    return found


def _by_event(rows: list[Any]) -> Outcomes:
    reached: dict[tuple[str, str, str], bool] = {}
    for event, tenant, destination, success in rows:
        reached[tenant, event, destination] = reached.get((tenant, event, destination), False) or success
    found = Outcomes()
    for (tenant, event, _), success in reached.items():
        found.setdefault((tenant, event), []).append(success)
    return found


def _may_change(hole: Segment, event: Event, known: Outcomes) -> bool:
    """Whether a segment that cannot be read may hold what changes an outcome.

    Whoever was not reached may have been tried again at any later time; who was reached everywhere, was first tried soon.
    """
    if hole.min_time is None or hole.max_time is None or event.time > hole.max_time:
        return False
    delivered = all(known.get((event.tenant_id, event.id), [False]))
    return not delivered or (hole.min_time - event.time).days < 1
