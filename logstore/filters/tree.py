"""A filter as data: comparisons under `and` and `or`, with every negation already pushed down to its comparison."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

# Columns carry the same type under the same name on both tables.
COLUMN_TYPES = {
    "id": "text",
    "event_id": "text",
    "tenant_id": "text",
    "destination_id": "text",
    "topic": "text",
    "status": "text",
    "code": "text",
    "time": "time",
    "event_time": "time",
    "eligible_for_retry": "boolean",
    "manual": "boolean",
    "attempt_number": "integer",
    "data": "json",
    "metadata": "json",
    "event_data": "json",
    "event_metadata": "json",
    "response_data": "json",
}

# What text must look like to be a number, the same in every engine. The bounds keep each cast to a double exact
# and in range: PostgreSQL aborts the query on '1e400', and also on what underflows.
NUMBER = r"-?[0-9]{1,15}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?"

# A JSON number counts by its value instead, since only PostgreSQL keeps how it was written: below 15 digits before
# the point, and closer to zero than this it reads as zero.
NUMBER_LIMIT = 1e15
NUMBER_ZERO = 1e-99

_BARE_KEY = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or the object keys that lead from a JSON column to a value."""

    column: str
    path: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        return COLUMN_TYPES[self.column]

    def __str__(self) -> str:
        # On attempts the event's payload is named as on events.
        name = self.column.removeprefix("event_") if self.type == "json" else self.column
        return ".".join((name, *map(_key, self.path)))


@dataclass(frozen=True, slots=True)
class Value:
    """What a field is compared with; `kind` is text, number, boolean or time, `source` is how a filter writes it."""

    kind: str
    value: str | float | bool | datetime
    source: str

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison. It is false when the field is missing, and then its negation is true.

    The operator is one of = < <= > >= in contains startswith endswith exists; `in` takes any number of values,
    `exists` none, the others one.
    """

    field: Field
    operator: str
    values: tuple[Value, ...] = ()
    negated: bool = False

    def by_kind(self) -> list[tuple[str, list[Value]]]:
        """The values, those of a kind together: each kind reads the field in its own way."""
        values = sorted(self.values, key=lambda value: value.kind)
        return [(kind, list(same)) for kind, same in groupby(values, key=lambda value: value.kind)]

    def __str__(self) -> str:
        if self.operator == "exists":
            return f"{'not ' if self.negated else ''}{self.field} exists"
        if self.operator == "in":
            return f"{self.field} {'not ' if self.negated else ''}in [{', '.join(map(str, self.values))}]"
        if self.operator == "=" and self.negated:
            return f"{self.field} != {self.values[0]}"
        return f"{'not ' if self.negated else ''}{self.field} {self.operator} {self.values[0]}"


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts; none of them is an And itself."""

    parts: tuple[Filter, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """Any of the parts; none of them is an Or itself."""

    parts: tuple[Filter, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


Filter = And | Or | Compare


def quoted(text: str) -> str:
    """A text as a filter writes it."""
    return json.dumps(text, ensure_ascii=False)


def _key(key: str) -> str:
    if _BARE_KEY.fullmatch(key):
        return key
    return "'" + quoted(key)[1:-1].replace("'", "\\'") + "'"
