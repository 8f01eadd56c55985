"""Metrics of a Spark data frame: the groups are counted by Spark, everything after that is logstore.metrics."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from logstore.cursor import Kind
from logstore.metrics import Groups, Metrics, Question, buckets
from logstore.metrics.measures import LATENCIES, PARTS
from logstore.metrics.question import ROWS_MOST
from logstore.records import to_micros

_LATENCIES = "collect_list(unix_micros(time) - unix_micros(event_time))"


def measure(
    frame: DataFrame,
    kind: Kind,
    start: datetime,
    end: datetime,
    *,
    measures: Iterable[str] = ("count",),
    dimensions: Iterable[str] = (),
    granularity: str | None = None,
) -> Metrics:
    """Measures of the records in a frame, which has the table's columns; what is not meant is filtered out before."""
    began = time.perf_counter()
    asked = Question.of(kind, start, end, measures=measures, dimensions=dimensions, granularity=granularity)
    groups = Groups(asked)
    groups.add(tuple(row) for row in grouped(frame, asked).limit(ROWS_MOST + 1).collect())
    return groups.finish(source="spark", seconds=time.perf_counter() - began)


def grouped(frame: DataFrame, asked: Question) -> DataFrame:
    """Bucket, dimensions and parts of the records inside the range."""
    bucket = "cast(NULL AS bigint)" if asked.granularity is None else buckets.to_spark(asked.granularity)
    parts = [sf.expr(_LATENCIES if part == LATENCIES else PARTS[part]).alias(f"part_{part}") for part in asked.parts]
    inside = f"unix_micros(time) >= {to_micros(asked.start)} AND unix_micros(time) < {to_micros(asked.end)}"
    keys = [sf.expr(bucket).alias("bucket"), *(sf.col(name) for name in asked.dimensions)]
    return frame.where(inside).groupBy(*keys).agg(*parts)
