"""A filter as a SQLAlchemy condition for PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Double,
    Integer,
    Numeric,
    Table,
    Text,
    all_,
    and_,
    any_,
    case,
    cast,
    false,
    func,
    literal,
    literal_column,
    or_,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import TypeEngine

from logstore.filters.tree import NUMBER, And, Compare, Field, Filter, Or, Value

# The field indexes are partial (a btree entry has a limit); a query must repeat their condition to use them.
INDEXED_BYTES = 1024

# The decimal bounds of NUMBER_LIMIT and NUMBER_ZERO: from the first on, a double rounds up to 10^15.
_LIMIT = literal_column("999999999999999.9375", Numeric)
_ZERO = literal_column("1e-99", Numeric)

_TYPE_NAMES = ("string", "number", "boolean", "object", "array")
_TYPES: dict[str, TypeEngine[Any]] = {"text": Text(), "number": Double(), "time": DateTime(timezone=True)}


def to_postgres(tree: Filter, table: Table) -> ColumnElement[bool]:
    """The condition, for a WHERE clause: where it is not true it may be false or NULL."""
    if isinstance(tree, And):
        return and_(*(to_postgres(part, table) for part in tree.parts))
    if isinstance(tree, Or):
        return or_(*(to_postgres(part, table) for part in tree.parts))
    # Positive comparisons stay bare, because an index serves nothing that is wrapped.
    holds = _holds(tree, table)
    return holds.is_not(true()) if tree.negated else holds


def _holds(compare: Compare, table: Table) -> ColumnElement[bool]:
    field, column = compare.field, table.c[compare.field.column]
    if compare.operator == "exists":
        return _type(_json(field, column)) != "null" if field.type == "json" else column.is_not(None)
    if not compare.values:
        return false()
    return or_(*(_one_kind(field, column, compare.operator, kind, values) for kind, values in compare.by_kind()))


def _one_kind(
    field: Field, column: ColumnElement[Any], operator: str, kind: str, values: list[Value]
) -> ColumnElement[bool]:
    given = [value.value for value in values]
    if field.type == "boolean":
        return or_(*(column == literal(value) for value in given))
    if field.type == "json":
        if kind == "number":
            return _test(_json_number(field, column), operator, kind, given)
        return _json_text(field, column, operator, kind, values)
    if kind == "number" and field.type == "text":
        return _test(_text_number(column), operator, kind, given)
    return _test(column, operator, kind, given)


def _test(found: ColumnElement[Any], operator: str, kind: str, values: list[Any]) -> ColumnElement[bool]:
    if operator == "in":
        return found == any_(literal(values, ARRAY(_TYPES[kind])))
    value = literal(values[0], _TYPES[kind])
    match operator:
        case "=":
            return found == value
        case "contains":
            return func.strpos(found, value) > 0
        case "startswith":
            return func.starts_with(found, value)
        case "endswith":
            return func.right(found, len(values[0])) == value
    ordered = found.collate("C") if kind == "text" else found
    return ordered.bool_op(operator)(value)


def _json_text(
    field: Field, column: ColumnElement[Any], operator: str, kind: str, values: list[Value]
) -> ColumnElement[bool]:
    """A comparison with JSON strings or booleans; both as text, told apart by the type of what was found."""
    found = _json(field, column, last="->>")
    texts = [value.value if kind == "text" else value.source for value in values]
    tests = [_test(found, operator, "text", texts)]
    if kind == "text" and operator in ("=", "in") and all(len(str(t).encode()) <= INDEXED_BYTES for t in texts):
        tests.append(func.octet_length(found) <= literal(INDEXED_BYTES, Integer, literal_execute=True))
    # Said by what it is not: the planner takes `= 'string'` for rare, expects no rows, and sorts instead of walking an
    # index in order (measured: 212 against 20 buffers). JSON null is no text, so it need not be named.
    others = [other for other in _TYPE_NAMES if other != ("string" if kind == "text" else "boolean")]
    tests.append(_type(_json(field, column)) != all_(literal(others, ARRAY(Text))))
    return and_(*tests)


def _json(field: Field, column: ColumnElement[Any], *, last: str = "->") -> ColumnElement[Any]:
    """What the path leads to. One arrow a key, because #> would also enter arrays."""
    found = column
    for at, key in enumerate(field.path, 1):
        arrow, type_ = (last, Text if last == "->>" else JSONB) if at == len(field.path) else ("->", JSONB)
        # Rendered into the statement (and quoted there) by SQLAlchemy: an index on an expression serves constants only.
        found = found.op(arrow, return_type=type_())(literal(key, Text, literal_execute=True))
    return found


def _type(found: ColumnElement[Any]) -> ColumnElement[str]:
    return func.jsonb_typeof(found, type_=Text)


def _text_number(text: ColumnElement[Any]) -> ColumnElement[float]:
    return case((text.regexp_match(f"^({NUMBER})$"), cast(text, Double)))


def _json_number(field: Field, column: ColumnElement[Any]) -> ColumnElement[float]:
    """JSON numbers by value, JSON strings that look like a number; NULL for all else. CASE guards the casts."""
    found = _json(field, column)
    size = func.abs(cast(found, Numeric))
    number = case((size < _ZERO, literal_column("0", Double)), (size < _LIMIT, cast(found, Double)))
    text = _text_number(_json(field, column, last="->>"))
    return case((_type(found) == "number", number), (_type(found) == "string", text))
