"""What the engines will do with a selection: the tree, the SQL, the index or why none, what is pruned, how many rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What running a statement took, as PostgreSQL counted it."""

    rows: int
    buffers: int  # pages of 8 kB that were looked at, wherever they were
    thrown_away: int  # rows that were read, and then a filter or an offset dropped them
    tables: int  # months that were scanned
    milliseconds: float
    plan: str

    def _repr_html_(self) -> str:
        return display.fields({name.replace("_", " "): getattr(self, name) for name in self.__slots__}, most=10_000)


def cost(connection: psycopg.Connection[Any], statement: str, values: Mapping[str, Any]) -> Cost:
    """Run a SELECT under EXPLAIN (ANALYZE, BUFFERS); for looking at one way of asking beside another."""
    row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values).fetchone()
    assert row is not None
    top = row[0][0]["Plan"]
    done = [scan for scan in _scans(top) if scan["Actual Loops"]]
    kept = sum(round(scan["Actual Rows"] * scan["Actual Loops"]) for scan in done if "Relation Name" in scan)
    filtered = sum(round(scan.get("Rows Removed by Filter", 0) * scan["Actual Loops"]) for scan in done)
    skipped = kept - round(top["Actual Rows"]) if top["Node Type"] == "Limit" and "OFFSET" in statement.upper() else 0
    return Cost(
        rows=round(top["Actual Rows"]),
        buffers=top["Shared Hit Blocks"] + top["Shared Read Blocks"],
        thrown_away=filtered + max(0, skipped),
        tables=len({scan["Relation Name"] for scan in done if "Relation Name" in scan}),
        milliseconds=row[0][0]["Execution Time"],
        plan=_drawn(top),
    )


def _drawn(node: dict[str, Any], depth: int = 0) -> str:
    """A plan as one line per step that ran: what it does, where, by which condition."""
    if not node["Actual Loops"]:
        return ""
    where = node.get("Index Name") or node.get("Relation Name") or ""
    said = [node[name] for name in ("Index Cond", "Filter") if name in node]
    line = "  " * depth + " ".join([node["Node Type"], where]).rstrip()
    line += f" ({node['Actual Rows']:.0f} rows)" + "".join(f"\n{'  ' * depth}    {text}" for text in said)
    below = [_drawn(child, depth + 1) for child in node.get("Plans", ())]
    return "\n".join([line, *(text for text in below if text)])


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
