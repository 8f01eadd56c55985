"""A time limit for what may read everything: statements of PostgreSQL and DuckDB that run inside it end with it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
from psycopg.pq import TransactionStatus

from logstore.errors import TooBroad


class _Limit(threading.local):
    """The limit of this thread; nothing limits a thread that asked for none."""

    seconds: float = 0.0
    ends: float | None = None


_limit = _Limit()
_AGAIN = 0.05  # seconds; an interrupt that comes between two statements is lost, so it comes again


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Whatever is read in this block and thread, through `limited` and `interrupted`, ends after so many seconds."""
    before = (_limit.seconds, _limit.ends)
    _limit.seconds, _limit.ends = seconds, time.monotonic() + seconds
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise too_broad() from error
    finally:
        _limit.seconds, _limit.ends = before


def left() -> float | None:
    """The seconds that are left; None without a limit, TooBroad when they are over."""
    if _limit.ends is None:
        return None
    seconds = _limit.ends - time.monotonic()
    if seconds <= 0:
        raise too_broad()
    return seconds


@contextlib.contextmanager
def limited(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let PostgreSQL itself cancel a statement: it cannot hit the next user of the connection."""
    seconds = left()
    if seconds is None:
        yield
        return
    connection.execute("SELECT set_config('statement_timeout', %s, false)", [f"{max(1, int(seconds * 1000))}ms"])
    try:
        yield
    finally:
        # A transaction that failed takes the setting back itself; a connection that broke has none.
        if connection.info.transaction_status in (TransactionStatus.IDLE, TransactionStatus.INTRANS):
            connection.execute("RESET statement_timeout")


@contextlib.contextmanager
def interrupted(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """DuckDB knows no statement timeout, so a thread interrupts its cursor."""
    seconds = left()
    if seconds is None:
        yield
        return
    done = threading.Event()
    threading.Thread(target=_interrupt, args=(cursor, seconds, done), daemon=True).start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise too_broad() from error
    finally:
        done.set()


def _interrupt(cursor: duckdb.DuckDBPyConnection, seconds: float, done: threading.Event) -> None:
    while not done.wait(seconds):
        cursor.interrupt()
        seconds = _AGAIN


def too_broad() -> TooBroad:
    """What to raise for a question that was stopped, whoever set its limit."""
    limit = f"within {_limit.seconds:g} s" if _limit.seconds else "in the time that PostgreSQL allows"
    return TooBroad(f"Too broad to answer {limit}: narrow the time or choose a tenant.")
