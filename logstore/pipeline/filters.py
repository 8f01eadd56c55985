"""A filter as a Spark column, over the columns of the tables with JSON as text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from logstore.filters.tree import NUMBER, NUMBER_LIMIT, NUMBER_ZERO, And, Compare, Field, Filter, Or, Value
from logstore.records import to_micros

_OBJECT = "map<string,variant>"
# PostgreSQL stores numbers of any length; without this the whole document would read as NULL.
_JSON_OPTIONS = {"maxNumLen": str(2**31 - 1)}


def to_spark(tree: Filter) -> Column:
    """The condition, for `DataFrame.where`: where it is not true it may be false or NULL."""
    if isinstance(tree, And | Or):
        return _joined(and_ if isinstance(tree, And) else or_, [to_spark(part) for part in tree.parts])
    holds = _holds(tree)
    return ~sf.coalesce(holds, sf.lit(False)) if tree.negated else holds


def _joined(join: Callable[[Column, Column], Column], parts: list[Column]) -> Column:
    # In halves: Spark walks expressions by recursion, and a chain of hundreds is deep.
    if len(parts) > 2:
        half = len(parts) // 2
        return join(_joined(join, parts[:half]), _joined(join, parts[half:]))
    return reduce(join, parts)


def _holds(compare: Compare) -> Column:
    field = compare.field
    if compare.operator == "exists":
        return _exists(field)
    if not compare.values:
        return sf.lit(False)
    return _joined(or_, [_one_kind(field, compare.operator, kind, same) for kind, same in compare.by_kind()])


def _exists(field: Field) -> Column:
    if field.path:
        return _kind(_json(field)) != "VOID"
    column = sf.col(field.column)
    return column != "null" if field.type == "json" else column.isNotNull()


def _one_kind(field: Field, operator: str, kind: str, values: list[Value]) -> Column:
    given = [_literal(value.value) for value in values]
    if field.type == "json":
        found = _json(field)
        if kind == "number":
            return _test(_json_number(found), operator, given)
        # Strings and booleans are both read as text, and told apart by the type of what was found.
        texts = given if kind == "text" else [sf.lit(value.source) for value in values]
        is_type = _kind(found) == ("STRING" if kind == "text" else "BOOLEAN")
        return is_type & _test(sf.try_variant_get(found, "$", "string"), operator, texts)
    column = sf.col(field.column)
    return _test(_text_number(column) if kind == "number" and field.type == "text" else column, operator, given)


def _literal(value: Any) -> Column:
    # Not lit(): that would take a time through the calendar and the zone of this machine.
    return sf.timestamp_micros(sf.lit(to_micros(value))) if isinstance(value, datetime) else sf.lit(value)


def _test(found: Column, operator: str, values: list[Column]) -> Column:
    value = values[0]
    tests: dict[str, Callable[[], Column]] = {
        "=": lambda: found == value,
        "<": lambda: found < value,
        "<=": lambda: found <= value,
        ">": lambda: found > value,
        ">=": lambda: found >= value,
        "in": lambda: found.isin(values),
        "contains": lambda: found.contains(value),
        "startswith": lambda: found.startswith(value),
        "endswith": lambda: found.endswith(value),
    }
    return tests[operator]()


def _json(field: Field) -> Column:
    """What the path leads to, as a variant.

    Each step looks a key up in a map, because Spark's paths cannot spell every key and enter arrays.
    """
    objects = sf.from_json(field.column, _OBJECT, _JSON_OPTIONS)
    for key in field.path[:-1]:
        objects = sf.try_variant_get(sf.try_element_at(objects, sf.lit(key)), "$", _OBJECT)
    return sf.try_element_at(objects, sf.lit(field.path[-1]))


def _kind(found: Column) -> Column:
    return sf.schema_of_variant(found)


def _text_number(text: Column) -> Column:
    # \z and not $, which in Java also stands before a last line break.
    return sf.when(text.rlike(rf"^({NUMBER})\z"), text.try_cast("double"))


def _json_number(found: Column) -> Column:
    """JSON numbers by value, JSON strings that look like a number; NULL for all else."""
    kind, number = _kind(found), sf.try_variant_get(found, "$", "double")
    size = sf.abs(number)
    return (
        sf.when(kind == "STRING", _text_number(sf.try_variant_get(found, "$", "string")))
        .when(~(kind.isin("BIGINT", "DOUBLE") | kind.startswith("DECIMAL")), sf.lit(None))
        .when(size < NUMBER_ZERO, sf.lit(0.0))
        .when(size < NUMBER_LIMIT, number)
    )
