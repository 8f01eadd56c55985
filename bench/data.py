"""Logs that are filled once and measured many times; each under a server of its own that the run stops."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

from psycopg import sql

import logstore
from logstore import LogStore, metrics, partitions
from logstore.tables import PARENTS

END = datetime(2026, 11, 1, tzinfo=UTC)
TENANTS, TOPICS = 20, 30  # every tenant has every topic
SMALL_TENANT = "tenant_small"  # with one record in 400, which only an index finds quickly

_TENANT = f"CASE WHEN n %% 400 = 0 THEN '{SMALL_TENANT}' ELSE 'tenant_' || n %% 20 END"
_ROWS = {
    "events": f"""
INSERT INTO events SELECT 'evt_' || n, t.id, '', %(end)s - n * %(step)s, 'topic_' || n / 20 %% 30, true,
    jsonb_build_object('order', n, 'amount', n %% 1000, 'note', repeat(md5(n::text), 12)), '{{"region": "eu"}}'
FROM generate_series(1, %(rows)s) n, LATERAL (SELECT {_TENANT} AS id) t""",
    "attempts": f"""
INSERT INTO attempts SELECT 'att_' || n, 'evt_' || n, t.id, 'des_' || n %% 20 || '_' || n / 20 %% 3,
    'topic_' || n / 20 %% 30, CASE WHEN n %% 10 = 0 THEN 'failed' ELSE 'success' END, %(end)s - n * %(step)s, 1, false,
    CASE WHEN n %% 10 = 0 THEN '500' ELSE '200' END, '{{"body": "ok"}}', %(end)s - n * %(step)s, true,
    jsonb_build_object('order', n, 'amount', n %% 1000, 'note', repeat(md5(n::text), 12)), '{{"region": "eu"}}'
FROM generate_series(1, %(rows)s) n, LATERAL (SELECT {_TENANT} AS id) t""",
}
# The definition of a partitioned index says ON ONLY; without it the months get theirs again.
_INDEXES = """
SELECT c.relname, replace(pg_get_indexdef(c.oid), ' ON ONLY ', ' ON ')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = %s::regclass AND NOT i.indisprimary"""

_kept = contextlib.ExitStack()


@contextlib.contextmanager
def empty_store() -> Iterator[LogStore]:
    """A store under a new embedded server, gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="lsb-"))
    home.chmod(0o755)
    try:
        with logstore.open(home=home) as store:
            yield store
    finally:
        shutil.rmtree(home, ignore_errors=True)


def kept_store() -> LogStore:
    """An empty store that lives until `close`."""
    return _kept.enter_context(empty_store())


@cache
def log(rows: int, months: int) -> LogStore:
    """A log of that many events and attempts, made at the first call and shared by all cases, which leave it as it is."""
    store = kept_store()
    fill(store, rows=rows, months=months)
    return store


def close() -> None:
    """Stop every server of this run and remove its data."""
    log.cache_clear()
    _kept.close()


def months_before(end: datetime, count: int) -> list[date]:
    last = end.year * 12 + end.month - 1
    return [date(number // 12, number % 12 + 1, 1) for number in range(last - count, last)]


def fill(store: LogStore, *, rows: int, months: int, parents: Iterable[str] = PARENTS) -> None:
    """That many records, spread evenly over that many months before END."""
    firsts = months_before(END, months)
    partitions.ensure(store.database, {(parent, month) for parent in parents for month in firsts})
    oldest, _ = partitions.month_bounds(firsts[0])
    values = {"end": END, "step": (END - oldest) / (rows + 1), "rows": rows}
    write(store, [(parent, _ROWS[parent], values) for parent in parents])


def write(store: LogStore, inserts: Iterable[tuple[str, str, dict[str, object]]]) -> None:
    """Run these INSERTs; indexes are made afterwards, because that is quicker and gives the same."""
    with store.database.connection(autocommit=True) as connection:
        for parent, text, values in inserts:
            indexes = connection.execute(_INDEXES, [parent]).fetchall()
            for name, _ in indexes:
                connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
            connection.execute(text, values)
            for _, definition in indexes:
                connection.execute(definition)
        metrics.fold(store)
        connection.execute("VACUUM (ANALYZE)")
