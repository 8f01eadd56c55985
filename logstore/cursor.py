"""Positions in a list ordered by (time, id), and the tokens that carry them.

A token is the text `{evt|att}v{NN}:{position}`, its UTF-8 bytes read as one big-endian integer and written in base 62.
Version 2, which we issue, counts microseconds; version 1, which we still read, counts milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from logstore.errors import CursorVersionMismatch, InvalidCursor
from logstore.records import from_micros, to_micros

Kind = Literal["event", "attempt"]

_PREFIXES: dict[str, Kind] = {"evt": "event", "att": "attempt"}
_VERSION = 2
_MICROS_PER_UNIT = {1: 1000, 2: 1}
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGIT = {character: value for value, character in enumerate(_ALPHABET)}
_MOST = 4096  # characters; the longest id gives a token of about 1 700
_TEXT = re.compile(r"([a-z]{3})v(\d{2}):(.*)", re.DOTALL)
# ASCII digits only: int() would also take other scripts' digits, blanks and underscores.
_POSITION = re.compile(r"(-?[0-9]{1,18})::(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a list: beside the record of this time and id; an empty id is the start of the microsecond."""

    time: datetime
    id: str


def encode(kind: Kind, position: Position) -> str:
    """The token of a position, in the version we issue."""
    prefix = next(prefix for prefix, known in _PREFIXES.items() if known == kind)
    return _to_base62(f"{prefix}v{_VERSION:02d}:{to_micros(position.time)}::{position.id}".encode())


def decode(kind: Kind, token: str) -> Position:
    """The position in a token that was issued for this kind of record; raises InvalidCursor otherwise."""
    match = _TEXT.fullmatch(_from_base62(token))
    if match is None:
        raise InvalidCursor("the cursor is damaged; start again from the first page")
    prefix, version, position = match.group(1), int(match.group(2)), match.group(3)
    if _PREFIXES.get(prefix) != kind:
        found = _PREFIXES.get(prefix, "unknown")
        raise InvalidCursor(f"the cursor belongs to another list ({found} records, not {kind} records)")
    if version not in _MICROS_PER_UNIT:
        raise CursorVersionMismatch(f"the cursor has version {version}; this program reads versions 1 and 2")
    return _parse(position, _MICROS_PER_UNIT[version])


def _parse(position: str, micros_per_unit: int) -> Position:
    match = _POSITION.fullmatch(position)
    if match is None:
        raise InvalidCursor("the cursor's position is unreadable; start again from the first page")
    if "\x00" in match.group(2):
        raise InvalidCursor("the cursor's id holds a NUL character; no record has such an id")
    try:
        time = from_micros(int(match.group(1)) * micros_per_unit)
    except OverflowError:
        raise InvalidCursor("the cursor's time is out of range; start again from the first page") from None
    return Position(time, match.group(2))


def _to_base62(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    digits = []
    while number:
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits)) or "0"


def _from_base62(token: object) -> str:
    if not isinstance(token, str) or not 0 < len(token) <= _MOST:
        raise InvalidCursor("the cursor is empty, too long or not text; start again from the first page")
    if token[0] == _ALPHABET[0]:  # a number has no leading zero, so no issued cursor does
        raise InvalidCursor("the cursor is damaged; start again from the first page")
    number = 0
    for character in token:
        if character not in _DIGIT:
            raise InvalidCursor(f"the cursor holds {character!r}, which no cursor does; copy it whole")
        number = number * 62 + _DIGIT[character]
    try:
        return number.to_bytes((number.bit_length() + 7) // 8, "big").decode()
    except UnicodeDecodeError:
        raise InvalidCursor("the cursor is damaged; start again from the first page") from None
