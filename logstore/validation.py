"""The fields of a line: what each may hold, and the reason when it holds something else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from logstore.cursor import Kind
from logstore.records import ID_BYTES, KEY_BYTES, STATUSES, from_micros, rfc3339
from logstore.settings import Settings

REASONS = (
    "malformed", "missing_field", "wrong_type", "unknown_status", "bad_time", "naive_time", "absurd_time", "nul",
    "oversize", "too_long", "too_deep", "month_not_open", "refused",
)  # fmt: skip

EXPONENT_MOST = 400
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_SPACE = re.compile(r"[ \t\n\r]*")


class Rejected(Exception):
    """The line is no row of the log: a class of reason, and a sentence for a person."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What a line is judged by besides its own text; the clock and the map come from outside."""

    oldest: datetime
    newest: datetime
    states: dict[tuple[str, date], str]  # the map of months: (parent, month) → state
    row_bytes: int = 8 * 2**20
    depth: int = 200

    @classmethod
    def of(cls, settings: Settings, states: dict[tuple[str, date], str], *, now: datetime, **limits: int) -> Rules:
        newest = now + timedelta(days=settings.ahead)
        return cls(oldest=settings.oldest_day(now), newest=newest, states=states, **limits)

    def month_state(self, parent: str, month: date) -> str:
        return self.states.get((parent, month), "open")


Member = tuple[Any, str]  # the value, and its text as it stands in the line
NONE: Member = (None, "null")


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)


def _float(text: str) -> float:
    """PostgreSQL keeps 1e131071 as it is and writes it with all its zeros: a few thousand of them fit into no answer."""
    exponent = text.lower().partition("e")[2]
    if exponent and (len(exponent) > 9 or abs(int(exponent)) > EXPONENT_MOST):
        raise Rejected(
            "refused", f"the number {text[:40]} has an exponent beyond {EXPONENT_MOST}, which no reader can hold"
        )
    return float(text)


# Payloads are stored as their text stands, so numbers need no value here, only a type; int() of 5 000 digits would raise.
DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_float=_float,
    parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
)


def skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


# Fields: each takes (member, name, rules) and gives the value to write

Field = Callable[[Member, str, Rules], Any]


def _required(value: Any, name: str) -> Any:
    if value is None:
        raise Rejected("missing_field", f"{name} is missing")
    return value


def _text(most: int, *, default: str | None = None, nullable: bool = False, empty: bool = False) -> Field:
    def field(member: Member, name: str, rules: Rules) -> str | None:
        value = member[0]
        if value is None and nullable:
            return None
        if value is None and default is not None:
            return default
        if not isinstance(_required(value, name), str):
            raise Rejected("wrong_type", f"{name} must be text, not {_type(value)}")
        if not value and not empty:
            raise Rejected("missing_field", f"{name} is empty")
        _check_characters(value, name)
        if len(value.encode()) > most:
            raise Rejected("too_long", f"{name} has {len(value.encode())} bytes; at most {most} fit into the indexes")
        return str(value)

    return field


def _check_characters(value: str, name: str) -> None:
    if "\x00" in value:
        raise Rejected("nul", f"{name} holds a NUL character (\\u0000), which PostgreSQL cannot store")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Rejected("malformed", f"{name} is not valid Unicode (a lone surrogate)") from None


def _status(member: Member, name: str, rules: Rules) -> str:
    value = _required(member[0], name)
    if not isinstance(value, str):
        raise Rejected("wrong_type", f"{name} must be text, not {_type(value)}")
    if value not in STATUSES:
        raise Rejected("unknown_status", f"{name} is {value[:80]!r}; it must be one of {', '.join(STATUSES)}")
    return value


def _flag(default: bool) -> Field:
    def field(member: Member, name: str, rules: Rules) -> bool:
        value = default if member[0] is None else member[0]
        if not isinstance(value, bool):
            raise Rejected("wrong_type", f"{name} must be true or false, not {_type(value)}")
        return value

    return field


def _number(member: Member, name: str, rules: Rules) -> int:
    value = _required(member[0], name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise Rejected("wrong_type", f"{name} must be a whole number from 0 to 2147483647, not {member[1][:40]}")
    return value


def _time(*, own: bool) -> Field:
    """A record's own time is held to the bounds of the log; the time of the event inside an attempt only to a type."""

    def field(member: Member, name: str, rules: Rules) -> datetime:
        value = _required(member[0], name)
        if isinstance(value, str):
            time = _rfc3339(value, name)
        elif isinstance(value, int) and not isinstance(value, bool):
            time = _epoch(value, name)
        else:
            raise Rejected("wrong_type", f"{name} must be RFC 3339 text or whole milliseconds, not {_type(value)}")
        if own and not rules.oldest <= time <= rules.newest:
            seconds = isinstance(value, int) and value < 10**11
            raise Rejected(
                "absurd_time",
                f"{name} is {rfc3339(time)}, outside {rfc3339(rules.oldest)} to {rfc3339(rules.newest)}"
                + ("; milliseconds are expected, these look like seconds" if seconds else ""),
            )
        return time

    return field


def _rfc3339(value: str, name: str) -> datetime:
    match = _TIME.fullmatch(value)
    if match is None:
        raise Rejected("bad_time", f"{name} is {value[:60]!r}; write it like 2026-08-01T12:00:00Z")
    day, clock, fraction, zone = match.groups()
    if zone is None:
        raise Rejected("naive_time", f"{name} is {value!r} and has no time zone: add Z or an offset")
    zone = "+00:00" if zone in "Zz" else zone
    try:
        return datetime.fromisoformat(f"{day}T{clock}{(fraction or '')[:7]}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise Rejected("bad_time", f"{name} is {value[:60]!r}, which is no moment in time") from None


def _epoch(value: int, name: str) -> datetime:
    try:
        return from_micros(value * 1000)
    except OverflowError:
        raise Rejected("absurd_time", f"{name} is {value} milliseconds, beyond the year 9999") from None


def _payload(default: str | None, *, nullable: bool = False) -> Field:
    """JSON as it stands, or JSON inside a text."""

    def field(member: Member, name: str, rules: Rules) -> str | None:
        value, raw = member
        if value is None:
            return None if nullable else _required(default, name)
        if isinstance(value, str):
            raw, value = value, _inner(value, name, rules)
            if value is None and nullable:
                return None
        _inspect(value, name, rules)
        return raw

    return field


def _inner(text: str, name: str, rules: Rules) -> Any:
    _check_characters(text, name)
    try:
        value, end = DECODER.raw_decode(text, skip(text, 0))
    except json.JSONDecodeError as error:
        raise Rejected("wrong_type", f"{name} is text that is not JSON: {error.msg}") from None
    except RecursionError:
        raise Rejected("too_deep", f"{name} is nested deeper than {rules.depth} levels") from None
    if skip(text, end) != len(text):
        raise Rejected("wrong_type", f"{name} is text that is not JSON: more follows the value")
    return value


def _inspect(value: Any, name: str, rules: Rules) -> None:
    """Refuse what PostgreSQL's jsonb cannot hold or readers cannot open; a loop, because recursion has its own limit."""
    level, depth = [value], 0
    while level:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_characters(item, name)
            elif isinstance(item, dict):
                inner += item.keys()
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        depth += any(isinstance(item, (dict, list)) for item in level)
        if depth > rules.depth:
            raise Rejected("too_deep", f"{name} is nested deeper than {rules.depth} levels")
        level = inner


def _type(value: Any) -> str:
    names = {bool: "true or false", str: "text", dict: "an object", list: "a list"}
    return names.get(type(value), "a number")


FIELDS: dict[Kind, dict[str, Field]] = {
    "event": {
        "id": _text(ID_BYTES),
        "tenant_id": _text(KEY_BYTES),
        "destination_id": _text(KEY_BYTES, default="", empty=True),
        "time": _time(own=True),
        "topic": _text(KEY_BYTES),
        "eligible_for_retry": _flag(True),
        "data": _payload(None),
        "metadata": _payload("{}"),
    },
    "attempt": {
        "id": _text(ID_BYTES),
        "event_id": _text(ID_BYTES),
        "tenant_id": _text(KEY_BYTES),
        "destination_id": _text(KEY_BYTES, empty=True),
        "topic": _text(KEY_BYTES),
        "status": _status,
        "time": _time(own=True),
        "attempt_number": _number,
        "manual": _flag(False),
        "code": _text(KEY_BYTES, nullable=True, empty=True),
        "response_data": _payload(None, nullable=True),
        "event_time": _time(own=False),
        "eligible_for_retry": _flag(True),
        "event_data": _payload(None),
        "event_metadata": _payload("{}"),
    },
}
