"""Filter expressions changed by clicks: a value let in or kept out, a condition added, a field's name put right."""

from __future__ import annotations

import re

from logstore import filters
from logstore.cursor import Kind
from logstore.filters.tree import And, Compare, Field, Filter, Or, Value, quoted

_TEXT = re.compile(r'("(?:[^"\\]|\\.)*")', re.DOTALL)


def equal(column: str, value: str | None) -> Compare:
    """The condition that a column has this text; None: that it has none."""
    if value is None:
        return Compare(Field(column), "exists", (), negated=True)
    return Compare(Field(column), "=", (Value("text", value, quoted(value)),))


def joined(where: str | None, kind: Kind, condition: Compare | str) -> str:
    """An expression and one condition more; what was written stays as it was written."""
    if where is None:
        return str(condition)
    alone = isinstance(filters.parse(where, kind), Or)
    return f"({where}) and {condition}" if alone else f"{where} and {condition}"


def has(where: str | None, kind: Kind, condition: Compare) -> bool:
    """Whether an expression demands this condition already."""
    return where is not None and condition in _parts(filters.parse(where, kind))


def without(where: str, kind: Kind, condition: Compare) -> str | None:
    """An expression without one of the conditions that it demands."""
    return _written([part for part in _parts(filters.parse(where, kind)) if part != condition])


def excluding(where: str | None, kind: Kind, column: str, value: str | None) -> str:
    """An expression that also keeps out one text of a column; several of the same column become one list."""
    out = equal(column, value)
    kept_out = Compare(out.field, out.operator, out.values, negated=not out.negated)
    if where is None or value is None:
        return joined(where, kind, kept_out)
    parts = _parts(filters.parse(where, kind))
    before = next((part for part in parts if isinstance(part, Compare) and _keeps_out(part, kept_out.field)), None)
    if before is None:
        return joined(where, kind, kept_out)
    values = tuple(dict.fromkeys((*before.values, *kept_out.values)))
    merged = Compare(kept_out.field, "in" if len(values) > 1 else "=", values, negated=True)
    return str(_written([merged if part is before else part for part in parts]))


def renamed(where: str, name: str, right: str) -> str:
    """An expression with a field's name replaced; texts in quotes stay."""
    field = re.compile(rf"(?<![\w.']){re.escape(name)}(?![\w.'])")
    parts = _TEXT.split(where)
    return "".join(part if part.startswith('"') else field.sub(lambda _: right, part) for part in parts)


def fields_of(tree: Filter) -> list[Field]:
    """The fields that an expression names, in its order, each once."""
    if isinstance(tree, Compare):
        return [tree.field]
    return list(dict.fromkeys(field for part in tree.parts for field in fields_of(part)))


def _parts(tree: Filter) -> tuple[Filter, ...]:
    return tree.parts if isinstance(tree, And) else (tree,)


def _keeps_out(part: Compare, field: Field) -> bool:
    return part.field == field and part.negated and part.operator in ("=", "in")


def _written(parts: list[Filter]) -> str | None:
    if not parts:
        return None
    return str(parts[0] if len(parts) == 1 else And(tuple(parts)))
