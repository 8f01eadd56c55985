"""One line of a source as a row of the log, or the reason why it is none.

This is the definition of a good line. The pipeline's columnwise path (pipeline/transform.py) accepts only lines that it is
sure about and asks here for all others; requeueing a dead letter asks here too. A test holds the two against each other.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from logstore.cursor import Kind
from logstore.partitions import month_of
from logstore.records import Attempt, Event
from logstore.validation import DECODER, FIELDS, NONE, Member, Rejected, Rules, skip

# A line with any of these is an attempt: an event has none of them.
ATTEMPT_ONLY = ("event_id", "status", "attempt_number", "event_time", "event_data", "event_metadata")
COLUMNS: dict[Kind, tuple[str, ...]] = {"event": Event.columns, "attempt": Attempt.columns}
PARENT: dict[Kind, str] = {"event": "events", "attempt": "attempts"}


class Row(NamedTuple):
    """A row as it is written: values in the order of the table's columns, payloads as JSON text."""

    kind: Kind
    values: tuple[Any, ...]

    @property
    def time(self) -> datetime:
        time: datetime = self.values[COLUMNS[self.kind].index("time")]
        return time


def parse(text: str, rules: Rules) -> Row:
    """The row of a line; `Rejected` says why there is none."""
    if len(text) > rules.row_bytes or len(text.encode(errors="surrogatepass")) > rules.row_bytes:
        raise Rejected("oversize", f"the row is larger than {rules.row_bytes} bytes")
    try:
        members = _members(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise Rejected("malformed", f"not one JSON object: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Rejected("too_deep", f"values are nested deeper than {rules.depth} levels") from None
    kind: Kind = "attempt" if any(members.get(name, NONE)[0] is not None for name in ATTEMPT_ONLY) else "event"
    row = Row(kind, tuple(FIELDS[kind][name](members.get(name, NONE), name, rules) for name in COLUMNS[kind]))
    state = rules.month_state(PARENT[kind], month_of(row.time))
    if state != "open":
        name = f"{PARENT[kind]}_{month_of(row.time):%Y_%m}"
        raise Rejected("month_not_open", f"{name} is {state}: reopen it with `python -m logstore restore {name}`")
    return row


def _members(text: str) -> dict[str, Member]:
    """The members of the one object that the text is, each with its own text: 1.10 must not become 1.1."""
    members: dict[str, Member] = {}
    at = _expect(text, 0, "{")
    if text[at : at + 1] != "}":
        while True:
            if text[at : at + 1] != '"':
                raise json.JSONDecodeError("a member's name is expected", text, at)
            name, at = DECODER.raw_decode(text, at)
            start = _expect(text, skip(text, at), ":")
            value, end = DECODER.raw_decode(text, start)
            members[name] = (value, text[start:end])  # of a name that is given twice the last counts, as in jsonb
            at = skip(text, end)
            if text[at : at + 1] != ",":
                break
            at = skip(text, at + 1)
    at = _expect(text, at, "}")
    if at != len(text):
        raise json.JSONDecodeError("more text follows the object", text, at)
    return members


def _expect(text: str, at: int, character: str) -> int:
    at = skip(text, at)
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"{character!r} is expected", text, at)
    return skip(text, at + 1)
