"""Records, selections and pages say no to what they cannot hold, and show what they hold without running it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import Attempt, Event, InvalidRecord, InvalidSelection, Page, Selection, TimeFilter
from tests.records_of import START, attempt, event


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="time zone"):
        event(time=datetime(2026, 1, 1))
    with pytest.raises(InvalidRecord, match="time zone"):
        attempt(event_time=datetime(2026, 1, 1))
    with pytest.raises(InvalidSelection, match="time zone"):
        TimeFilter(gte=datetime(2026, 1, 1))


def test_times_are_kept_in_utc() -> None:
    east = timezone(timedelta(hours=5))
    assert event(time=START.astimezone(east)).time.tzinfo is UTC


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": 7},
        {"id": "a\x00b"},
        {"id": "\ud800"},
        {"id": "a" * 1201},
        {"tenant_id": "t" * 513},
        {"status": "ok"},
        {"attempt_number": "1"},
        {"attempt_number": True},
        {"attempt_number": -1},
        {"attempt_number": 2**31},
        {"manual": 1},
        {"code": 500},
        {"time": "2026-01-01"},
    ],
)
def test_an_attempt_with_a_wrong_field_is_refused_and_the_field_named(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidRecord, match=next(iter(fields))):
        attempt(**fields)


def test_an_attempt_carries_its_event() -> None:
    sent = event(data={"a": [1]}, metadata={"m": 1}, eligible_for_retry=False)
    made = Attempt.of(
        sent, id="att_9", destination_id="des_9", status="failed", time=START, attempt_number=3, code="500"
    )
    assert (made.attempt_number, made.code, made.event_id) == (3, "500", sent.id)
    assert made.event == event(data={"a": [1]}, metadata={"m": 1}, eligible_for_retry=False, destination_id="des_9")


def test_records_are_frozen() -> None:
    with pytest.raises(AttributeError):
        event().id = "other"  # type: ignore[misc]


def test_a_bare_text_instead_of_a_tuple_is_refused() -> None:
    with pytest.raises(InvalidSelection, match="tuple"):
        Selection(tenant_ids="acme")  # type: ignore[arg-type]


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(InvalidSelection, match="success, failed"):
        Selection(status="pending")


texts = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5), max_size=3).map(tuple)
moments = st.none() | st.datetimes(timezones=st.just(UTC))


@given(
    st.builds(
        Selection,
        tenant_ids=texts,
        event_ids=texts,
        destination_ids=texts,
        topics=texts,
        status=st.sampled_from([None, "success", "failed"]),
        time=st.builds(TimeFilter, gte=moments, lte=moments, gt=moments, lt=moments),
        where=st.none() | st.text(max_size=5),
    )
)
def test_a_selection_survives_the_url(selection: Selection) -> None:
    assert Selection.from_query(selection.to_query()) == selection


@pytest.mark.parametrize(
    "pairs",
    [[("tenant", "a")], [("time.gte", "yesterday")], [("time.gte", "2026-01-01T00:00:00")], [("status", "x")],
     [("where", "a"), ("where", "b")], [("gte", "2026-01-01T00:00:00Z")]],
)  # fmt: skip
def test_a_url_that_makes_no_selection_is_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidSelection):
        Selection.from_query(pairs)


def test_a_page_becomes_a_frame_with_utc_microseconds() -> None:
    page = Page(data=(attempt(),), tiers=("hot",), kind=Attempt)
    frame = page.to_pandas()
    assert str(frame["time"].dtype) == str(frame["event_time"].dtype) == "datetime64[us, UTC]"
    assert frame["tier"].tolist() == ["hot"]
    empty = Page(data=(), kind=Event).to_pandas()
    assert list(empty.columns) == list(Event.columns)
    assert str(empty["time"].dtype) == "datetime64[us, UTC]"


def test_hostile_text_is_escaped_in_notebooks() -> None:
    hostile = event(data={"<script>alert(1)</script>": "<img src=x onerror=alert(2)>"}, topic="<b>x</b>")
    for shown in (hostile._repr_html_(), Page(data=(hostile,), warnings=("<i>",), kind=Event)._repr_html_()):
        assert "<script>" not in shown and "<img" not in shown and "<b>" not in shown and "<i>" not in shown
