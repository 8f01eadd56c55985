"""What is to be said about one field: its name, its types, what happened to it, and a filter on it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from logstore import filters
from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.fields import Field
from logstore.filters.tree import quoted
from logstore.records import Attempt, Selection, TimeFilter, parse_rfc3339
from logstore.workbench import cached, times
from logstore.workbench.frame import Frame
from logstore.workbench.signs import BAD, GOOD, WARN

STEADY, CHANGED, SEVERAL, VANISHED = (
    f"{GOOD} steady",
    f"{WARN} changed type",
    f"{WARN} several types",
    f"{BAD} vanished",
)
_OLD = 86_400  # seconds between two types after which the older one counts as given up
_EXAMPLE_MOST = 120  # characters of a value that an expression repeats
_LOOKED_AT = 20  # records of one moment that are searched for an example


def name_of(field: Field) -> str:
    """The field as a filter writes it; odd keys are quoted."""
    return str(filters.Field(field.column, field.path))


def types_of(field: Field) -> dict[str, datetime]:
    """The types a field has had, the newest first; null is no type, it is a missing value."""
    seen = {kind: parse_rfc3339(time) for kind, time in field.types.items() if kind != "null"}
    return dict(sorted(seen.items(), key=lambda item: (item[1], item[0]), reverse=True))


def state_of(field: Field) -> str:
    """The state of a field in a few words, with a sign; the first that holds of the alarming ones."""
    if field.vanished:
        return VANISHED
    seen = list(types_of(field).values())
    if len(seen) > 1:
        return CHANGED if (seen[0] - seen[-1]).total_seconds() > _OLD else SEVERAL
    return STEADY


def sentence(frame: Frame, field: Field) -> str:
    """What happened to a field, in one sentence."""
    seen = types_of(field)
    kinds = list(seen)
    if field.vanished:
        last = f"{frame.show(field.last_seen)}, {times.ago(field.last_seen, frame.now)}"
        return (
            f"{BAD} Vanished: later records of the topic, as far as they were looked at, do not have it; "
            f"last seen {last}."
        )
    if len(kinds) < 2:
        return f"{GOOD} Steady: {'always ' + kinds[0] if kinds else 'never anything but null'}."
    each = "; ".join(f"{kind} last seen {times.ago(time, frame.now)}" for kind, time in seen.items())
    if state_of(field) == CHANGED:
        return f"{WARN} Changed type: now {kinds[0]}, before {', '.join(kinds[1:])} ({each})."
    return f"{WARN} Several types at once: {each}. A number compares with numbers only, a text with text."


def expression(field: Field, kind: Kind) -> str:
    """A filter on the field that is ready to use: with a value of it where there is a short one."""
    name = name_of(field)
    value = _example(field, kind)
    written = {str: lambda: quoted(value), bool: lambda: str(value).lower(), int: lambda: str(value)}
    if type(value) in written and len(str(value)) <= _EXAMPLE_MOST:
        where = f"{name} = {written[type(value)]()}"
        try:
            filters.parse(where, kind)
            return where
        except InvalidFilter:  # a number that the language does not take; the field still can be asked for
            pass
    return f"{name} >= {value}" if isinstance(value, float) else f"{name} exists"


def _example(field: Field, kind: Kind) -> Any:
    """A value that the field has: of the records of the moment at which it was last seen, which is quickly read."""
    lister = cached.store().lister(kind)
    moment = TimeFilter(gte=field.last_seen, lte=field.last_seen)
    for record in lister(Selection(topics=(field.topic,), time=moment), limit=_LOOKED_AT):
        payload = record.response_data if isinstance(record, Attempt) else getattr(record, field.column)
        for part in field.path:
            payload = payload.get(part) if isinstance(payload, dict) else None
        if payload is not None:
            return payload
    return None
