"""A page through list_attempt, beside the same SQL sent by psycopg, the seed's OR-form, and OFFSET."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from bench.data import empty_store, fill
from bench.measure import Comparison, Result, compare
from logstore import LogStore, Selection, cursor
from logstore.cursor import Position
from logstore.queries import question

_SEED = """
SELECT id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, manual, code, response_data,
       event_time, eligible_for_retry, event_data, event_metadata
FROM attempts
WHERE (%(tenant)s = '' OR tenant_id = %(tenant)s)
  AND (%(topics)s::text[] IS NULL OR cardinality(%(topics)s::text[]) = 0 OR topic = ANY(%(topics)s::text[]))
  AND (time < %(time)s OR (time = %(time)s AND id < %(id)s))
ORDER BY time DESC, id DESC LIMIT 101"""
_OFFSET = """
SELECT id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, manual, code, response_data,
       event_time, eligible_for_retry, event_data, event_metadata
FROM attempts WHERE tenant_id = %(tenant)s ORDER BY time DESC, id DESC LIMIT 101 OFFSET %(offset)s"""


def run(size: str) -> Iterator[Result]:
    rows = 100_000 if size == "small" else 3_000_000
    for months in (3, 60):
        with empty_store() as store:
            fill(store, rows=rows, months=months)
            yield from _pages(store, months, rows)


def _pages(store: LogStore, months: int, rows: int) -> Iterator[Result]:
    tenant = "tenant_1"
    deep_row = rows // 20 * 9 // 10  # nine tenths down the tenant's list
    with store.database.connect(autocommit=True) as connection:
        here = connection.execute(
            "SELECT time, id FROM attempts WHERE tenant_id = %s ORDER BY time DESC, id DESC LIMIT 1 OFFSET %s",
            [tenant, deep_row],
        ).fetchone()
        assert here is not None
        deep = Position(*here)
        chosen: dict[str, tuple[Selection, Position | None]] = {
            "first page": (Selection(tenant_ids=(tenant,)), None),
            "deep page": (Selection(tenant_ids=(tenant,)), deep),
            "deep page, 1 topic": (Selection(tenant_ids=(tenant,), topics=("topic_1",)), deep),
            "deep page, 5 topics": (Selection(tenant_ids=(tenant,), topics=_topics(5)), deep),
            "deep page, 20 topics": (Selection(tenant_ids=(tenant,), topics=_topics(20)), deep),
        }
        for name, (selection, position) in chosen.items():
            rivals = _rivals(connection, selection, position, deep_row)
            yield compare(
                Comparison(
                    name=f"{name}, {months} months",
                    product=_product(store, selection, position),
                    rivals=rivals,
                    promises={"same SQL by psycopg": 1.5},
                    repeat=30,
                )
            )


def _topics(count: int) -> tuple[str, ...]:
    return tuple(f"topic_{n}" for n in range(count))


def _product(store: LogStore, selection: Selection, position: Position | None) -> Any:
    token = None if position is None else cursor.encode("attempt", position)
    return lambda: store.list_attempt(selection, limit=100, next=token)


def _rivals(
    connection: psycopg.Connection[Any], selection: Selection, position: Position | None, offset: int
) -> dict[str, Any]:
    asked = question("attempt", selection, position=position, ascending=False, limit=101)
    text, values = asked.sql()
    rivals: dict[str, Any] = {"same SQL by psycopg": lambda: connection.execute(text, values).fetchall()}
    if position is not None:
        seed = {"tenant": "tenant_1", "topics": list(selection.topics), "time": position.time, "id": position.id}
        rivals["the seed's OR-form"] = lambda: connection.execute(_SEED, seed).fetchall()
        if not selection.topics:
            skip = {"tenant": "tenant_1", "offset": offset + 1}
            rivals["OFFSET"] = lambda: connection.execute(_OFFSET, skip).fetchall()
    return rivals
