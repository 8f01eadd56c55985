"""What filters mean, by example; that the engines agree is proven elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from logstore.filters import matches, parse
from logstore.records import Attempt, Event

EVENT = Event(
    id="evt_1",
    tenant_id="acme",
    time=datetime(2026, 8, 1, 12, tzinfo=UTC),
    topic="order.created",
    data={
        "n": 7,
        "text": "7",
        "yes": True,
        "empty": "",
        "null": None,
        "list": ["a"],
        "in": {"deep": 1.10},
        "0": "zero",
    },
    metadata={"region": "eu", "request-id": "r%1"},
)
ATTEMPT = Attempt.of(
    EVENT,
    id="att_1",
    destination_id="des_1",
    status="failed",
    time=datetime(2026, 8, 1, 13, tzinfo=UTC),
    code="503",
    response_data={"body": "Bad gateway"},
)


@pytest.mark.parametrize(
    "text",
    [
        'status = "failed" and code >= 500',
        'code >= "5"',
        'code < "6" and not code < "5"',
        "code = 5.03e2",
        "data.n = 7 and data.text = 7 and data.n > 6.5",
        'data.text = "7" and not data.n = "7"',
        "data.yes = true and data.yes != false and not data.yes = 1",
        'not data.yes = "true"',
        'data.empty exists and data.empty = "" and data.text contains ""',
        'not data.null exists and data.null != "x" and data.missing != 1 and not data.missing = 1',
        "not data.missing < 5 and not data.missing >= 5",
        'data.list exists and not data.list contains "a" and not data.list.0 exists',
        'data.0 = "zero"',
        "data.in.deep = 1.1 and not data.n.deep exists",
        'metadata.region in ["us", "eu"] and metadata.region not in [] and not metadata.region in []',
        'data.n in ["x", 7, true]',
        "metadata.'request-id' contains \"%\" and not metadata.'request-id' contains \"_\"",
        "metadata.'request-id' startswith \"r\" and metadata.'request-id' endswith \"%1\"",
        'time > "2026-08-01T12:59:59.999999Z" and event_time = "2026-08-01T14:00:00+02:00"',
        "manual = false and attempt_number = 1.0 and attempt_number in [1, 2]",
        "code exists and response_data exists and data exists",
        'response_data.body contains "gate"',
    ],
)
def test_an_attempt_matches(text: str) -> None:
    assert matches(parse(text, "attempt"), ATTEMPT)
    assert not matches(parse(f"not ({text})", "attempt"), ATTEMPT)


def test_an_attempt_without_a_response_has_none() -> None:
    attempt = Attempt.of(EVENT, id="a", destination_id="d", status="success", time=EVENT.time)
    for text in ("not response_data exists", "not code exists", "not code < 500", "not response_data.x = 1"):
        assert matches(parse(text, "attempt"), attempt)


@pytest.mark.parametrize("text", ["NaN", " 1", "1 ", "1\n", "+1", ".5", "5.", "0x10", "1e400", "1" * 16, "１", ""])
def test_text_that_is_no_number_is_neither_below_nor_above(text: str) -> None:
    event = Event(id="e", tenant_id="t", time=EVENT.time, topic="x", data={"n": text})
    assert not matches(parse("data.n < 0 or data.n >= 0", "event"), event)


@pytest.mark.parametrize(("text", "number"), [("007", "7"), ("1e5", "100000"), ("-0", "0"), ("1.10", "1.1")])
def test_text_in_the_form_of_a_number_compares_as_one(text: str, number: str) -> None:
    event = Event(id="e", tenant_id="t", time=EVENT.time, topic=text, data={"n": text})
    assert matches(parse(f"data.n = {number} and topic = {number}", "event"), event)


def test_a_json_number_counts_by_its_value() -> None:
    def holds(number: float, text: str) -> bool:
        return matches(
            parse(text, "event"), Event(id="e", tenant_id="t", time=EVENT.time, topic="x", data={"n": number})
        )

    assert holds(1e-7, "data.n > 0")
    assert holds(999_999_999_999_999, "data.n > 0")
    for too_long in (1e15, 10**15, 123456789012345678, 10**400, float("inf"), -1e22):
        assert not holds(too_long, "data.n < 0 or data.n >= 0")
        assert holds(too_long, "data.n exists")
    assert holds(5e-324, "data.n = 0")
