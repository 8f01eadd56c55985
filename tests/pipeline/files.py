"""Files for loads, and what a loaded log looks like as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg

import logstore

START = datetime(2026, 1, 31, tzinfo=UTC)

# Every column of every row, order-free: md5 of the row's text, summed in two lanes.
_CHECKSUM = """
SELECT count(*), coalesce(sum(('x0' || substr(h, 1, 15))::bit(64)::bigint), 0)::text,
       coalesce(sum(('x0' || substr(h, 16, 15))::bit(64)::bigint), 0)::text
FROM (SELECT md5(t::text) AS h FROM {} AS t) AS hashed
"""


def contents(store: logstore.LogStore) -> dict[str, Any]:
    """What the log holds: a checksum of all columns of all rows, and the names."""
    with store.database.connection() as connection:
        found: dict[str, Any] = {
            table: connection.execute(_CHECKSUM.format(table)).fetchone() for table in ("events", "attempts")
        }
        for table, columns in (
            ("tenants", "tenant_id"),
            ("destinations", "tenant_id, destination_id"),
            ("topics", "name"),
        ):
            found[table] = sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall())
    return found


def staging(connection: psycopg.Connection[Any]) -> list[str]:
    """What a load has left behind; nothing, when all is well."""
    tables = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^load_\\d'").fetchall()
    rows = [
        name
        for name in ("load_splits", "load_letters", "load_progress")
        if connection.execute(f"SELECT EXISTS (SELECT FROM {name})").fetchone() == (True,)
    ]
    return [name for (name,) in tables] + rows


def left_behind(store: logstore.LogStore) -> list[str]:
    with store.database.connection() as connection:
        return staging(connection)


def event(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"evt_{number:06d}",
        "tenant_id": f"tenant_{number % 7}",
        "time": (START + timedelta(minutes=17 * number, microseconds=number)).isoformat(),
        "topic": ("order.created", "order.paid", "user.updated")[number % 3],
        "data": {"n": number, "amount": number / 4, "text": "naïve “quotes” \\ / 日本"},
        "metadata": {"region": "eu" if number % 2 else "us"},
        **fields,
    }


def attempt(number: int = 1, **fields: Any) -> dict[str, Any]:
    inside = event(number)
    return {
        "id": f"att_{number:06d}",
        "event_id": inside["id"],
        "tenant_id": inside["tenant_id"],
        "destination_id": f"des_{number % 5}",
        "topic": inside["topic"],
        "status": "failed" if number % 4 == 0 else "success",
        "time": (START + timedelta(minutes=17 * number, seconds=3)).isoformat(),
        "attempt_number": 1 + number % 3,
        "manual": number % 11 == 0,
        "code": "500" if number % 4 == 0 else "200",
        "response_data": {"status": 200, "body": '{"ok": true}'} if number % 3 else None,
        "event_time": inside["time"],
        "eligible_for_retry": number % 2 == 0,
        "event_data": inside["data"],
        "event_metadata": inside["metadata"],
        **fields,
    }


def mixed(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Events and attempts over several months, shuffled."""
    rows = [event(n) for n in range(count // 2)] + [attempt(n) for n in range(count - count // 2)]
    Random(seed).shuffle(rows)
    return rows


def write(path: Path, rows: Iterable[dict[str, Any] | str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)
    )
    return path
