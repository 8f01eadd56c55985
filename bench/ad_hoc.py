"""The named questions on the archive, beside the same SQL on the same rows in PostgreSQL's partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg

from bench import data
from bench.data import END, empty_store, months_before
from bench.measure import Comparison, Result, compare
from logstore import LogStore, analysis, archive, partitions
from logstore.analysis import Question
from logstore.tables import PARENTS

_RIVAL = "same SQL in PostgreSQL"
_MONTHS = 6
# What DuckDB's text becomes where PostgreSQL has its own, quicker way to say it.
_IDIOMS = (
    (r"make_date\(\(\(epoch_us\(time\) \+ \d+\) // 86400000000\)::int - 719162\)", "time::date"),
    (
        r"epoch_us\(time\) - \(.+ % width AS micros",
        "date_bin(make_interval(mins => $minutes), time, 'epoch') AS micros",
    ),
    (r", \(SELECT .+\) AS asked", ""),
    (r"make_timestamptz\(micros\)", "micros"),
    (r"epoch_us\((\w+)\) - epoch_us\((\w+)\)", r"extract(epoch FROM \1 - \2)::double precision * 1e6"),
    (r"quantile_cont\((\w+), \[([^]]+)\]\)", r"percentile_cont(ARRAY[\2]) WITHIN GROUP (ORDER BY \1)"),
    (r"strlen\(data\)", "octet_length(data::text)"),
    (r"\$(\w+)", r"%(\1)s"),
)
# Ids as random as real ones. One event in a hundred is never attempted; one delivery in ten fails at first and is tried up
# to four times; attempts follow within seconds, retries within minutes.
_EVENTS = """
INSERT INTO events SELECT 'evt_' || left(md5(n::text), 22), 'tenant_' || n %% 20, '', %(end)s - n * %(step)s,
    'topic_' || n %% 30, n %% 7 > 0, jsonb_build_object('order', n, 'amount', n %% 1000, 'note', repeat(md5(n::text), 12)),
    '{"region": "eu"}'
FROM generate_series(1, %(rows)s) n"""
_ATTEMPTS = """
INSERT INTO attempts SELECT 'att_' || left(md5(id || k), 22), id, tenant_id, 'des_' || order_number %% 60, topic,
    CASE WHEN k < tries OR tries = 4 THEN 'failed' ELSE 'success' END,
    time + make_interval(secs => (hashtext(id) & 65535) / 20000.0 + 40 * (k - 1)), k, false,
    CASE WHEN k = tries AND tries < 4 THEN '200' WHEN order_number %% 4 = 0 THEN '503' ELSE '500' END, '{"body": "ok"}',
    time, eligible_for_retry, data, metadata
FROM events CROSS JOIN LATERAL (SELECT (data->>'order')::int AS order_number) o
CROSS JOIN LATERAL (SELECT CASE WHEN order_number %% 100 = 7 THEN 0 WHEN order_number %% 10 = 0
                           THEN 2 + (order_number / 10) %% 3 ELSE 1 END AS tries) t
CROSS JOIN LATERAL generate_series(1, tries) k
WHERE time < %(end)s"""


def run(size: str) -> Iterator[Result]:
    rows = 400_000 if size == "small" else 3_000_000
    with empty_store() as store:
        _fill(store, rows)
        # A connection as people have it: PostgreSQL's own planning, not the one we set for pages.
        with psycopg.connect(store.database.conninfo, autocommit=True) as connection:
            connection.execute("SET TIME ZONE 'UTC'")
            results = []
            for question in analysis.questions().values():
                results.append(_compare(store, connection, question, rows, rounds=3 if size == "small" else 2))
                yield results[-1]
    yield _median(results, promised=0.2 if size == "small" else 0.1)


def _fill(store: LogStore, rows: int) -> None:
    """That many events with their attempts, in PostgreSQL and in the archive."""
    months = months_before(END, _MONTHS)
    partitions.ensure(store.database, {(parent, month) for parent in PARENTS for month in months})
    whole = END - datetime.combine(months[0], datetime.min.time(), UTC) - timedelta(days=1)
    values = {"end": END - timedelta(hours=1), "step": whole / rows, "rows": rows}
    data.write(store, [("events", _EVENTS, values), ("attempts", _ATTEMPTS, values)])
    for parent in PARENTS:
        for month in months:
            name = partitions.partition_name(parent, month)
            archive.export(store, name)
            archive.flip(store, name)  # the table stays where it is, and PostgreSQL is asked for it by its own SQL


def _compare(
    store: LogStore, connection: psycopg.Connection[object], question: Question, rows: int, rounds: int
) -> Result:
    ask, rival = _ways(store, connection, question)
    assert len(ask()) == len(rival()), f"{question.name} gives other rows in PostgreSQL"  # type: ignore[arg-type]
    return compare(
        Comparison(
            name=f"{question.name}, {rows} rows",
            product=ask,
            rivals={_RIVAL: rival},
            promises={_RIVAL: 1.0},
            rounds=rounds,
        )
    )


def _ways(
    store: LogStore, connection: psycopg.Connection[object], question: Question
) -> tuple[Callable[[], object], Callable[[], object]]:
    text = question.sql
    for pattern, replacement in _IDIOMS:
        text = re.sub(pattern, replacement, text)
    values = question.bind({})
    return (lambda: analysis.ask(store, question.name)), (lambda: connection.execute(text, values).fetchall())


def _median(results: list[Result], *, promised: float) -> Result:
    """The question in the middle, of which more is promised, and most on a log so large that starting costs nothing."""
    middle = sorted(results, key=lambda result: result.ratio(_RIVAL))[len(results) // 2]
    return replace(middle, name=f"the median question ({middle.name})", promises={_RIVAL: promised})
