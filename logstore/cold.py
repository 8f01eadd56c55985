"""Reading the cold tier: a selection as DuckDB's conditions, a segment in order, its rows as records, its holes named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from logstore import filters, partitions, segments
from logstore.cursor import Kind, Position
from logstore.postgres import loads
from logstore.queries import Interval
from logstore.records import Selection, from_micros, rfc3339
from logstore.segments import Condition, Segment
from logstore.tables import BY_KIND, JSON_COLUMNS, RECORDS, TIME_COLUMNS

UNREADABLE = (duckdb.Error, OSError, pa.ArrowException)
_TIME = {parent: segments.schema(parent).names.index("time") for parent in segments.KINDS}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a tier: records of a selection beyond a position, in one direction."""

    kind: Kind
    selection: Selection
    where: filters.Filter | None = None
    position: Position | None = None
    ascending: bool = False

    @property
    def parent(self) -> str:
        return BY_KIND[self.kind].name

    @property
    def reach(self) -> Interval:
        """The interval of time, both ends included, in which an answer can lie."""
        time, here = self.selection.time, self.position.time if self.position else None
        lowers = [t for t in (time.gte, time.gt, here if self.ascending else None) if t]
        uppers = [t for t in (time.lte, time.lt, None if self.ascending else here) if t]
        return max(lowers, default=None), min(uppers, default=None)

    def meets(self, first: datetime | None, last: datetime | None) -> bool:
        """Whether an answer can lie between two times; None is open."""
        lower, upper = self.reach
        below = last is not None and lower is not None and last < lower
        above = first is not None and upper is not None and first > upper
        return not below and not above


def conditions(wanted: Wanted) -> list[Condition]:
    """The selection and the cursor as DuckDB's conditions; every value is a parameter."""
    selection, position = wanted.selection, wanted.position
    named = {
        "tenant_id": selection.tenant_ids,
        "id" if wanted.kind == "event" else "event_id": selection.event_ids,
        "destination_id": selection.destination_ids,
        "topic": selection.topics,
        "status": (selection.status,) if selection.status else (),
    }
    found: list[Condition] = [
        (f"{name} IN ({', '.join('?' * len(values))})", list(values)) for name, values in named.items() if values
    ]
    found += [segments.time_condition(operator, bound) for operator, bound in selection.time.bounds()]
    if position is not None:
        sign = ">" if wanted.ascending else "<"
        (before, at), (equal, _) = (segments.time_condition(op, position.time) for op in (sign, sign + "="))
        found += [(equal, at), (f"{before} OR id {sign} ?", [*at, position.id])]
    if wanted.where is not None:
        found.append(filters.to_duckdb(wanted.where))
    return found


def read_segment(archive: Path, segment: Segment, wanted: Wanted, limit: int) -> list[Any]:
    """Up to `limit` records of one segment, read window by window until the page is full."""
    path, at = segment.path(archive), _TIME[segment.parent]
    asked = conditions(wanted)
    rows: list[tuple[Any, ...]] = []
    for window in segments.windows(path, ascending=wanted.ascending):
        if len(rows) >= limit:
            break
        if not wanted.meets(window.first, window.last):
            continue
        bounds = [segments.time_condition(">=", window.first), segments.time_condition("<=", window.last)]
        # Neighbouring windows may share their edge's time; what was read already is not read again.
        seen = {(row[at], row[0]) for row in rows}
        more = segments.select_rows(
            path, segment.parent, [*bounds, *asked], ascending=wanted.ascending, limit=limit - len(rows) + len(seen)
        )
        rows += [row for row in more if (row[at], row[0]) not in seen]
    return records(wanted.kind, rows[:limit])


def find(archive: Path, segment: Segment, kind: Kind, id: str) -> list[Any]:
    """The records of an id in one segment."""
    path = segment.path(archive)
    return records(kind, segments.select_rows(path, segment.parent, [("id = ?", [id])], ascending=False, limit=100))


def records(kind: Kind, rows: list[tuple[Any, ...]]) -> list[Any]:
    names = list(BY_KIND[kind].columns.keys())
    times = [i for i, name in enumerate(names) if name in TIME_COLUMNS]
    texts = [i for i, name in enumerate(names) if name in JSON_COLUMNS]
    made = []
    for row in rows:
        values = list(row)
        for i in times:
            values[i] = from_micros(values[i])
        for i in texts:
            values[i] = None if values[i] is None else loads(values[i])
        made.append(values)
    return list(RECORDS[kind]._rows(made))


def hole(segment: Segment, problem: Exception | str | None = None) -> str:
    """What is missing because a segment cannot be read, and what to do; else the catalog knows the problem."""
    if isinstance(problem, Exception):
        problem = f"{type(problem).__name__} while reading it"
    why = problem or segment.note or "it is quarantined"
    between = " to ".join(rfc3339(t) for t in (segment.min_time, segment.max_time) if t)
    name = partitions.partition_name(segment.parent, segment.month)
    return (
        f"{segment.rows} {segment.parent} from {between} cannot be read: segment {segment.segment_id}: {why}. "
        f"`python -m logstore verify` looks again; `python -m logstore restore {name}` helps while the table is there"
    )
