"""A record by its id through retrieve_*, beside the bare SQL; months are not named, so every one is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random

from bench import data, paging
from bench.measure import Comparison, Result, compare
from logstore import LogStore
from logstore.cursor import Kind
from logstore.statements import statements

_BARE = "the bare SQL by psycopg"


def run(size: str) -> Iterator[Result]:
    for months in paging.MONTHS:
        store = data.log(paging.ROWS[size], months)
        yield _compare(store, "event", store.retrieve_event, months)
        yield _compare(store, "attempt", store.retrieve_attempt, months)


def _compare(store: LogStore, kind: Kind, retrieve: Callable[[str], object], months: int) -> Result:
    numbers = Random(7).sample(range(1, 100_000), 200)
    ids = [f"{'evt' if kind == 'event' else 'att'}_{number}" for number in numbers]
    asked, sent = cycle(ids), cycle(ids)
    text = statements("postgres", "store")[f"find_{kind}"]
    with store.database.connect(autocommit=True) as connection:
        assert retrieve(ids[0]) is not None
        return compare(
            Comparison(
                name=f"retrieve_{kind}, {months} months",
                product=lambda: retrieve(next(asked)),
                rivals={_BARE: lambda: connection.execute(text, {"id": next(sent)}).fetchall()},
                promises={_BARE: 2.5},  # it also asks whether a month has moved meanwhile
                repeat=200,
                rounds=9,
            )
        )
