"""A cursor is a position and nothing else; what cannot be read raises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import CursorVersionMismatch, InvalidCursor
from logstore.cursor import Position, _to_base62, decode, encode
from tests.records_of import ids

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def token(text: str | bytes) -> str:
    return _to_base62(text.encode() if isinstance(text, str) else text)


def test_the_seeds_own_example_is_read() -> None:
    assert decode("event", "lbOiENBxD2DlaUsw0NUssvL6JF7agrGShzUikxl") == Position(MOMENT, "evt_123")
    assert token("evtv01:1704067200000::evt_123") == "lbOiENBxD2DlaUsw0NUssvL6JF7agrGShzUikxl"


def test_issued_cursors_are_version_2_and_count_microseconds() -> None:
    issued = encode("attempt", Position(MOMENT + timedelta(microseconds=7), "att_1"))
    assert issued == token("attv02:1704067200000007::att_1")


@given(st.datetimes(timezones=st.just(UTC)), ids | st.just(""))
def test_every_position_survives_the_round_trip(time: datetime, id: str) -> None:
    for kind in ("event", "attempt"):
        assert decode(kind, encode(kind, Position(time, id))) == Position(time, id)


def test_a_cursor_of_another_resource_is_refused() -> None:
    with pytest.raises(InvalidCursor, match="another list"):
        decode("attempt", encode("event", Position(MOMENT, "x")))


@pytest.mark.parametrize("version", ["00", "03", "99"])
def test_an_unknown_version_is_named(version: str) -> None:
    with pytest.raises(CursorVersionMismatch, match=f"version {int(version)}"):
        decode("event", token(f"evtv{version}:1::x"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "evt",
        "evtv02",
        "evtv02:",
        "evtv02:12",
        "evtv02:12:x",
        "evtv02:::x",
        "evtv02:1_000::x",
        "evtv02: 1::x",
        "evtv02:١::x",
        "evtv02:1.5::x",
        "evtv02:nan::x",
        "evtv02:99999999999999999999::x",
        "evtv02:999999999999999999::x",
        "evtv02:1::x\x00y",
        "EVTv02:1::x",
        "evtv2:1::x",
        "xyzv02:1::x",
        " evtv02:1::x",
    ],
)
def test_a_position_that_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        decode("event", token(text))


@pytest.mark.parametrize(
    "damaged", ["", "-", "lbOi ENB", "é", "0", "z" * 5000, "0lbOiENBxD2DlaUsw0NUssvL6JF7agrGShzUikxl"]
)
def test_a_token_that_was_never_issued_is_refused(damaged: str) -> None:
    with pytest.raises(InvalidCursor):
        decode("event", damaged)


@given(st.text(max_size=60) | st.binary(max_size=40).map(token))
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    try:
        position = decode("event", text)
    except InvalidCursor:
        return
    assert position.time.utcoffset() == timedelta(0)
