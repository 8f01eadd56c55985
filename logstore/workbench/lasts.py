"""When each destination was last reached, and last failed: the day from a roll-up, the moment from that day's records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from logstore import cold, deadline, partitions, segments
from logstore.records import Selection, from_micros, to_micros
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tiers import Map
from logstore.workbench.times import Window

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest attempt of a destination with one outcome."""

    tenant_id: str
    destination_id: str
    status: str
    time: datetime


def seen(store: LogStore, selection: Selection, window: Window) -> list[Seen]:
    """The newest success and the newest failure of each destination in a window, over both tiers.

    Two days are looked into, because the records of the newest may lie beyond the end of the window.
    """
    values = {
        "tenants": list(selection.tenant_ids) or None,
        "destinations": list(selection.destination_ids) or None,
        "topics": list(selection.topics) or None,
        "first": window.lower.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0),
        "lower": window.lower,
        "upper": window.upper,
    }

    def read(connection: psycopg.Connection[Any], known: Map) -> list[Seen]:
        found = []
        with deadline.limited(connection):
            rows = connection.execute(statements("postgres", "workbench")["last_attempts"], values).fetchall()
        for tenant, destination, status, days, time in rows:
            candidates = [time] if time else []
            for day in days:
                month = ("attempts", partitions.month_of(day))
                if known.states.get(month) in ("cold", "purged") and (not time or day + _DAY > time):
                    asked = (tenant, destination, status, max(day, window.lower), min(day + _DAY, window.upper))
                    candidates += _archived(store, known, month, selection.topics, asked)
                if candidates:
                    break
            if candidates:
                found.append(Seen(tenant, destination, status, max(candidates)))
        return found

    return store.tiers.steadily(read)


def _archived(
    store: LogStore, known: Map, month: Any, topics: tuple[str, ...], asked: tuple[Any, ...]
) -> list[datetime]:
    tenant, destination, status, lower, upper = asked
    found = []
    for segment in known.segments.get(month, ()):
        if segment.state != "sealed" or not segment.max_time or segment.max_time < lower:
            continue
        cursor = segments.engine()
        values = [str(segment.path(store.settings.archive)), tenant, destination, status]
        values += [to_micros(lower), to_micros(upper), list(topics), list(topics)]
        try:
            with deadline.interrupted(cursor):
                row = cursor.execute(statements("duckdb", "workbench")["last_attempt"], values).fetchone()
        except cold.UNREADABLE:
            continue  # the counts beside it say what cannot be read
        if row and row[0] is not None:
            found.append(from_micros(row[0]))
    return found
