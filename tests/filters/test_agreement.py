"""PostgreSQL, DuckDB and the reference give the same answer to every filter on every record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from logstore.filters import Filter, parse
from tests.filters import cases
from tests.filters.engines import fill, from_duckdb, from_postgres, from_python

KINDS = pytest.mark.parametrize("kind", ["event", "attempt"])


class Engines:
    """Both databases, filled with the same rows."""

    def __init__(self, postgres: Connection, duck: duckdb.DuckDBPyConnection) -> None:
        self.postgres, self.duck = postgres, duck

    def agree(self, kind: str, written: Sequence[dict[str, Any]], trees: Sequence[Filter]) -> list[list[bool]]:
        """What all of them answer, filter by filter; a difference fails with the smallest thing to look at."""
        rows = fill(self.postgres, kind, written)
        meant = from_python(kind, rows, trees)
        for name, said in (
            ("PostgreSQL", from_postgres(self.postgres, kind, trees)),
            ("DuckDB", from_duckdb(self.duck, kind, rows, trees)),
        ):
            wrong = [
                (str(tree), row, answer)
                for tree, answers, right in zip(trees, said, meant, strict=True)
                for row, answer, should in zip(rows, answers, right, strict=True)
                if answer != should
            ]
            assert not wrong, f"{name} differs from the reference on {len(wrong)} cases, first: {wrong[0]}"
        return meant


@pytest.fixture(scope="module")
def engines(filter_connection: Connection, duck: duckdb.DuckDBPyConnection) -> Engines:
    return Engines(filter_connection, duck)


@KINDS
@given(data=st.data())
@settings(max_examples=25)
def test_the_engines_agree_and_a_negation_is_the_complement(engines: Engines, kind: str, data: Any) -> None:
    rows = data.draw(st.lists(cases.rows(kind), min_size=8, max_size=8))
    texts = data.draw(st.lists(cases.filters(kind), min_size=8, max_size=8))
    trees = [parse(form, kind) for text in texts for form in (text, f"not ({text})")]
    answers = engines.agree(kind, rows, trees)
    for positive, negative in zip(answers[::2], answers[1::2], strict=True):
        assert negative == [not answer for answer in positive]


def test_every_comparison_with_every_value(engines: Engines) -> None:
    """One key, every kind of JSON under it, every comparison with every literal: each row in exactly one of x, not x."""
    rows = [cases.event_row(document) for document in cases.DOCUMENTS_OF_ONE_KEY]
    comparisons = cases.comparisons()
    for part in range(3):  # a query has a limit of 1 664 columns, and its cost grows with them
        texts = [f"{negation}data.k {text}" for text in comparisons[part::3] for negation in ("", "not ")]
        answers = engines.agree("event", rows, [parse(text, "event") for text in texts])
        for positive, negative in zip(answers[::2], answers[1::2], strict=True):
            assert negative == [not answer for answer in positive]
        assert sum(map(sum, answers[::2])) > len(texts), "the filters hardly match anything"


def test_text_columns_compare_as_text_and_as_numbers(engines: Engines) -> None:
    rows = [{**cases.event_row("{}"), "destination_id": text} for text in cases.TEXTS]
    comparisons = [text for text in cases.comparisons() if "true" not in text and "false" not in text]
    texts = [f"{negation}destination_id {text}" for text in comparisons for negation in ("", "not ")]
    engines.agree("event", rows, [parse(text, "event") for text in texts])


def test_every_key_as_a_path_of_one_and_of_two(engines: Engines) -> None:
    """Exactly that key of exactly an object: no wildcard, no index, no pattern, no escape of any engine."""
    rows = [cases.event_row(document) for document in cases.documents_of_keys()]
    trees = []
    for key in map(cases.written_key, cases.KEYS):
        trees += [parse(f'data.{path} = "v"', "event") for path in (key, f"{key}.{key}")]
    answers = engines.agree("event", rows, trees)
    for at, matched in enumerate(answers):
        assert [row for row, answer in enumerate(matched) if answer] == [at // 2 * 3 + at % 2], str(trees[at])


@KINDS
@given(data=st.data())
def test_a_tree_reads_back_from_its_text(kind: str, data: Any) -> None:
    tree = parse(data.draw(cases.filters(kind)), kind)
    assert parse(str(tree), kind) == tree
    assert str(parse(str(tree), kind)) == str(tree)


@given(data=st.data())
@settings(max_examples=50)
def test_not_not_and_de_morgan_give_the_same_tree(data: Any) -> None:
    x, y = (data.draw(cases.filters("attempt")) for _ in "xy")

    def same(one: str, other: str) -> bool:
        return parse(one, "attempt") == parse(other, "attempt")

    assert same(f"not not ({x})", x)
    assert same(f"not (({x}) and ({y}))", f"not ({x}) or not ({y})")
    assert same(f"not (({x}) or ({y}))", f"not ({x}) and not ({y})")
