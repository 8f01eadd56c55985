"""The state of a delivery, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from logstore import Attempt, Event
from logstore.workbench.deliveries import RETRY_AFTER, deliveries, message, summary, worst_icon

START = datetime(2026, 8, 1, 12, tzinfo=UTC)
FAILED, SUCCESS = "failed", "success"


def event(**more: object) -> Event:
    return Event(**{"id": "evt", "tenant_id": "t", "time": START, "topic": "x", "data": {}, **more})


def tries(of: Event, *statuses: str, manual: bool = False) -> list[Attempt]:
    """Attempts along the schedule, the first a second after the event."""
    time, made = START + timedelta(seconds=1), []
    for number, status in enumerate(statuses, 1):
        fields = {"code": "200" if status == SUCCESS else "503", "attempt_number": number, "manual": manual}
        made.append(Attempt.of(of, id=f"a{number}", destination_id="d", status=status, time=time, **fields))
        time += RETRY_AFTER[min(number, len(RETRY_AFTER)) - 1]
    return made


def state(of: Event, attempts: list[Attempt], now: datetime | None = None) -> tuple[str, str]:
    (found,) = deliveries(of, attempts, now=now or attempts[-1].time + timedelta(seconds=5))
    return found.state, found.words


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [([SUCCESS], "Delivered after 1 attempt, 1 s"), ([FAILED, FAILED, SUCCESS], "Delivered after 3 attempts, 2.5 min")],
)
def test_a_success_is_a_delivery_whatever_came_before(statuses: list[str], expected: str) -> None:
    found = state(event(), tries(event(), *statuses))
    assert found[0] == "delivered"
    assert found[1].startswith(expected)


def test_a_failure_after_the_delivery_is_mentioned_and_changes_nothing() -> None:
    found = state(event(), tries(event(), SUCCESS, FAILED))
    assert found[0] == "delivered"
    assert "A later attempt failed" in found[1]


def test_a_failure_with_retries_left_is_failing_and_says_when() -> None:
    found = state(event(), tries(event(), FAILED))
    assert found == ("failing", "Failing after 1 attempt; will be retried in about 25 s. The last answer was 503.")


def test_a_retry_that_never_came_is_named_overdue() -> None:
    found = state(event(), tries(event(), FAILED), now=START + timedelta(days=4))
    assert found[0] == "failing"
    assert "a retry was due 4 days ago" in found[1]


def test_a_delivery_is_exhausted_when_every_retry_failed() -> None:
    found = state(event(), tries(event(), *[FAILED] * (len(RETRY_AFTER) + 1)))
    assert found[0] == "exhausted"
    assert found[1].startswith("Gave up after 6 attempts: every retry is used up.")


def test_an_event_that_may_not_be_retried_is_given_up_at_once() -> None:
    once = event(eligible_for_retry=False)
    assert state(once, tries(once, FAILED))[0] == "exhausted"


def test_attempts_by_hand_use_up_no_retries() -> None:
    attempts = tries(event(), *[FAILED] * 8, manual=True)
    assert state(event(), attempts)[0] == "failing"


def test_a_destination_that_the_event_names_and_nobody_tried_is_never_attempted() -> None:
    (found,) = deliveries(event(destination_id="d9"), [], now=START)
    assert (found.destination_id, found.state) == ("d9", "never attempted")


def test_no_attempts_at_all_is_said_in_the_summary() -> None:
    assert summary(deliveries(event(), [], now=START)).startswith("Never attempted")


def test_what_cannot_be_read_is_unknown_and_not_never_attempted() -> None:
    (found,) = deliveries(event(destination_id="d9"), [], now=START, whole=False)
    assert (found.state, found.icon) == ("unknown", "?")
    assert summary([found], whole=False) == "1 destination: 1 unknown."
    assert summary([], whole=False).startswith("Unknown: no attempt was found")
    assert (worst_icon([], whole=False), worst_icon([])) == ("?", "○")


def test_the_worst_delivery_comes_first() -> None:
    good = [Attempt.of(event(), id="g", destination_id="a", status=SUCCESS, time=START)]
    found = deliveries(event(), [*good, *tries(event(), FAILED)], now=START + timedelta(seconds=3))
    assert [delivery.state for delivery in found] == ["failing", "delivered"]
    assert summary(found) == "2 destinations: 1 delivered, 1 failing."


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (None, ""),
        ({"error": "no response within 10 s"}, "no response within 10 s"),
        ({"status": 500, "body": '{"message": "Internal Server Error"}'}, "Internal Server Error"),
        ({"body": "<html><title>502 Bad Gateway</title></html>"}, "502 Bad Gateway"),
        ({"error": {"message": "deep"}}, "deep"),
        ({"body": "{not json"}, "{not json"),
        ({"body": ""}, ""),
        ([1, 2], "[1, 2]"),
        ("x" * 500, "x" * 119 + "…"),
    ],
)
def test_an_answer_in_short_is_what_says_why(response: object, expected: str) -> None:
    assert message(response) == expected
