"""Spark agrees with the reference: hundreds of filters as columns over one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from sqlalchemy import Connection

from logstore.filters import Filter, parse
from logstore.filters.tree import COLUMN_TYPES
from logstore.pipeline.filters import to_spark
from tests.filters import cases
from tests.filters.engines import RECORDS, fill, from_python

pytestmark = pytest.mark.spark

_TYPES = {"text": "string", "time": "timestamp", "boolean": "boolean", "integer": "int", "json": "string"}


def agree(spark: SparkSession, kind: str, rows: list[tuple[Any, ...]], trees: Sequence[Filter]) -> None:
    schema = ", ".join(f"{name} {_TYPES[COLUMN_TYPES[name]]}" for name in RECORDS[kind].columns)
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    answers = frame.select(sf.array(*(sf.coalesce(to_spark(tree), sf.lit(False)) for tree in trees))).collect()
    said = zip(*(answer for (answer,) in answers), strict=True)
    wrong = [
        (str(tree), row, answer)
        for tree, found, meant in zip(trees, said, from_python(kind, rows, trees), strict=True)
        for row, answer, right in zip(rows, found, meant, strict=True)
        if answer != right
    ]
    assert not wrong, f"Spark differs from the reference on {len(wrong)} cases, first: {wrong[0]}"


def test_every_value_with_many_comparisons(spark: SparkSession, filter_connection: Connection) -> None:
    rows = fill(filter_connection, "event", [cases.event_row(document) for document in cases.DOCUMENTS_OF_ONE_KEY])
    texts = [f"{'not ' if at % 2 else ''}data.k {text}" for at, text in enumerate(cases.comparisons()[::8])]
    agree(spark, "event", rows, [parse(text, "event") for text in texts])


def test_every_key_as_a_path_of_one_and_of_two(spark: SparkSession, filter_connection: Connection) -> None:
    rows = fill(filter_connection, "event", [cases.event_row(document) for document in cases.documents_of_keys()])
    keys = [cases.written_key(key) for key in cases.KEYS]
    paths = [path for key in keys for path in (key, f"{key}.{key}")]
    agree(spark, "event", rows, [parse(f'data.{path} = "v"', "event") for path in paths])


@given(data=st.data())
@settings(max_examples=3, phases=[Phase.generate])  # each takes a second, so none are spent on making it smaller
def test_filters_at_random(spark: SparkSession, filter_connection: Connection, data: Any) -> None:
    rows = fill(filter_connection, "attempt", data.draw(st.lists(cases.rows("attempt"), min_size=10, max_size=10)))
    texts = data.draw(st.lists(cases.filters("attempt"), min_size=20, max_size=20))
    agree(spark, "attempt", rows, [parse(text, "attempt") for text in texts])


def test_a_long_filter_is_no_deep_one(spark: SparkSession) -> None:
    text = " or ".join(f'id = "{number}"' for number in range(250))
    frame = spark.createDataFrame([("249",), ("250",)], "id string")
    assert [row.id for row in frame.where(to_spark(parse(text, "event"))).collect()] == ["249"]
