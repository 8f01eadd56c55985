"""Promises made worse on purpose, to show that a run sees it: `python -m bench --sabotage index|cursor|insert`.

By hand and not in the tests, because what is seen is a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Text, and_, bindparam, or_

from bench import data
from logstore import LogStore, inserts, queries
from logstore.inserts import Batch
from logstore.queries import Shape


@contextlib.contextmanager
def without_index() -> Iterator[None]:
    """The index by tenant and time is missing."""
    fill = data.fill

    def and_drop(store: LogStore, **how: Any) -> None:
        fill(store, **how)
        with store.database.connection(autocommit=True) as connection:
            connection.execute("DROP INDEX idx_attempts_tenant_time")

    with patch.object(data, "fill", and_drop):
        yield


@contextlib.contextmanager
def or_form_cursor() -> Iterator[None]:
    """Pages ask `time < t OR (time = t AND id < i)`, as the seed did."""
    predicates = queries.predicates

    def seed(table: Any, shape: Shape) -> Any:
        found = predicates(table, shape)
        if not shape.cursor or shape.ascending:
            return found
        time, id_ = queries._moment("at_time"), bindparam("at_id", type_=Text)
        return [*found[:-2], or_(table.c.time < time, and_(table.c.time == time, table.c.id < id_))]

    with patch.object(queries, "predicates", seed):
        queries.page_sql.cache_clear()
        yield
    queries.page_sql.cache_clear()


@contextlib.contextmanager
def row_at_a_time() -> Iterator[None]:
    """insert_many sends a statement for each record."""
    write = Batch.write

    def slowly(batch: Batch, connection: Any) -> Any:
        for attempt in batch.attempts:
            alone = Batch(events=[], attempts=[attempt], events_given=0, attempts_given=1)
            report = write(alone, connection)
        return report

    with patch.object(inserts.Batch, "write", slowly):
        yield


WAYS: dict[str, tuple[str, Callable[[], AbstractContextManager[None]]]] = {
    "index": ("paging", without_index),
    "cursor": ("paging", or_form_cursor),
    "insert": ("insert", row_at_a_time),
}
