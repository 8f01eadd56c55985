"""What the engines will do with a selection: the tree, the SQL, the index or why none, what is pruned, how many rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import psycopg

from logstore import cold, display, fields, filters
from logstore.cold import Wanted
from logstore.cursor import Kind
from logstore.records import Selection
from logstore.segments import Segment
from logstore.tables import BY_KIND
from logstore.tiers import Map, Tiers, stretches

_LIMIT = 101


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """How one page of a selection would be read."""

    tree: str | None
    postgres: str
    duckdb: str
    index: str
    estimated_rows: int
    partitions_read: int
    partitions_pruned: int
    segments_read: int
    segments_pruned: int

    def _repr_html_(self) -> str:
        values = {name.replace("_", " "): getattr(self, name) for name in self.__slots__}
        return display.fields(values, caption="what one page costs", most=10_000)


def explain(tiers: Tiers, selection: Selection, kind: Kind) -> Explanation:
    """Ask the planner, run nothing."""
    tree = None if selection.where is None else filters.parse(selection.where, kind)
    wanted = Wanted(kind, selection, tree)

    def read(connection: psycopg.Connection[Any], known: Map) -> Explanation:
        text, values = tiers.ask(connection, wanted, _LIMIT).sql()
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {text}", values).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        scans = list(_scans(plan))
        parent = BY_KIND[kind].name
        leaves = sum(1 for month, state in known.states.items() if month[0] == parent and state in ("open", "closed"))
        read_leaves = {scan["Relation Name"] for scan in scans if scan.get("Relation Name", "").startswith(parent)}
        needed, passed = _segments(known, wanted)
        conditions = " AND ".join(f"({condition})" for condition, _ in cold.conditions(wanted))
        return Explanation(
            tree=None if tree is None else str(tree),
            postgres=text,
            duckdb=f"SELECT * FROM {parent} WHERE {conditions or 'true'} ORDER BY time DESC, id DESC LIMIT {_LIMIT}",
            index=_index(connection, selection, tree, scans),
            estimated_rows=int(plan["Plan Rows"]),
            partitions_read=len(read_leaves),
            partitions_pruned=max(0, leaves - len(read_leaves)),
            segments_read=len(needed),
            segments_pruned=passed,
        )

    return tiers.steadily(read)


def _scans(node: dict[str, Any]) -> Any:
    if "Relation Name" in node or "Index Name" in node:
        yield node
    for child in node.get("Plans", ()):
        yield from _scans(child)


def _index(
    connection: psycopg.Connection[Any], selection: Selection, tree: filters.Filter | None, scans: list[dict[str, Any]]
) -> str:
    used = sorted({re.sub(r"^(events|attempts)_\d{4}_\d{2}_", "", s["Index Name"]) for s in scans if "Index Name" in s})
    sentences = [f"uses {', '.join(used)}" if used else "uses no index: it scans"]
    if tree is not None:
        sentences += [f"{part}: {_why(connection, selection, part, tree)}" for part in _leaves(tree)]
    return "; ".join(sentences)


def _why(connection: psycopg.Connection[Any], selection: Selection, part: filters.Compare, tree: filters.Filter) -> str:
    if fields.served(connection, selection.topics, tree) == part:
        return "served by its field index"
    reason = fields.why_not(part)
    if reason is not None:
        return f"filtered row by row, because {reason}"
    if part.field.path:
        return "filtered row by row, because the field is not indexed for exactly one topic (`index add` indexes it)"
    return "filtered row by row"


def _leaves(tree: filters.Filter) -> list[filters.Compare]:
    return [tree] if isinstance(tree, filters.Compare) else [leaf for part in tree.parts for leaf in _leaves(part)]


def _segments(known: Map, wanted: Wanted) -> tuple[list[Segment], int]:
    """The segments that a full walk would read, and how many the catalog's times rule out."""
    months = [month for stretch in stretches(known.states, wanted.parent) for month in stretch.months]
    listed = known.listed(wanted.parent, months)
    needed = [segment for segment in listed if wanted.meets(segment.min_time, segment.max_time)]
    return needed, len(listed) - len(needed)
