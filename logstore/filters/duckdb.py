"""A filter as a SQL condition and its parameters for DuckDB, over the columns of the archive's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from logstore.filters.tree import NUMBER, NUMBER_LIMIT, NUMBER_ZERO, And, Compare, Field, Filter, Or, Value

_FUNCTIONS = {"contains": "contains", "startswith": "starts_with", "endswith": "ends_with"}
_NUMBERS = "('UBIGINT', 'BIGINT', 'DOUBLE')"
_INDEX = re.compile(r"[0-9]+")


class Sql(NamedTuple):
    """A piece of SQL, and the value for each `?` in it, in order."""

    text: str
    params: list[Any]


def to_duckdb(tree: Filter) -> Sql:
    """The condition, for a WHERE clause: where it is not true it may be false or NULL."""
    if isinstance(tree, And | Or):
        word = " AND " if isinstance(tree, And) else " OR "
        return _joined(word, [to_duckdb(part) for part in tree.parts])
    text, params = _holds(tree)
    return Sql(f"({text}) IS NOT TRUE" if tree.negated else text, params)


def _joined(word: str, parts: Sequence[Sql]) -> Sql:
    text = word.join(f"({part.text})" for part in parts)
    return Sql(text, [param for part in parts for param in part.params])


def _holds(compare: Compare) -> Sql:
    field = compare.field
    if compare.operator == "exists":
        if field.type != "json":
            return Sql(f'"{field.column}" IS NOT NULL', [])
        kind = _json("json_type", field)
        return _inside_objects(field, Sql(f"{kind.text} <> 'NULL'", kind.params))
    if not compare.values:
        return Sql("FALSE", [])
    return _joined(" OR ", [_one_kind(field, compare.operator, kind, same) for kind, same in compare.by_kind()])


def _one_kind(field: Field, operator: str, kind: str, values: list[Value]) -> Sql:
    given = [value.value for value in values]
    column = Sql(f'"{field.column}"', [])
    if field.type == "json":
        if kind == "number":
            return _inside_objects(field, _test(_json_number(field), operator, given))
        # Strings and booleans are both read as text, and told apart by the type of what was found.
        texts = given if kind == "text" else [value.source for value in values]
        found, test = _json("json_type", field), _test(_json("json_extract_string", field), operator, texts)
        is_type = Sql(f"{found.text} = '{'VARCHAR' if kind == 'text' else 'BOOLEAN'}'", found.params)
        return _inside_objects(field, _joined(" AND ", [is_type, test]))
    if kind == "number" and field.type == "text":
        return _test(_text_number(column), operator, given)
    return _test(column, operator, given)


def _test(found: Sql, operator: str, values: list[Any]) -> Sql:
    params = [*found.params, *values]
    if operator == "in":
        return Sql(f"{found.text} IN ({', '.join('?' * len(values))})", params)
    if operator in _FUNCTIONS:
        return Sql(f"{_FUNCTIONS[operator]}({found.text}, ?)", params)
    return Sql(f"{found.text} {operator} ?", params)


def _json(function: str, field: Field) -> Sql:
    """What a JSON function says about the end of the path.

    The path goes as a JSON pointer, the one notation in which every key can be written: in `$."*"` the star is a
    wildcard even in quotes.
    """
    if not field.path:
        return Sql(f'{function}("{field.column}")', [])
    return Sql(f'{function}("{field.column}", ?)', [_pointer(field.path)])


def _pointer(path: Sequence[str]) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)


def _inside_objects(field: Field, test: Sql) -> Sql:
    """The test, unless a key that looks like an index was looked up in an array: pointers enter arrays."""
    checks = []
    for at, key in enumerate(field.path):
        if _INDEX.fullmatch(key):
            parent = _json("json_type", Field(field.column, field.path[:at]))
            checks.append(Sql(f"{parent.text} = 'OBJECT'", parent.params))
    return _joined(" AND ", [*checks, test]) if checks else test


def _text_number(text: Sql) -> Sql:
    return Sql(
        f"CASE WHEN regexp_full_match({text.text}, ?) THEN TRY_CAST({text.text} AS DOUBLE) END",
        [*text.params, NUMBER, *text.params],
    )


def _json_number(field: Field) -> Sql:
    """JSON numbers by value, JSON strings that look like a number; NULL for all else."""
    kind, text = _json("json_type", field), _json("json_extract_string", field)
    number = f"TRY_CAST({text.text} AS DOUBLE)"
    looks = _text_number(text)
    return Sql(
        f"CASE WHEN {kind.text} = 'VARCHAR' THEN {looks.text}"
        f" WHEN {kind.text} NOT IN {_NUMBERS} THEN NULL"
        f" WHEN abs({number}) < {NUMBER_ZERO!r} THEN 0"
        f" WHEN abs({number}) < {NUMBER_LIMIT!r} THEN {number} END",
        [*kind.params, *looks.params, *kind.params, *text.params * 3],
    )
