"""The SELECT of one page from PostgreSQL: only the predicates that are present, along an index whatever they are.

Statements are built once per shape of question and reused with new values, because building and planning cost more than
running. Three forms:

- plain: every field has at most one value; an index of (tenant, field, time, id) gives the order.
- each: several values of a field become one bounded index scan per value, merged on top: O(values × limit).
- known: no tenant is given but a topic, status or destination is; the tenants that we know drive the scans.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    DateTime,
    Dialect,
    FromClause,
    Integer,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects import postgresql

from logstore import filters
from logstore.cursor import Kind, Position
from logstore.records import Selection
from logstore.tables import BY_KIND, destinations, tenants

Interval = tuple[datetime | None, datetime | None]
_WITHIN = ("within_lower", "within_upper")
_DIALECT: Dialect = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]

# With more tenants than this, a scan per tenant costs more than it saves.
KNOWN_TENANTS_MOST = 500

_OPERATORS = {
    ">=": lambda column, value: column >= value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    "<": lambda column, value: column < value,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a question changes the statement; everything else is a parameter."""

    kind: Kind
    form: str  # plain, each, known
    equal: tuple[str, ...]  # columns with one value
    any_of: tuple[str, ...]  # columns with several values that only filter
    driving: tuple[str, ...]  # columns whose values drive one scan each
    bounds: tuple[str, ...]  # operators on time
    cursor: bool
    ascending: bool
    limit: int
    within: tuple[bool, bool]  # whether a lower and an upper bound of the hot stretch apply
    where: Any = None  # the filter's tree, which is hashable


@dataclass(frozen=True, slots=True)
class Question:
    """A selection, a place and a direction, as PostgreSQL is asked."""

    shape: Shape
    values: dict[str, Any]

    def sql(self) -> tuple[str, dict[str, Any]]:
        """Text and values as psycopg is given them; sent straight to it, because SQLAlchemy's execution costs more."""
        text, constants = page_sql(self.shape)
        return text, {**constants, **self.values}


def question(
    kind: Kind,
    selection: Selection,
    *,
    position: Position | None,
    ascending: bool,
    limit: int,
    within: Interval = (None, None),
    where: Any = None,
    tenants_known: int | None = None,
    field_index: bool = False,
    plain: bool = False,
) -> Question:
    """How to ask for the records of a selection beyond a position, inside an interval of time.

    `field_index` says that the filter names an indexed field of the one topic that is asked for. `plain` asks for
    nothing but predicates: what counts all records has no use for scans that stop early.
    """
    given = _columns(kind, selection)
    equal = {name: values[0] for name, values in given.items() if len(values) == 1}
    several = {name: values for name, values in given.items() if len(values) > 1}
    form, driving = ("plain", ()) if field_index or plain else _form(kind, equal, several, tenants_known)
    values: dict[str, Any] = {f"eq_{name}": value for name, value in equal.items() if name not in driving}
    values |= {f"any_{name}": list(v) for name, v in several.items() if name not in driving}
    rows = list(itertools.product(*(given[name] for name in driving)))
    values |= {f"each_{name}": [row[i] for row in rows] for i, name in enumerate(driving)}
    bounds = selection.time.bounds()
    values |= {f"bound_{i}": time for i, (_, time) in enumerate(bounds)}
    values |= {name: bound for name, bound in zip(_WITHIN, within, strict=True) if bound is not None}
    if position is not None:
        values |= {"at_time": position.time, "at_id": position.id}
    shape = Shape(
        kind=kind,
        form=form,
        equal=tuple(name for name in equal if name not in driving),
        any_of=tuple(name for name in several if name not in driving),
        driving=driving,
        bounds=tuple(operator for operator, _ in bounds),
        cursor=position is not None,
        ascending=ascending,
        limit=limit,
        within=(within[0] is not None, within[1] is not None),
        where=where,
    )
    return Question(shape, values)


def _columns(kind: Kind, selection: Selection) -> dict[str, tuple[str, ...]]:
    """The table's columns that the selection names, with their values."""
    named = {
        "tenant_id": selection.tenant_ids,
        "id" if kind == "event" else "event_id": selection.event_ids,
        "destination_id": selection.destination_ids,
        "topic": selection.topics,
        "status": (selection.status,) if selection.status else (),
    }
    return {name: values for name, values in named.items() if values}


def _form(
    kind: Kind, equal: dict[str, Any], several: dict[str, Any], tenants_known: int | None
) -> tuple[str, tuple[str, ...]]:
    """Which form answers best, and which columns drive its scans."""
    point = "id" if kind == "event" else "event_id"
    if point in equal:
        return "plain", ()
    if point in several:
        return "each", (point,)
    fields = ("topic",) if kind == "event" else ("destination_id", "topic")
    field = next((name for name in fields if name in several), None)
    if "tenant_id" in equal or "tenant_id" in several:
        if field is None and "tenant_id" in equal:
            return "plain", ()
        # Several tenants with one topic: the topic joins the tenant in driving, so that each scan has both.
        field = field or next((name for name in (*fields, "status") if name in equal), None)
        return "each", ("tenant_id", field) if field else ("tenant_id",)
    if kind == "attempt" and ("destination_id" in equal or "destination_id" in several):
        return "known", ()
    few = tenants_known is not None and tenants_known <= KNOWN_TENANTS_MOST
    if few and any(name in equal or name in several for name in ("topic", "status")):
        return "known", (field,) if field else ()
    return "plain", ()


@lru_cache(maxsize=2000)
def page_sql(shape: Shape) -> tuple[str, dict[str, Any]]:
    """The text of a shape, and the values that belong to it (those of its filter); the others are bound by name."""
    return render(_page(shape))


def render(statement: Select[Any]) -> tuple[str, dict[str, Any]]:
    """A statement as psycopg takes it, and the values that it carries itself."""
    compiled = statement.compile(dialect=_DIALECT)
    given = {name: value for name, value in compiled.params.items() if value is not None}
    state = compiled.construct_expanded_state({**dict.fromkeys(compiled.params), **given})
    return state.statement, dict(state.parameters)


def _page(shape: Shape) -> Select[Any]:
    table = BY_KIND[shape.kind]
    if shape.form == "plain":
        return _ordered(select(*table.c).where(*predicates(table, shape)), table, shape)
    return _keyed(table, shape)


def _keyed(table: Table, shape: Shape) -> Select[Any]:
    """Keys first, one bounded scan per driving row, then the payload of the keys that made it."""
    drive, joined = _drive(table, shape)
    scan = select(table.c.time, table.c.id).where(*joined, *predicates(table, shape))
    each = _ordered(scan, table, shape).lateral("each_scan")
    merged = select(each.c.time, each.c.id).select_from(drive).join(each, true())
    keys = _ordered(merged, each, shape).cte("keys")
    # LIMIT 1 keeps the look-ups one by one: on small months the planner would rather hash-join whole tables.
    found = and_(table.c.time == keys.c.time, table.c.id == keys.c.id)
    full = select(*table.c).where(found).limit(literal_column("1")).lateral("record")
    return _order(select(*full.c).select_from(keys.join(full, true())), full, shape)


def _drive(table: Table, shape: Shape) -> tuple[FromClause, list[ColumnElement[bool]]]:
    """The rows that drive the scans, and how a scan is tied to its row."""
    parts: list[FromClause] = []
    joined: list[ColumnElement[bool]] = []
    if shape.driving:
        given = (
            func.unnest(*(bindparam(f"each_{name}", type_=ARRAY(Text)) for name in shape.driving))
            .table_valued(*shape.driving)
            .render_derived(name="given")
        )
        parts.append(given)
        joined += [table.c[name] == given.c[name] for name in shape.driving]
    if shape.form == "known":
        by_destination = "destination_id" in (*shape.equal, *shape.any_of)
        known = _known_pairs(shape) if by_destination else select(tenants.c.tenant_id).subquery("known")
        parts.append(known)
        joined += [table.c[column.name] == column for column in known.c]
    drive = parts[0]
    for part in parts[1:]:
        drive = drive.join(part, true())
    return drive, joined


def _known_pairs(shape: Shape) -> FromClause:
    pairs = select(destinations.c.tenant_id, destinations.c.destination_id)
    if "destination_id" in shape.equal:
        pairs = pairs.where(destinations.c.destination_id == bindparam("eq_destination_id", type_=Text))
    else:
        pairs = pairs.where(destinations.c.destination_id == func.any(_array("destination_id")))
    return pairs.subquery("known")


def predicates(table: FromClause, shape: Shape) -> list[ColumnElement[bool]]:
    """The conditions of a shape, over its table or over anything that has the columns."""
    columns = table.c
    found: list[ColumnElement[bool]] = [columns[name] == bindparam(f"eq_{name}", type_=Text) for name in shape.equal]
    found += [columns[name] == func.any(_array(name)) for name in shape.any_of]
    found += [_OPERATORS[op](columns.time, _moment(f"bound_{i}")) for i, op in enumerate(shape.bounds)]
    lower, upper = shape.within
    found += [columns.time >= _moment("within_lower")] if lower else []
    found += [columns.time < _moment("within_upper")] if upper else []
    if shape.where is not None:
        found.append(filters.to_postgres(shape.where, cast("Table", table)))
    if shape.cursor:
        # The first half prunes months, the second is the index condition; either alone does only one of the two.
        here = tuple_(_moment("at_time"), bindparam("at_id", type_=Text))
        place = tuple_(columns.time, columns.id)
        if shape.ascending:
            found += [columns.time >= _moment("at_time"), place > here]
        else:
            found += [columns.time <= _moment("at_time"), place < here]
    return found


def _ordered(statement: Select[Any], source: Any, shape: Shape) -> Select[Any]:
    # A literal LIMIT: bound as a parameter it would keep PostgreSQL from reusing the generic plan.
    limit: Any = bindparam("lim", shape.limit, type_=Integer, literal_execute=True)
    return _order(statement, source, shape).limit(limit)


def _order(statement: Select[Any], source: Any, shape: Shape) -> Select[Any]:
    time, id_ = source.c.time, source.c.id
    return statement.order_by(*((time.asc(), id_.asc()) if shape.ascending else (time.desc(), id_.desc())))


def _array(name: str) -> Any:
    return bindparam(f"any_{name}", type_=ARRAY(Text))


def _moment(name: str) -> Any:
    return bindparam(name, type_=DateTime(timezone=True))
