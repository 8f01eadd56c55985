"""PostgreSQL, DuckDB, Spark and plain Python give the same metrics, wherever the months are."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore import LogStore, Selection, filters, partitions
from logstore.metrics import rollups
from logstore.records import to_micros
from tests.metrics import records
from tests.metrics.plain import measured, same
from tests.metrics.test_buckets import uncompiled
from tests.records_of import unique
from tests.test_archive import make_cold
from tests.test_paging import attempt_selections, matches, selections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHERE = ('code = "500" or manual = true', 'not event_id in ["e1"] and attempt_number > 1')


def empty(store: LogStore, parent: str) -> None:
    """Drop every month, the segments and the roll-ups of what was there."""
    with store.database.connection() as connection:
        for partition in partitions.inventory(store.database):
            if partition.parent == parent:
                connection.execute(f"DROP TABLE {partition.name}")
        connection.execute("DELETE FROM months WHERE parent = %s", [parent])
        connection.execute("DELETE FROM segments")
        kept = sorted({rollup.name for found in rollups.ROLLUPS.values() for rollup in found})
        connection.execute(
            f"TRUNCATE {', '.join(kept)}, attempts_deltas, rollup_gaps, events_deltas, event_rollup_gaps"
        )


def months_of(given_records: list[Any], parent: str) -> list[str]:
    return sorted({partitions.partition_name(parent, partitions.month_of(r.time)) for r in given_records})


def move(store: LogStore, data: st.DataObject, names: list[str]) -> None:
    for name in names:
        depth = data.draw(st.sampled_from(["", "cold", "detached", "purged"]), label=name)
        if depth:
            make_cold(store, name, depth=depth, segment_rows=data.draw(st.integers(2, 8)))


@settings(max_examples=10)
@given(st.data())
def test_attempts_measured_over_both_tiers_equal_plain_python(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    empty(store, "attempts")
    given_records = unique(data.draw(st.lists(records.attempts, max_size=16)))
    store.insert_many(attempts=given_records)
    move(store, data, months_of(given_records, "attempts"))
    for _ in range(6):
        (start, end), asked = data.draw(records.questions())
        selection = data.draw(st.just(Selection()) | attempt_selections)
        where = data.draw(st.none() | st.sampled_from(WHERE))
        chosen = [r for r in given_records if matches(selection, r)]
        if where is not None:
            tree = filters.parse(where, "attempt")
            chosen = [r for r in chosen if filters.matches(tree, r)]
        found = store.attempt_metrics(start, end, selection=selection.but(where=where), **asked)
        same(list(found), measured(chosen, start, end, **asked))
        assert found.warnings == ()


@settings(max_examples=6)
@given(st.data())
def test_events_measured_over_both_tiers_equal_plain_python(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    empty(store, "events")
    given_records = unique(data.draw(st.lists(records.events, max_size=16)))
    store.insert_many(given_records)
    move(store, data, months_of(given_records, "events"))
    for _ in range(6):
        (start, end), asked = data.draw(records.questions("event"))
        destinations = data.draw(st.sampled_from([(), ("d1",), ("", "d1")]))
        selection = data.draw(selections).but(destination_ids=destinations)
        found = store.event_metrics(start, end, selection=selection, **asked)
        same(list(found), measured([r for r in given_records if matches(selection, r)], start, end, **asked))


@pytest.mark.spark
@settings(max_examples=3)
@given(st.data())
def test_spark_measures_what_plain_python_measures(spark: SparkSession, data: st.DataObject) -> None:
    from pyspark.sql import functions as sf

    from logstore.pipeline import metrics

    given_records = unique(data.draw(st.lists(records.attempts, min_size=1, max_size=16)))
    names = ("tenant_id", "destination_id", "topic", "status", "attempt_number", "manual", "code")
    rows = [(*(getattr(r, n) for n in names), to_micros(r.time), to_micros(r.event_time)) for r in given_records]
    types = "tenant_id string, destination_id string, topic string, status string, attempt_number int, manual boolean"
    frame = spark.createDataFrame(rows, f"{types}, code string, at long, event_at long").coalesce(1)
    frame = frame.select(
        *names,
        sf.expr("timestamp_micros(at)").alias("time"),
        sf.expr("timestamp_micros(event_at)").alias("event_time"),
    )
    for _ in range(3):
        (start, end), asked = data.draw(records.questions())
        with uncompiled(spark):
            found = metrics.measure(frame, "attempt", start, end, **asked)
        same(list(found), measured(given_records, start, end, **asked))
        assert found.source == "spark"


def test_a_percentile_over_two_tiers_is_that_of_the_union(store: LogStore) -> None:
    """The median of two medians would be 1.5 s here, that of all is 1 s."""
    from tests.records_of import attempt

    march, april = records.EDGES[0], records.EDGES[2]
    cold = [attempt(f"a{n}", time=march, event_time=march - timedelta(seconds=1)) for n in range(3)]
    store.insert_many(attempts=[*cold, attempt("b", time=april, event_time=april - timedelta(seconds=2))])
    make_cold(store, "attempts_2026_03")
    found = store.attempt_metrics(march, april + timedelta(days=1), measures=("latency_p50", "latency_p99", "count"))
    assert found.tiers == ("hot", "cold")
    same(list(found), [{"latency_p50": 1.0, "latency_p99": 1.97, "count": 4}])
