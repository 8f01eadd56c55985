"""90 days of attempts by hour and status: the roll-up, beside the scan of PostgreSQL's partitions that it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from bench import data
from bench.data import END
from bench.measure import Comparison, Result, compare
from logstore import LogStore
from logstore.metrics import Question
from logstore.metrics.scan import hot_sql, scan

# The promise is about the large log. A small one is scanned in a moment, and its answer has as many rows.
ROWS = {"small": 1_000_000, "full": 3_000_000}
MONTHS = 3
START = END - timedelta(days=90)
ASKED: dict[str, Any] = {
    "measures": ("count", "failed_count", "error_rate"),
    "dimensions": ("status",),
    "granularity": "1h",
}


def run(size: str) -> Iterator[Result]:
    store = data.log(ROWS[size], MONTHS)
    yield _compare(store, f"90 days by hour and status, {ROWS[size]:,} attempts", promised=size == "full")
    one = ASKED | {"dimensions": ("tenant_id", "status"), "granularity": "1d"}
    yield _compare(store, "90 days by day, tenant and status", one)


def _compare(store: LogStore, name: str, asked: dict[str, Any] = ASKED, *, promised: bool = False) -> Result:
    question = Question.of("attempt", START, END, **asked)
    assert store.attempt_metrics(START, END, **asked).source == "roll-up"
    assert (
        store.attempt_metrics(START, END, **asked).rows == scan(store.tiers, question).finish(source="", seconds=0).rows
    )
    with store.database.connect(autocommit=True) as connection:
        text, values = hot_sql(question)
        scanned = "the scan of the partitions, by psycopg"
        return compare(
            Comparison(
                name=name,
                product=lambda: store.attempt_metrics(START, END, **asked),
                rivals={scanned: lambda: connection.execute(text, values).fetchall()},
                promises={scanned: 1 / 20} if promised else {},
            )
        )
