"""One rule says which bucket a time falls into; every engine is held to it, for every legal width, in any session zone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import DateTime, extract, func, select

from logstore import InvalidSelection, LogStore, segments
from logstore.metrics import Granularity, buckets
from logstore.queries import render
from logstore.records import from_micros, to_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDTHS = [Granularity(number, unit) for unit, most in buckets.MOST.items() for number in range(1, most + 1)]
MOMENTS = [
    datetime(*parts, tzinfo=UTC)
    for parts in (
        (1, 12, 31, 23, 59, 59, 999_999), (1600, 2, 29), (1899, 12, 31, 23, 59, 59), (1904, 2, 29, 12),
        (1968, 12, 28, 23, 59, 59, 999_999), (1969, 12, 31, 23, 59, 59, 999_999), (1970, 1, 1), (1970, 1, 3, 23, 59, 59),
        (1970, 1, 4), (1972, 2, 29, 23), (2000, 2, 29, 1, 2, 3, 4), (2024, 12, 31, 23, 59, 59, 999_999),
        (2026, 3, 29, 1, 30), (2026, 10, 25, 2, 30), (2026, 11, 18, 8, 49, 41, 123_456), (9999, 12, 31, 23, 59, 59, 999_999),
    )
]  # fmt: skip
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu")


@pytest.mark.parametrize(
    ("text", "time", "start"),
    [
        ("5h", "1970-01-02T00:00:00", "1970-01-01T20:00:00"),
        ("7m", "1970-01-01T00:20:00", "1970-01-01T00:14:00"),
        ("7m", "1969-12-31T23:59:00", "1969-12-31T23:53:00"),
        ("1d", "1969-12-31T23:59:59", "1969-12-31T00:00:00"),
        ("31d", "1970-02-01T00:00:00", "1970-02-01T00:00:00"),
        ("1w", "2026-11-18T00:00:00", "2026-11-15T00:00:00"),
        ("1w", "1970-01-03T00:00:00", "1969-12-28T00:00:00"),
        ("2w", "1970-01-17T23:00:00", "1970-01-04T00:00:00"),
        ("1M", "2024-02-29T23:00:00", "2024-02-01T00:00:00"),
        ("5M", "1970-06-30T00:00:00", "1970-06-01T00:00:00"),
        ("5M", "1969-12-31T00:00:00", "1969-08-01T00:00:00"),
        ("12M", "2026-12-31T00:00:00", "2026-01-01T00:00:00"),
    ],
)
def test_a_bucket_starts_where_the_rule_says(text: str, time: str, start: str) -> None:
    found = Granularity.parse(text).bucket(to_micros(datetime.fromisoformat(time + "+00:00")))
    assert from_micros(found).isoformat() == start + "+00:00"


@pytest.mark.parametrize(
    "text", ["0s", "61s", "61m", "25h", "32d", "5w", "13M", "1y", "h", "1.5h", "01h", "-1h", "1 h", "", "١h"]
)
def test_what_is_no_granularity_is_refused(text: str) -> None:
    with pytest.raises(InvalidSelection, match="1s to 60s"):
        Granularity.parse(text)


@given(
    st.sampled_from(WIDTHS),
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)),
    st.integers(1, 5 * 10**14),
)
def test_buckets_are_whole_neighbours_without_gaps(width: Granularity, time: datetime, length: int) -> None:
    micros = to_micros(time)
    start = width.bucket(micros)
    assert start <= micros < width.after(start)
    assert width.bucket(start) == start == width.bucket(width.after(start) - 1)
    assert width.bucket(width.after(start)) == width.after(start)
    if width.unit == "w":
        assert from_micros(start).weekday() == 6
    end = min(micros + length, micros + 500 * (width.width or 28 * buckets.DAY))
    starts = width.starts(micros, end)
    assert len(starts) == width.count(micros, end)
    assert starts[0] == start and starts[-1] < end <= width.after(starts[-1])
    assert [width.after(one) for one in starts[:-1]] == starts[1:]


def test_a_last_bucket_may_end_after_the_last_year() -> None:
    assert Granularity.parse("7M").after(to_micros(datetime(9999, 12, 1, tzinfo=UTC))) > to_micros(MOMENTS[-1])
    for year in (1, 1600, 1999, 2000, 2024, 9999):
        assert buckets._month_start(year * 12) == (date(year, 1, 1).toordinal() - 719_163) * buckets.DAY


@contextlib.contextmanager
def uncompiled(spark: SparkSession, **more: str) -> Iterator[None]:
    """Spark with other settings, and without compiling expressions that run once over a few rows."""
    settings = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false", **more}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            spark.conf.set(name, was or "")


def expected(width: Granularity) -> list[int]:
    return [width.bucket(to_micros(moment)) for moment in MOMENTS]


@pytest.mark.parametrize("zone", ZONES)
def test_postgres_keeps_the_rule(any_store: LogStore, zone: str) -> None:
    times = func.unnest(MOMENTS, type_=DateTime(timezone=True)).column_valued("moment")
    with any_store.database.connection() as connection:
        connection.execute(f"SET timezone = '{zone}'")
        for width in WIDTHS:
            text, values = render(select(extract("epoch", buckets.to_postgres(times, width)) * 1_000_000))
            found = [row[0] for row in connection.execute(text, values)]
            assert found == expected(width), str(width)


@pytest.mark.parametrize("zone", ZONES)
def test_duckdb_keeps_the_rule(zone: str) -> None:
    cursor = segments.engine()
    cursor.execute(f"SET SESSION TimeZone = '{zone}'")
    try:
        cursor.execute(
            "CREATE TEMP TABLE given AS SELECT make_timestamptz(unnest(?)) AS time", [[to_micros(m) for m in MOMENTS]]
        )
        for width in WIDTHS:
            found = [row[0] for row in cursor.execute(f"SELECT {buckets.to_duckdb(width)} FROM given").fetchall()]
            assert found == expected(width), str(width)
    finally:
        cursor.execute("SET SESSION TimeZone = 'UTC'")


@pytest.mark.spark
def test_spark_keeps_the_rule(spark: SparkSession) -> None:
    from pyspark.sql import functions as sf

    given_times = spark.createDataFrame([(to_micros(moment),) for moment in MOMENTS], "micros long").coalesce(1)
    with uncompiled(spark, **{"spark.sql.session.timeZone": ZONES[-1]}):
        timed = given_times.select(sf.expr("timestamp_micros(micros)").alias("time"))
        rows = timed.select(*(sf.expr(buckets.to_spark(width)) for width in WIDTHS)).collect()
    for at, width in enumerate(WIDTHS):
        assert sorted(row[at] for row in rows) == sorted(expected(width)), str(width)
