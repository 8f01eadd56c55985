"""The state of a delivery: what became of one event at one destination, in words."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from logstore.records import Attempt, Event
from logstore.workbench import signs, times

# How long after each failure the platform tries again. The log does not carry the schedule, only whether an event may
# be retried at all; a delivery that failed more often than this is exhausted.
RETRY_AFTER = tuple(timedelta(seconds=seconds) for seconds in (30, 120, 600, 3600, 6 * 3600))
# A retry that is this much later than planned will hardly come.
_PATIENCE = timedelta(hours=1)

# Where an answer says why, and the tags around it when it is a page.
_SAYING = ("error", "message", "detail", "body")
_TAG = re.compile(r"<[^<>]{0,200}>")

STATES = ("delivered", "failing", "exhausted", "never attempted", "unknown")
ICONS = {
    "delivered": signs.GOOD,
    "failing": signs.WARN,
    "exhausted": signs.BAD,
    "never attempted": signs.NONE,
    "unknown": signs.UNKNOWN,
}
_UNREAD = "Unknown: no attempt was found, but a part of the archive that may hold some cannot be read."


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One event on its way to one destination."""

    destination_id: str
    state: str
    words: str
    attempts: tuple[Attempt, ...]  # oldest first

    @property
    def icon(self) -> str:
        return ICONS[self.state]


def deliveries(event: Event, attempts: Iterable[Attempt], *, now: datetime, whole: bool = True) -> list[Delivery]:
    """The deliveries of an event, the worst first; also the one that its publisher asked for and nobody tried.

    `whole` is whether these are all attempts that there are: what was not read, nobody can say was never attempted.
    """
    by_destination: dict[str, list[Attempt]] = {}
    if event.destination_id:
        by_destination[event.destination_id] = []
    for attempt in sorted(attempts, key=lambda attempt: (attempt.time, attempt.id)):
        by_destination.setdefault(attempt.destination_id, []).append(attempt)
    found = [_delivery(event, destination, tried, now, whole) for destination, tried in by_destination.items()]
    worst = ("exhausted", "failing", "never attempted", "unknown", "delivered")
    return sorted(found, key=lambda delivery: (worst.index(delivery.state), delivery.destination_id))


def _delivery(event: Event, destination_id: str, tried: Sequence[Attempt], now: datetime, whole: bool) -> Delivery:
    state, words = _state(event, tried, now) if tried or whole else ("unknown", _UNREAD)
    return Delivery(destination_id=destination_id, state=state, words=words, attempts=tuple(tried))


def _state(event: Event, tried: Sequence[Attempt], now: datetime) -> tuple[str, str]:
    if not tried:
        return "never attempted", "Never attempted: the event names this destination, but no attempt is in the log."
    first_success = next((i for i, attempt in enumerate(tried) if attempt.status == "success"), None)
    if first_success is not None:
        return "delivered", _delivered(event, tried, first_success)
    count, last = _counted(len(tried)), tried[-1]
    why = reason(last)
    if not event.eligible_for_retry:
        return "exhausted", f"Gave up after {count}: the event may not be retried. {why}"
    automatic = [attempt for attempt in tried if not attempt.manual]
    if len(automatic) > len(RETRY_AFTER):
        return "exhausted", f"Gave up after {count}: every retry is used up. {why}"
    if not automatic:
        return "failing", f"Failing after {count} by hand; nothing says that the platform will try. {why}"
    due = automatic[-1].time + RETRY_AFTER[len(automatic) - 1]
    if now > due + _PATIENCE:
        return "failing", f"Failing after {count}; a retry was due {times.ago(due, now)} and is not in the log. {why}"
    when = f"in about {times.span(due - now)}" if due > now else "now"
    return "failing", f"Failing after {count}; will be retried {when}. {why}"


def _delivered(event: Event, tried: Sequence[Attempt], first_success: int) -> str:
    took = times.span(tried[first_success].time - event.time)
    words = f"Delivered after {_counted(first_success + 1)}, {took} after the event."
    if tried[-1].status == "failed":
        return f"{words} A later attempt failed. {reason(tried[-1])}"
    if len(tried) > first_success + 1:
        return f"{words} Sent again since."
    return words


def reason(attempt: Attempt) -> str:
    """Why an attempt failed, in one sentence."""
    said = message(attempt.response_data)
    code = attempt.code or "no code"
    return f"The last answer was {code}: {said}." if said and said != code else f"The last answer was {code}."


def message(response: Any, most: int = 120) -> str:
    """What a destination said, as one short line: the error, or the beginning of the body."""
    found = _innermost(response)
    text = " ".join(_TAG.sub(" ", "" if found is None else str(found)).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _innermost(response: Any) -> Any:
    """The part of a response that says why; bodies are often JSON again."""
    if isinstance(response, str) and response.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            response = json.loads(response)
    if not isinstance(response, dict):
        return response
    found = next((response[name] for name in _SAYING if response.get(name)), "")
    return _innermost(found) if isinstance(found, (str, dict)) and found else found


def _counted(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def worst_icon(found: Sequence[Delivery], *, whole: bool = True) -> str:
    """The sign of the delivery that needs attention most; they are sorted so."""
    return found[0].icon if found else ICONS["never attempted" if whole else "unknown"]


def summary(found: Sequence[Delivery], *, whole: bool = True) -> str:
    """What became of the event, in one line."""
    if not found and not whole:
        return _UNREAD
    if not found:
        return "Never attempted: no destination took it. Its tenant may have none for this topic, or it was disabled."
    counts = {state: sum(delivery.state == state for delivery in found) for state in STATES}
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    noun = "destination" if len(found) == 1 else "destinations"
    return f"{len(found)} {noun}: " + ", ".join(parts) + "."
