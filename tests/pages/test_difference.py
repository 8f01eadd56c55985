"""The difference of two payloads: the paths that changed, within bounds, whatever they hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from logstore.workbench.event.difference import ABSENT, LINES_MOST, difference, laid_out, said, unified
from tests.records_of import json_values


def changes(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    return [(change.path, change.before, change.after) for change in difference(before, after).changes]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1, "b": {"c": "x"}}, {"a": 1, "b": {"c": "y"}}, [("b.c", "x", "y")]),
        ({"a": 1}, {"b": 1}, [("a", 1, ABSENT), ("b", ABSENT, 1)]),
        ({"a": None}, {}, [("a", None, ABSENT)]),  # null is there
        ([1, 2, 3], [0, 1, 2, 3], [("[0]", ABSENT, 0)]),  # what follows an insertion did not change
        ([1, 2, 3], [1, 3], [("[1]", 2, ABSENT)]),
        ({"items": [{"n": 1}, {"n": 2}]}, {"items": [{"n": 1}, {"n": 9}]}, [("items[1].n", 2, 9)]),
        ([True, 1, 1.0], [1, 1.0, True], [("[0]", True, 1), ("[1]", 1, 1.0), ("[2]", 1.0, True)]),
        ({"a": [1]}, {"a": {"0": 1}}, [("a", [1], {"0": 1})]),
        ("a", "b", [("the whole", "a", "b")]),
        ({"a.b": 1, "it's": 2, "": 3}, {}, [("'a.b'", 1, ABSENT), (r"'it\'s'", 2, ABSENT), ("''", 3, ABSENT)]),
    ],
)
def test_the_smallest_parts_that_differ_are_named_by_their_paths(
    before: Any, after: Any, expected: list[tuple[str, Any, Any]]
) -> None:
    assert changes(before, after) == expected


@given(json_values, json_values)
def test_two_values_differ_in_nothing_exactly_when_they_are_the_same_json(one: Any, other: Any) -> None:
    assert difference(one, one).changes == ()
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (difference(one, other).changes == ()) == same
    swapped = sorted((c.path, c.words) for c in difference(other, one).changes)
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    assert swapped == sorted((c.path, turned[c.words]) for c in difference(one, other).changes)


def test_a_huge_or_deep_payload_is_compared_in_part_and_says_so() -> None:
    deep_a: Any = 1
    deep_b: Any = 2
    for _ in range(5000):
        deep_a, deep_b = [deep_a], {"d": [deep_b]}
    assert difference(deep_a, deep_b).changes[0].words == "changed"
    assert "deeply" in said(deep_a)
    many = difference({f"k{n}": n for n in range(5000)}, {f"k{n}": -n for n in range(5000)})
    assert (len(many.changes), many.whole) == (200, False)
    wide = [{"n": n} for n in range(500_000)]
    assert not difference(wide, [*wide[:-1], {"n": "other"}]).whole, "the steps are bounded, not only the answer"
    assert len(difference({"k" * 10_000: 1}, {}).changes[0].path) < 100
    assert len(said("x" * 10_000)) == 300


def test_texts_are_compared_by_lines_with_their_line_numbers() -> None:
    before = "\n".join(f"line {n}" for n in range(100))
    after = before.replace("line 50", "line fifty").replace("line 99", "line 99\nmore")
    shown = unified(before, after, ("try 1", "try\n2"))
    assert shown.splitlines()[:3] == ["--- try 1", "+++ try 2", "@@ -48,7 +48,7 @@"]
    assert "-line 50\n+line fifty\n" in shown and shown.endswith("+more")
    assert unified(before, before) == ""
    long = "x" * 5000
    assert unified(long + "a", long + "b").splitlines()[-1] == "+" + "x" * 40 + "b", "also at the end of a long line"


def test_a_text_of_many_lines_is_compared_in_part_and_says_so() -> None:
    shown = unified("\n".join(f"{n % 37}" for n in range(50_000)), "\n".join(f"{n % 41}" for n in range(50_000)))
    assert f"only the first {LINES_MOST} lines" in shown


def test_a_body_that_is_json_or_html_is_laid_out_first() -> None:
    assert laid_out('{"a":{"b":1}}').splitlines()[1] == '  "a": {'
    assert laid_out("<p><b>x</b></p>").splitlines() == ["<p>", "<b>x</b>", "</p>"]
    assert laid_out("{not json") == "{not json"
