"""What a good line is, reason by reason; and that the columnwise path agrees with it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import lines
from logstore.lines import COLUMNS
from logstore.pipeline.chunks import Chunk, line_table
from logstore.pipeline.doubt import doubtful_lines
from logstore.pipeline.transform import Parsed, transform
from logstore.validation import REASONS, Rejected, Rules

from .pipeline.files import attempt, event

RULES = Rules(
    oldest=datetime(2020, 1, 1, tzinfo=UTC),
    newest=datetime(2027, 1, 1, tzinfo=UTC),
    states={("events", date(2025, 1, 1)): "closed"},
)


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def with_number(number: str) -> str:
    return json.dumps(event(data={"n": 1})).replace('{"n": 1}', f'{{"n": {number}}}')


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


BAD: list[tuple[str, str, str]] = [  # (what, line, reason)
    ("cut off", json.dumps(event())[:-3], "malformed"),
    ("not an object", "[1, 2]", "malformed"),
    ("a word", "hello", "malformed"),
    ("two objects", json.dumps(event()) + json.dumps(event()), "malformed"),
    ("a trailing comma", json.dumps(event())[:-1] + ",}", "malformed"),
    ("a comma inside a payload", json.dumps(event()).replace('"us"', '"us",').replace('"eu"', '"eu",'), "malformed"),
    ("NaN", json.dumps(event(data={"n": float("nan")})), "malformed"),
    ("Infinity", json.dumps(event(data=[float("inf")])), "malformed"),
    ("a raw control character", json.dumps(event()).replace("order", "or\tder"), "malformed"),
    ("a lone surrogate", json.dumps(event(data={"a": "\ud800"})), "malformed"),
    ("a lone surrogate as id", json.dumps(event(id="\ud800")), "malformed"),
    ("no id", json.dumps(without(event(), "id")), "missing_field"),
    ("id null", json.dumps(event(id=None)), "missing_field"),
    ("id empty", json.dumps(event(id="")), "missing_field"),
    ("no data", json.dumps(without(event(), "data")), "missing_field"),
    ("an attempt without event_data", json.dumps(without(attempt(), "event_data")), "missing_field"),
    ("an attempt without event_id", json.dumps(without(attempt(), "event_id")), "missing_field"),
    ("id a number", json.dumps(event(id=5)), "wrong_type"),
    ("time a bool", json.dumps(event(time=True)), "wrong_type"),
    ("time a float", json.dumps(event(time=1.5)), "wrong_type"),
    ("data not JSON", json.dumps(event(data="hello")), "wrong_type"),
    ("data two JSON values", json.dumps(event(data="{} {}")), "wrong_type"),
    ("a flag as text", json.dumps(event(eligible_for_retry="true")), "wrong_type"),
    ("an attempt number as text", json.dumps(attempt(attempt_number="1")), "wrong_type"),
    ("an attempt number too large", json.dumps(attempt(attempt_number=2**31)), "wrong_type"),
    ("a negative attempt number", json.dumps(attempt(attempt_number=-1)), "wrong_type"),
    ("a code as number", json.dumps(attempt(code=200)), "wrong_type"),
    ("an unknown status", json.dumps(attempt(status="pending")), "unknown_status"),
    ("no time", json.dumps(event(time="yesterday")), "bad_time"),
    ("the 30th of February", json.dumps(event(time="2026-02-30T00:00:00Z")), "bad_time"),
    ("a leap day in a common year", json.dumps(event(time="2026-02-29T00:00:00Z")), "bad_time"),
    ("hour 24", json.dumps(event(time="2026-02-20T24:00:00Z")), "bad_time"),
    ("a leap second", json.dumps(event(time="2026-06-30T23:59:60Z")), "bad_time"),
    ("a naive time", json.dumps(event(time="2026-02-20T12:00:00")), "naive_time"),
    ("a naive event time", json.dumps(attempt(event_time="2026-02-20T12:00:00.5")), "naive_time"),
    ("too old", json.dumps(event(time="2019-12-31T23:59:59.999999Z")), "absurd_time"),
    ("too far ahead", json.dumps(event(time="2027-01-01T00:00:00.000001Z")), "absurd_time"),
    ("seconds for milliseconds", json.dumps(event(time=1_770_000_000)), "absurd_time"),
    ("milliseconds beyond all years", json.dumps(event(time=10**18)), "absurd_time"),
    ("NUL in an id", json.dumps(event(id="a\x00b")), "nul"),
    ("NUL in a payload", json.dumps(event(data={"a": "b\x00"})), "nul"),
    ("NUL in a key of a payload", json.dumps(event(data={"a\x00": 1})), "nul"),
    ("NUL in JSON text", json.dumps(event(data='{"a": "\\u0000"}')), "nul"),
    ("a long tenant", json.dumps(event(tenant_id="t" * 513)), "too_long"),
    ("a long id", json.dumps(event(id="ü" * 601), ensure_ascii=False), "too_long"),
    ("nested too deep", json.dumps(event()).replace('{"n": 1,', '{"deep": ' + nested(300) + ', "n": 1,'), "too_deep"),
    ("nested beyond recursion", json.dumps(event()).replace('{"n": 1,', '{"x":' + nested(90_000) + ',"n": 1,'), "too_deep"),
    ("JSON text nested too deep", json.dumps(event(data=nested(201))), "too_deep"),
    ("an event time in the year 0", json.dumps(attempt(event_time="0000-05-05T00:00:00Z")), "bad_time"),
    ("an event time before the year 1", json.dumps(attempt(event_time="0001-01-01T00:00:00+01:00")), "bad_time"),
    ("an event time after the year 9999", json.dumps(attempt(event_time="9999-12-31T23:59:59-01:00")), "bad_time"),
    ("a huge exponent", with_number("1e131071"), "refused"),
    ("a tiny exponent", with_number("5E-401"), "refused"),
    ("an exponent that no one can count", with_number("1e" + "9" * 5000), "refused"),
    ("a huge exponent in JSON text", json.dumps(event(data='{"n": 1e131071\n}')), "refused"),
    ("an escaped exponent in JSON text", json.dumps(event(data='{"n": 1E5000}')).replace("1E5", "1\\u00455"), "refused"),
    ("a huge exponent in a field that we do not know", json.dumps(event())[:-1] + ', "x": 1e500}', "refused"),
    ("NaN in a field that we do not know", json.dumps(event(extra=float("nan"))), "malformed"),
    ("-Infinity in a field that we do not know", json.dumps(event(extra=[float("-inf")])), "malformed"),
    ("NaN in JSON text", json.dumps(event(data='{"n": NaN}')), "wrong_type"),
    ("a trailing comma in JSON text", json.dumps(event(data='{"n": 1,\n}')), "wrong_type"),
    ("a month that is closed", json.dumps(event(time="2025-01-31T23:59:59Z")), "month_not_open"),
]  # fmt: skip

GOOD: list[tuple[str, str]] = [
    ("an event", json.dumps(event())),
    ("an attempt", json.dumps(attempt())),
    ("escapes", json.dumps(event(id='a"b\\c\n', tenant_id="é\u2028"))),
    ("escaped everything", json.dumps(attempt(id="日本"), ensure_ascii=True)),
    ("milliseconds", json.dumps(event(time=1_770_000_000_123))),
    ("an offset", json.dumps(event(time="2026-03-01T00:30:00+05:30"))),
    ("nine digits of a second", json.dumps(event(time="2026-02-28T23:59:59.999999999Z"))),
    ("small letters", json.dumps(event(time="2026-02-28t23:59:59z"))),
    ("a leap day", json.dumps(event(time="2024-02-29T23:59:59Z"))),
    ("payloads as JSON text", json.dumps(attempt(event_data='{"a": 1.10}', response_data="[1]", event_metadata="{}"))),
    ("optional fields left out", json.dumps({k: event()[k] for k in ("id", "tenant_id", "time", "topic", "data")})),
    ("optional fields null", json.dumps(attempt(code=None, response_data=None, manual=None, event_metadata=None))),
    ("numbers as they stand", json.dumps(event()).replace('"n": 1', '"n": 1.10, "m": 1e5, "k": 12345678901234567890123')),
    ("fields that we do not know", json.dumps(event(extra={"deep": [1]}, note="x"))),
    ("a backslash before u0000", json.dumps(event(data={"a": "\\u0000"}))),
    ("nested just enough", json.dumps(event(data=nested(200)))),
    ("an empty destination", json.dumps(attempt(destination_id="", code=""))),
    ("blanks around it", "  \t" + json.dumps(event()) + " \r"),
    ("a byte order mark", "\ufeff" + json.dumps(event())),
    ("data a list", json.dumps(event(data=[1, {"a": None}]))),
    ("data a number", json.dumps(event(data=5))),
    ("exponents that a reader can hold", with_number("[1e400, 1E-400, 2.5e+3]")),
    ("the first event time", json.dumps(attempt(event_time="0001-01-01T00:00:00Z"))),
    ("the last event time", json.dumps(attempt(event_time="9999-12-31T23:59:59.999999Z"))),
    ("words that look like numbers", json.dumps(event(data={"NaN": "Infinity", "inf": "nan", "t": "1e999"}))),
    ("a field that is there twice", json.dumps(event())[:-1] + ', "id": "again", "data": {"again": 1}}'),
    ("a field that is there twice, null last", json.dumps(event(event_id="again"))[:-1] + ', "event_id": null}'),
    ("the largest attempt number", json.dumps(attempt(attempt_number=2**31 - 1))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "reason"), [(line, reason) for _, line, reason in BAD], ids=[what for what, *_ in BAD]
)
def test_a_bad_line_says_why(line: str, reason: str) -> None:
    with pytest.raises(Rejected) as refused:
        lines.parse(line, RULES)
    assert refused.value.reason == reason
    assert str(refused.value)
    assert reason in REASONS


@pytest.mark.parametrize("line", [line for _, line in GOOD], ids=[what for what, _ in GOOD])
def test_a_good_line_is_a_row(line: str) -> None:
    row = lines.parse(line, RULES)
    assert len(row.values) == len(COLUMNS[row.kind])
    assert row.time.tzinfo is UTC


def test_a_row_larger_than_the_limit_is_oversize() -> None:
    small = Rules(oldest=RULES.oldest, newest=RULES.newest, states={}, row_bytes=100)
    with pytest.raises(Rejected, match="larger than 100 bytes"):
        lines.parse(json.dumps(event()), small)


def test_numbers_keep_their_text() -> None:
    row = lines.parse(
        json.dumps(event(data="{}")).replace('"{}"', '{"a": 100.00,  "b": 0.12345678901234567890}'), RULES
    )
    assert row.values[COLUMNS["event"].index("data")] == '{"a": 100.00,  "b": 0.12345678901234567890}'


def test_milliseconds_and_text_mean_the_same_moment() -> None:
    told = lines.parse(json.dumps(event(time="2026-02-01T12:34:56.789+02:00")), RULES).time
    counted = lines.parse(json.dumps(event(time=int(told.timestamp() * 1000))), RULES).time
    assert told == counted == datetime(2026, 2, 1, 10, 34, 56, 789000, tzinfo=UTC)


# The columnwise path


def transformed(texts: list[str]) -> Parsed:
    array = pyarrow.array(texts, pyarrow.string())
    positions = numpy.arange(len(texts), dtype=numpy.int64)
    table = line_table(positions, array, doubtful_lines(array, RULES.depth))
    return transform(Chunk(table, len(texts), positions + 1), RULES)


def by_line(parsed: Parsed) -> dict[int, Any]:
    """What became of each line: ('event', values) or ('rejected', reason, message)."""
    found: dict[int, Any] = {x.position: ("rejected", x.reason, x.message) for x in parsed.letters}
    for group in parsed.groups:
        for number, row in zip(group.numbers.to_pylist(), group.rows.to_pylist(), strict=True):
            assert number not in found
            assert row["time"].astimezone(UTC).date().replace(day=1) == group.month
            found[number] = (group.kind, *_comparable(group.kind, tuple(row.values())))
    return found


def one_by_one(text: str) -> Any:
    try:
        row = lines.parse(text, RULES)
    except Rejected as error:
        return "rejected", error.reason, str(error)
    return row.kind, *_comparable(row.kind, row.values)


def _comparable(kind: Any, values: tuple[Any, ...]) -> list[Any]:
    """Payloads by meaning with numbers by text: blanks between tokens are no difference, 1.10 and 1.1 are one."""
    plain = []
    for name, value in zip(COLUMNS[kind], values, strict=True):
        if value is not None and name.endswith(("data", "metadata")):
            plain.append(json.dumps(json.loads(value, parse_float=lambda text: "float " + text), sort_keys=True))
        elif isinstance(value, datetime):
            plain.append(value.astimezone(UTC).isoformat())
        else:
            plain.append(value)
    return plain


@pytest.mark.parametrize("order", [1, -1])
def test_columnwise_and_one_by_one_judge_alike(order: int) -> None:
    texts = ([line for _, line, _ in BAD] + [line for _, line in GOOD])[::order]
    found = by_line(transformed(texts))
    assert [found[i] for i in range(len(texts))] == [one_by_one(text) for text in texts]


_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
_json = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
_numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@st.composite
def _line(draw: st.DrawFn) -> str:
    row = draw(st.sampled_from([event, attempt]))(draw(st.integers(0, 50)))
    for name in draw(st.lists(st.sampled_from(sorted(row)), max_size=2)):
        row[name] = draw(st.one_of(_json, st.just(row[name])))
    if draw(st.booleans()):
        row["data" if "data" in row else "event_data"] = {"number": "@@"}
    text = json.dumps(row, ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([None, (",", ":")])))
    return text.replace('"@@"', draw(_numbers))


@given(st.lists(_line(), min_size=1, max_size=8))
def test_columnwise_and_one_by_one_agree_on_anything(texts: list[str]) -> None:
    found = by_line(transformed(texts))
    assert [found[i] for i in range(len(texts))] == [one_by_one(text) for text in texts]


def test_blank_lines_are_nothing() -> None:
    parsed = transformed(["", "   ", "\r", json.dumps(event())])
    assert not parsed.letters
    assert sum(len(group.rows) for group in parsed.groups) == 1


@pytest.mark.parametrize("number", ["1", "1e000"], ids=["columnwise", "one by one"])
def test_of_a_field_that_is_there_twice_the_last_counts(number: str) -> None:
    text = with_number(number)[:-1] + ', "id": "again", "topic": "last", "eligible_for_retry": null}'
    (group,) = transformed([text]).groups
    row = group.rows.to_pylist()[0]
    assert (row["id"], row["topic"], row["eligible_for_retry"]) == ("again", "last", True)


def test_a_mixed_chunk_falls_into_its_months() -> None:
    texts = [json.dumps(event(1, time=f"2026-0{month}-15T00:00:00Z")) for month in (1, 2, 2, 3)]
    texts += [json.dumps(attempt(1, time="2026-02-15T00:00:00Z"))]
    found = {(group.kind, group.month.month): len(group.rows) for group in transformed(texts).groups}
    assert found == {("event", 1): 1, ("event", 2): 2, ("event", 3): 1, ("attempt", 2): 1}
