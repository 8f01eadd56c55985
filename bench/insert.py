"""insert_many of 1 000 attempts, beside the bare unnest statement, executemany, and SQLAlchemy's ORM in bulk."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
from sqlalchemy import create_engine, insert
from sqlalchemy.orm import DeclarativeBase, Session

from bench.data import END, empty_store
from bench.measure import Comparison, Result, compare
from logstore import Attempt, LogStore
from logstore.statements import statements
from logstore.tables import attempts

_BATCH = 1000
_COLUMNS = ", ".join(Attempt.columns)
_ONE = f"INSERT INTO attempts ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(Attempt.columns))}) ON CONFLICT DO NOTHING"
_numbers = itertools.count()


class _Base(DeclarativeBase):
    pass


class _Row(_Base):
    __table__ = attempts


def run(size: str) -> Iterator[Result]:
    with empty_store() as store, store.database.connect() as connection:
        batches = (_batch(next(_numbers)) for _ in itertools.count())
        store.insert_many(attempts=next(batches))
        yield compare(
            Comparison(
                name="insert_many, 1 000 new attempts",
                product=_product(store, batches),
                rivals={
                    "bare unnest by psycopg": _bare(connection, batches),
                    "executemany": _many(connection, batches),
                    "SQLAlchemy ORM, in bulk": _orm(store, batches),
                },
                promises={"bare unnest by psycopg": 1 / 0.7},
                rounds=5 if size == "small" else 20,
                repeat=10,
            )
        )


def _batch(number: int) -> list[Attempt]:
    start = END - timedelta(days=20) + timedelta(seconds=number)
    data = {"order": number, "amount": 12.5, "note": "n" * 400}
    return [
        Attempt(
            id=f"att_{number}_{n}", event_id=f"evt_{number}_{n}", tenant_id=f"tenant_{n % 20}",
            destination_id=f"des_{n % 20}", topic=f"topic_{n % 30}", status="success", attempt_number=1,
            time=start + timedelta(microseconds=n), event_time=start, event_data=data, response_data={"body": "ok"},
            code="200",
        )
        for n in range(_BATCH)
    ]  # fmt: skip


def _product(store: LogStore, batches: Iterator[list[Attempt]]) -> Any:
    return lambda: store.insert_many(attempts=next(batches))


def _bare(connection: psycopg.Connection[Any], batches: Iterator[list[Attempt]]) -> Any:
    """What somebody would write by hand: the arrays straight from the records, the seed's one statement."""
    text = statements("postgres", "store")["insert_attempts"].replace("RETURNING time, id", "")

    def send() -> None:
        rows = [_row(attempt) for attempt in next(batches)]
        connection.execute(text, [list(column) for column in zip(*rows, strict=True)])
        connection.commit()

    return send


def _many(connection: psycopg.Connection[Any], batches: Iterator[list[Attempt]]) -> Any:
    def send() -> None:
        with connection.cursor() as cursor:
            cursor.executemany(_ONE, [_row(attempt) for attempt in next(batches)])
        connection.commit()

    return send


def _orm(store: LogStore, batches: Iterator[list[Attempt]]) -> Any:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(store.database.conninfo))

    def send() -> None:
        with Session(engine) as session, session.begin():
            session.execute(insert(_Row), [{n: getattr(a, n) for n in Attempt.columns} for a in next(batches)])

    return send


def _row(attempt: Attempt) -> list[Any]:
    values = [getattr(attempt, name) for name in Attempt.columns]
    return [json.dumps(value) if isinstance(value, dict) else value for value in values]
