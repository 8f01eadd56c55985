"""What a filter may say, what it may not, and where the mistake is."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import InvalidFilter
from logstore.filters import And, Compare, Field, Or, Value, parse
from logstore.filters.parse import MOST_BYTES, MOST_DEPTH, MOST_ITEMS
from logstore.filters.tree import COLUMN_TYPES
from logstore.records import Attempt, Event


def failed(text: str, kind: str = "attempt") -> InvalidFilter:
    with pytest.raises(InvalidFilter) as caught:
        parse(text, kind)
    return caught.value


def text_is(column: str, text: str, *, negated: bool = False) -> Compare:
    return Compare(Field(column), "=", (Value("text", text, f'"{text}"'),), negated)


def test_or_binds_looser_than_and_and_not_tightest() -> None:
    tree = parse('not status = "a" and topic = "b" or id = "c"', "attempt")
    assert tree == Or((And((text_is("status", "a", negated=True), text_is("topic", "b"))), text_is("id", "c")))


def test_negation_ends_up_at_the_comparisons() -> None:
    tree = parse('status = "failed" and not (data.amount < 100 or metadata.region in ["eu", "us"])', "attempt")
    assert str(tree) == 'status = "failed" and not data.amount < 100 and metadata.region not in ["eu", "us"]'


def test_not_equal_and_not_in_are_negated_comparisons() -> None:
    assert parse('status != "a"', "attempt") == text_is("status", "a", negated=True)
    assert parse('not status != "a"', "attempt") == text_is("status", "a")
    assert parse("not data.x not in [1, 2]", "event") == parse("data.x in [1, 2]", "event")


def test_keywords_may_be_written_in_any_case() -> None:
    assert parse('NOT status = "a" AND manual = TRUE Or data.x Exists', "attempt") == parse(
        'not status = "a" and manual = true or data.x exists', "attempt"
    )


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("data.a.b", ("a", "b")),
        ("data.'request-id'", ("request-id",)),
        ("data.'a.b'.c", ("a.b", "c")),
        ("data.'in'", ("in",)),
        ("data.in.not.exists", ("in", "not", "exists")),
        ("data.0.'0'", ("0", "0")),
        ("data.''", ("",)),
        (r"data.'it\'s'", ("it's",)),
        (r"data.'\\ \" \n \u00e9 \ud83d\ude00'", ('\\ " \n é 😀',)),
        ("data.'we\"ird'", ('we"ird',)),
        ("data.ключ", ("ключ",)),
    ],
)
def test_a_path_leads_through_keys(path: str, keys: tuple[str, ...]) -> None:
    tree = parse(f"{path} exists", "event")
    assert tree == Compare(Field("data", keys), "exists")
    assert parse(str(tree), "event") == tree


def test_on_attempts_the_payload_is_that_of_the_event() -> None:
    tree = parse("data.x = 1", "attempt")
    assert isinstance(tree, Compare)
    assert tree.field == Field("event_data", ("x",))
    assert parse("event_data.x = 1", "attempt") == tree
    assert str(tree) == "data.x = 1"
    assert str(parse("event_metadata.x = 1", "attempt")) == "metadata.x = 1"
    assert parse("response_data.x exists", "attempt") == Compare(Field("response_data", ("x",)), "exists")


def test_escapes_are_those_of_json() -> None:
    tree = parse(r'topic = "\" \\ \/ \n \t \u00e9 \ud83d\ude00"', "event")
    assert isinstance(tree, Compare)
    assert tree.values[0].value == '" \\ / \n \t é 😀'


def test_times_are_instants() -> None:
    tree = parse('time >= "2026-08-01T12:00:00.5+02:00"', "event")
    assert isinstance(tree, Compare)
    assert tree.values[0].value == datetime(2026, 8, 1, 10, 0, 0, 500000, tzinfo=UTC)
    assert tree == parse('time >= "2026-08-01t10:00:00.500000z"', "event")


def test_a_list_of_one_is_an_equality_and_values_count_once() -> None:
    assert parse('topic in ["a", "a"]', "event") == text_is("topic", "a")
    assert str(parse('data.x in [1, "a", true, 1]', "event")) == 'data.x in [1, "a", true]'
    assert str(parse("data.x not in []", "event")) == "data.x not in []"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("foo = bar", 7, "double quotes"),
        ('foo = "bar"', 1, "unknown field foo"),
        ('foo not = "a"', 9, 'expected "in"'),
        ('(status = "1"', 14, 'expected "and", "or" or ")"'),
        ('status = "1")', 13, "the end"),
        ('"unclosed', 1, "not closed"),
        ('status = "unclosed', 10, "not closed"),
        ('status = "a\\"', 10, "not closed"),
        ("status = 'failed'", 10, "double quotes"),
        ('status == "a"', 8, "single ="),
        ('status <> "a"', 9, "unequal is !="),
        ('status = "a" && id = "b"', 14, "write and"),
        ('status = "a" || id = "b"', 14, "write or"),
        ("data.x = null", 10, "exists"),
        ('status like "a%"', 8, "contains"),
        ("status", 7, "the filter ends"),
        ("status =", 9, "the filter ends"),
        ("status in", 10, "a list in [ ]"),
        ('status in "a"', 11, "a list in [ ]"),
        ('status in ["a",]', 16, "a text in double quotes"),
        ("data.x in [1, [2]]", 15, "a text in double quotes"),
        ('status = "a" id = "b"', 14, '"and"'),
        ("not", 4, "a field"),
        ("()", 2, "a field"),
        ("1 = 1", 1, "a field"),
        ("data.request-id = 1", 13, "single quotes"),
        ("data . x = 1", 6, "single quotes"),
        ("data.x exists = 1", 15, "the end"),
        ("\x00", 1, "a field"),
        ("status = ?", 10, "a text in double quotes"),
        ("status = :x", 10, "a text in double quotes"),
        ("%import common.WORD", 1, "a field"),
        ("start: FIELD", 6, "a comparison"),
        ('status = "a"; drop table events; --', 13, "the end"),
        ('status = "a\\q"', 12, "unknown escape"),
        ("data.'\\x' exists", 7, "unknown escape"),
        ('status = "\\ud800"', 11, "surrogate"),
        ('status = "\\u0000"', 11, "NUL"),
        ('status = "a\x00"', 11, "NUL"),
        ('status = "\ud800"', 11, "Unicode"),
        ("", 1, "empty"),
        (" \n ", 1, "empty"),
    ],
)
def test_a_mistake_is_shown_with_its_column(text: str, column: int, words: str) -> None:
    error = failed(text)
    assert error.column == column
    assert words in str(error)
    assert f"column {column}:" in str(error)


def test_what_was_expected_is_said_in_words() -> None:
    assert failed("status = ").expected == ("a text in double quotes", "a number", "true or false")
    assert failed('status = "a" x').expected == ("and", "or", "the end")
    assert "not in" in failed("status").expected


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ('stauts = "a"', 1, "did you mean status?"),
        ('id = "a" or tenantid = "b"', 13, "did you mean tenant_id?"),
        ('Status = "a"', 1, "did you mean status?"),
        ("amount = 1", 1, "data.amount"),
        ("status.x = 1", 7, "has no keys"),
        ('data = "x"', 1, "data.amount"),
        ('metadata contains "x"', 1, "name a key"),
        ('manual = "x"', 10, "true or false"),
        ("manual > true", 10, "= != in"),
        ("manual in [true, 1]", 18, "true or false"),
        ('attempt_number contains "1"', 25, "whole number"),
        ('attempt_number = "1"', 18, "a number"),
        ("attempt_number = true", 18, "a number"),
        ("status = true", 10, "a text in double quotes or a number"),
        ("data.x < true", 10, "= != in"),
        ("data.x contains 5", 17, 'write "5"'),
        ("data.x startswith true", 19, "looks inside text"),
        ("time > 5", 8, "2026-08-01T12:00:00Z"),
        ('time > "yesterday"', 8, "2026-08-01T12:00:00Z"),
        ('time > "2026-08-01T00:00:00"', 8, "zone"),
        ('time > "2026-13-01T00:00:00Z"', 8, "not a time"),
        ('time > "2026-08-01T00:00:00.1234567Z"', 8, "not a time"),
        ('time > "0001-01-01T00:00:00+14:00"', 8, "not a time"),
        ('time startswith "2026"', 17, "holds a time"),
        ("code = 1234567890123456", 8, "15 digits"),
        ("code = 1e400", 8, "not a number"),
        ("code = +1", 8, "not a number"),
        ("code = 1.2.3", 8, "not a number"),
        ("code = .5", 8, "not a number"),
        ("code = 5.", 8, "not a number"),
        ("code = 0x10", 8, "not a number"),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(text: str, column: int, words: str) -> None:
    error = failed(text)
    assert error.column == column
    assert words in str(error)


def test_a_field_of_the_other_table_is_named_as_such() -> None:
    assert "events have no field status; attempts do" in str(failed('status = "a"', "event"))
    assert "attempts do" in str(failed("response_data.x = 1", "event"))
    assert "attempts do" in str(failed("event_data.x = 1", "event"))


def test_columns_are_known_with_a_type() -> None:
    assert set(COLUMN_TYPES) == {*Event.columns, *Attempt.columns}


def test_the_limits_are_said() -> None:
    fits = 'topic = "' + "x" * (MOST_BYTES - 10) + '"'
    parse(fits, "event")
    assert "4096" in str(failed(fits + " "))
    assert failed("(" * 5120).column == MOST_BYTES + 1
    inner = "data.x exists"
    parse("(" * MOST_DEPTH + inner + ")" * MOST_DEPTH, "event")
    assert "50 deep" in str(failed("(" * (MOST_DEPTH + 1) + inner + ")" * (MOST_DEPTH + 1)))
    assert "50 deep" in str(failed("not " * (MOST_DEPTH + 1) + inner))
    assert "50 deep" in str(failed("(" * 2000 + inner + ")" * 2000))
    assert failed("(" * 4000).column == 4001
    parse(f"data.x in [{','.join(str(n) for n in range(MOST_ITEMS))}]", "event")
    assert "500" in str(failed(f"data.x in [{','.join(str(n) for n in range(MOST_ITEMS + 1))}]"))
    parse("data" + ".x" * 50 + " exists", "event")
    assert "50" in str(failed("data" + ".x" * 51 + " exists"))


def test_a_kind_that_does_not_exist_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="event or attempt"):
        parse("data.x exists", "segment")


_PIECES = [
    *("and", "or", "not", "in", "exists", "contains", "status", "data.x", "data.'a b'", "(", ")", "[", "]", ",", "="),
    *("!=", "<=", '"a"', '"\\"', "'", "1", "1e5", "-2", "true", ".", "\\", "\0"),
]


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=12).map(" ".join))
def test_any_text_is_a_filter_or_an_error_inside_it(text: str) -> None:
    try:
        tree = parse(text, "attempt")
    except InvalidFilter as error:
        assert 1 <= error.column <= len(text) + 1  # noqa: PT017
    else:
        assert parse(str(tree), "attempt") == tree


def test_a_typical_filter_parses_in_a_millisecond() -> None:
    def seconds(number: int) -> float:
        text = f'status = "failed" and not (data.amount < {number} or metadata.region in ["eu", "us"])'
        start = time.perf_counter()
        parse(text, "attempt")
        return time.perf_counter() - start

    assert min(map(seconds, range(50))) < 0.001
