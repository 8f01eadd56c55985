"""A page on an indexed field of a topic, beside the same page without the index; and parsing a filter."""

from __future__ import annotations

from collections.abc import Iterator

from bench.data import empty_store, fill
from bench.measure import Comparison, Result, compare
from logstore import LogStore, Selection, fields, filters
from logstore.filters.parse import parse

_ROWS = {"small": 100_000, "full": 2_000_000}
_TOPIC = "topic_7"
_WHERE = 'status = "failed" and not (data.amount < 100 or metadata.region in ["eu", "us"])'


def run(size: str) -> Iterator[Result]:
    with empty_store() as store:
        fill(store, rows=_ROWS[size], months=3, parents=("events",))
        _add_field(store)
        indexed = Selection(topics=(_TOPIC,), where='data.indexed = "v7"')
        plain = Selection(topics=(_TOPIC,), where='data.plain = "v7"')
        fields.add_index(store.database, _TOPIC, "data", ("indexed",), actor="bench")
        with store.database.connection(autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE) events")
        assert store.list_event(indexed, limit=20).data == store.list_event(plain, limit=20).data
        yield compare(
            Comparison(
                name=f"20 of {_ROWS[size]:,} events by an indexed field",
                product=lambda: store.list_event(indexed, limit=20),
                rivals={"the same field without an index": lambda: store.list_event(plain, limit=20)},
                promises={"the same field without an index": 0.5},
                repeat=3,
            )
        )
    yield compare(
        Comparison(
            name="parsing a filter of three comparisons",
            product=lambda: parse.__wrapped__(_WHERE, "attempt"),
            rivals={"a millisecond": 0.001},
            promises={"a millisecond": 1.0},
            repeat=50,
        )
    )
    assert filters.parse(_WHERE, "attempt")


def _add_field(store: LogStore) -> None:
    """The same rare value under two names, of which one will be indexed."""
    with store.database.connection() as connection:
        connection.execute(
            "UPDATE events SET data = data || jsonb_build_object('indexed', 'v' || (data->>'order')::int / 30 % 500,"
            " 'plain', 'v' || (data->>'order')::int / 30 % 500)",
        )
