"""Stores that are filled once and measured many times; each under a server of its own that the run stops."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import logstore
from logstore import LogStore, partitions
from logstore.tables import PARENTS

END = datetime(2026, 11, 1, tzinfo=UTC)

_EVENTS = """
INSERT INTO events SELECT 'evt_' || n, 'tenant_' || n %% 20, '', %(end)s - n * %(step)s, 'topic_' || n %% 30, true,
    jsonb_build_object('order', n, 'amount', n %% 1000, 'note', repeat(md5(n::text), 12)), '{"region": "eu"}'
FROM generate_series(1, %(rows)s) n"""
_ATTEMPTS = """
INSERT INTO attempts SELECT 'att_' || n, 'evt_' || n, 'tenant_' || n %% 20, 'des_' || n %% 20 || '_' || n %% 3,
    'topic_' || n %% 30, CASE WHEN n %% 10 = 0 THEN 'failed' ELSE 'success' END, %(end)s - n * %(step)s, 1, false,
    CASE WHEN n %% 10 = 0 THEN '500' ELSE '200' END, '{"body": "ok"}', %(end)s - n * %(step)s, true,
    jsonb_build_object('order', n, 'amount', n %% 1000, 'note', repeat(md5(n::text), 12)), '{"region": "eu"}'
FROM generate_series(1, %(rows)s) n"""


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


def months_before(end: datetime, count: int) -> list[date]:
    last = end.year * 12 + end.month - 1
    return [date(number // 12, number % 12 + 1, 1) for number in range(last - count, last)]


def fill(store: LogStore, *, rows: int, months: int) -> None:
    """That many events and attempts, spread evenly over that many months before END."""
    firsts = months_before(END, months)
    partitions.ensure(store.database, {(parent, month) for parent in PARENTS for month in firsts})
    oldest = datetime.combine(firsts[0], datetime.min.time(), UTC)
    values = {"end": END, "step": (END - oldest) / (rows + 1), "rows": rows}
    with store.database.connection(autocommit=True) as connection:
        connection.execute(_EVENTS, values)
        connection.execute(_ATTEMPTS, values)
        connection.execute("VACUUM (ANALYZE) events, attempts")
