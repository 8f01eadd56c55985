"""A plan over 500 partitions, beside asking for each partition by itself and beside the second that is promised."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from bench.data import END, empty_store, months_before
from bench.measure import Comparison, Result, compare
from logstore import LogStore, maintenance, partitions
from logstore.tables import PARENTS

_PARTITIONS = {"small": 500, "full": 1000}


def run(size: str) -> Iterator[Result]:
    count = _PARTITIONS[size]
    with empty_store() as store:
        months = months_before(END, count // len(PARENTS))
        partitions.ensure(store.database, {(parent, month) for parent in PARENTS for month in months})
        now = END + timedelta(days=17)
        steps = len(maintenance.plan(store, now=now))
        yield compare(
            Comparison(
                name=f"a plan over {count} partitions ({steps:,} steps)",
                product=lambda: maintenance.plan(store, now=now),
                rivals={"a query for each partition": lambda: _one_by_one(store), "one second": 1.0},
                promises={"one second": 1.0},
                rounds=3,
            )
        )


def _one_by_one(store: LogStore) -> None:
    """The usual script: list the partitions, then ask the size and the rows of each."""
    with store.database.connection(autocommit=True) as connection:
        names = connection.execute("SELECT inhrelid::regclass::text FROM pg_inherits").fetchall()
        for (name,) in names:
            connection.execute("SELECT pg_total_relation_size(%s::regclass)", [name]).fetchone()
            connection.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [name]).fetchone()
