"""What a filter means, record by record: the reference that the engines must agree with."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from logstore.filters.tree import NUMBER, NUMBER_LIMIT, NUMBER_ZERO, And, Compare, Field, Filter, Or
from logstore.records import Attempt, Event

_NUMBER = re.compile(NUMBER)

# Python orders text by code point, which is the byte order of UTF-8.
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "in": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": operator.contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}


def matches(tree: Filter, record: Event | Attempt) -> bool:
    """Whether the record, of the kind that the filter was parsed for, is among those meant."""
    if isinstance(tree, And):
        return all(matches(part, record) for part in tree.parts)
    if isinstance(tree, Or):
        return any(matches(part, record) for part in tree.parts)
    return _holds(tree, value_at(tree.field, record)) != tree.negated


def value_at(field: Field, record: Event | Attempt) -> Any:
    """What the record holds there; None when it is missing. Only objects have keys: "0" is no place in an array."""
    found = getattr(record, field.column)
    for key in field.path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _holds(compare: Compare, found: Any) -> bool:
    if compare.operator == "exists":
        return found is not None
    test = _OPERATORS[compare.operator]
    read = {value.kind: _read(found, value.kind) for value in compare.values}
    return any(read[value.kind] is not None and test(read[value.kind], value.value) for value in compare.values)


def _read(found: Any, kind: str) -> Any:
    """What was found, as this kind of value; None when it is not one."""
    if kind == "text":
        return found if isinstance(found, str) else None
    if kind == "boolean":
        return found if isinstance(found, bool) else None
    if kind == "number":
        return _number(found)
    return found


def _number(found: Any) -> float | None:
    if isinstance(found, str):
        return float(found) if _NUMBER.fullmatch(found) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < NUMBER_LIMIT:
        return None
    return 0.0 if abs(found) < NUMBER_ZERO else float(found)
