"""Lines to typed records, quickly: what msgspec accepts here is what `logstore.lines` would accept, with the same values.

Payloads stay the text that they are. A line that is not accepted is not wrong, only not certain: `lines.parse` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from logstore.cursor import Kind
from logstore.records import ID_BYTES, KEY_BYTES

# A character has at most four bytes: what is longer than this may fit all the same, and is looked at one by one.
Id = Annotated[str, Meta(min_length=1, max_length=ID_BYTES // 4)]
Key = Annotated[str, Meta(min_length=1, max_length=KEY_BYTES // 4)]
Optional = Annotated[str, Meta(max_length=KEY_BYTES // 4)]
Number = Annotated[int, Meta(ge=0, lt=2**31)]
NULL = b"null"
REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Event(Struct, kw_only=True, gc=False):
    """In the order of the table's columns; then what only an attempt has."""

    id: Id
    tenant_id: Key
    destination_id: Optional | None = ""
    time: str | int
    topic: Key
    eligible_for_retry: bool | None = True
    data: Raw
    metadata: Raw = Raw(NULL)
    event_id: None = None
    status: None = None
    attempt_number: None = None
    event_time: None = None
    event_data: None = None
    event_metadata: None = None


class _Attempt(Struct, kw_only=True, gc=False):
    """In the order of the table's columns."""

    id: Id
    event_id: Id
    tenant_id: Key
    destination_id: Optional
    topic: Key
    status: Literal["success", "failed"]
    time: str | int
    attempt_number: Number
    manual: bool | None = False
    code: Optional | None = None
    response_data: Raw = Raw(NULL)
    event_time: str | int
    eligible_for_retry: bool | None = True
    event_data: Raw
    event_metadata: Raw = Raw(NULL)


Record = _Event | _Attempt
_DECODE: dict[Kind, Callable[[bytes], Any]] = {
    "event": msgspec.json.Decoder(_Event).decode,
    "attempt": msgspec.json.Decoder(_Attempt).decode,
}
_OTHER: dict[Kind, Kind] = {"event": "attempt", "attempt": "event"}
_text = msgspec.json.Decoder(str).decode
_any = msgspec.json.Decoder(Raw).decode


def records(lines: Iterable[tuple[int, bytes]]) -> dict[Kind, tuple[list[int], list[Any]]]:
    """The records among numbered lines, by kind, with their numbers; a line like the one before costs least."""
    found: dict[Kind, tuple[list[int], list[Any]]] = {"event": ([], []), "attempt": ([], [])}
    kind: Kind = "attempt"
    for number, line in lines:
        try:
            record = _DECODE[kind](line)
        except REFUSALS:
            try:
                record = _DECODE[_OTHER[kind]](line)
            except REFUSALS:
                continue
            kind = _OTHER[kind]
        numbers, of_kind = found[kind]
        numbers.append(number)
        of_kind.append(record)
    return found


def inner(payload: bytes) -> bytes | None:
    """The object or list that is written inside a JSON text, as it stands there; None where that is not certain."""
    try:
        text = _text(payload).encode()
        _any(text)
    except REFUSALS:
        return None
    return text if text.startswith((b"{", b"[")) else None
