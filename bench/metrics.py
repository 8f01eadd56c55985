"""90 days of attempts by hour and status: the roll-up, beside the scan of PostgreSQL's partitions that it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from psycopg import sql

from bench.data import _ATTEMPTS as ATTEMPTS
from bench.data import END, empty_store, months_before
from bench.measure import Comparison, Result, compare
from logstore import LogStore, metrics, partitions
from logstore.metrics import Question
from logstore.metrics.scan import hot_sql, scan

# The promise is about millions of attempts. Fewer would hardly be more than the hours and tenants that they fall into.
_ROWS = {"small": 1_000_000, "full": 3_000_000}
_START = END - timedelta(days=90)
_ASKED: dict[str, Any] = {
    "measures": ("count", "failed_count", "error_rate"),
    "dimensions": ("status",),
    "granularity": "1h",
}
_INDEXES = """
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'attempts'::regclass AND NOT i.indisprimary"""


def run(size: str) -> Iterator[Result]:
    with empty_store() as store:
        _fill(store, _ROWS[size])
        yield _compare(store, f"90 days by hour and status, {_ROWS[size]:,} attempts", promised=True)
        one = _ASKED | {"dimensions": ("tenant_id", "status"), "granularity": "1d"}
        yield _compare(store, "90 days by day, tenant and status", one)


def _fill(store: LogStore, rows: int) -> None:
    """Attempts over three months; indexes are made afterwards, because that is quicker and gives the same."""
    firsts = months_before(END, 3)
    partitions.ensure(store.database, {("attempts", month) for month in firsts})
    oldest, _ = partitions.month_bounds(firsts[0])
    with store.database.connection(autocommit=True) as connection:
        indexes = connection.execute(_INDEXES).fetchall()
        for name, _ in indexes:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        connection.execute(ATTEMPTS, {"end": END, "step": (END - oldest) / (rows + 1), "rows": rows})
        for _, definition in indexes:
            connection.execute(definition)
        metrics.fold(store)
        connection.execute("VACUUM (ANALYZE) attempts, attempts_hourly, attempts_daily, attempts_deltas")


def _compare(store: LogStore, name: str, asked: dict[str, Any] = _ASKED, *, promised: bool = False) -> Result:
    question = Question.of("attempt", _START, END, **asked)
    assert store.attempt_metrics(_START, END, **asked).source == "roll-up"
    assert (
        store.attempt_metrics(_START, END, **asked).rows
        == scan(store.tiers, question).finish(source="", seconds=0).rows
    )
    with store.database.connect(autocommit=True) as connection:
        text, values = hot_sql(question)
        scanned = "the scan of the partitions, by psycopg"
        return compare(
            Comparison(
                name=name,
                product=lambda: store.attempt_metrics(_START, END, **asked),
                rivals={scanned: lambda: connection.execute(text, values).fetchall()},
                promises={scanned: 1 / 20} if promised else {},
            )
        )
