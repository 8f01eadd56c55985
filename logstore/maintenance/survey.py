"""What maintenance looks at: months, their tables and segments, policies; a fixed number of queries, however many months."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from logstore import archive, partitions
from logstore.partitions import Partition
from logstore.postgres import Database
from logstore.retention import Month, Policy
from logstore.statements import statements
from logstore.store import LogStore


@dataclass(frozen=True, kw_only=True, slots=True)
class Expired:
    """Retired segments whose grace is over."""

    segments: int
    rows: int
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """The log at one moment, as far as maintenance is concerned."""

    months: tuple[Month, ...]  # oldest first
    policies: tuple[Policy, ...]
    expired: Expired
    unfolded: tuple[int, int] = (0, 0)  # differences that the roll-ups lack, about; rows and bytes

    def catalogue(self) -> list[Any]:
        """What a plan rests on: if any of this changes, it must be made anew."""
        months = [
            (m.name, m.state, m.exists, m.attached, m.pending, m.segments, m.quarantined, m.lower, m.upper)
            for m in self.months
        ]
        return [months, [list(asdict(policy).values()) for policy in self.policies]]


def look(database: Database, *, now: datetime) -> Survey:
    """Seven queries, and the sizes of tables."""
    tables = {(p.parent, p.month): p for p in partitions.inventory(database)}
    known = statements("postgres", "maintenance")
    with database.connection(autocommit=True) as connection:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(known["survey"]).fetchall()
        policies = _policies(connection)
        values = {"now": now, "grace": archive.GRACE_SECONDS}
        count, expired_rows, expired_bytes = connection.execute(known["expired"], values).fetchone() or (0, 0, 0)
        unfolded = connection.execute(known["unfolded"]).fetchone() or (0, 0)
    months = [_month(row, tables.pop((row["parent"], row["month"]), None)) for row in rows]
    months += [_unmapped(table) for table in tables.values()]
    return Survey(
        months=tuple(sorted(months, key=lambda month: (month.lower, month.parent))),
        policies=tuple(policies),
        expired=Expired(segments=count, rows=expired_rows, bytes=expired_bytes),
        unfolded=(unfolded[0], unfolded[1]),
    )


def policies(store: LogStore) -> list[Policy]:
    """How much each tier keeps of each table."""
    with store.database.connection(autocommit=True) as connection:
        return _policies(connection)


def set_policy(store: LogStore, policy: Policy) -> None:
    """Change what a tier keeps; the next plan follows it."""
    with store.database.connection() as connection:
        connection.execute(statements("postgres", "maintenance")["set_policy"], asdict(policy))


def _policies(connection: psycopg.Connection[Any]) -> list[Policy]:
    with connection.cursor(row_factory=class_row(Policy)) as cursor:
        return cursor.execute(statements("postgres", "maintenance")["policies"]).fetchall()


def _month(row: dict[str, Any], table: Partition | None) -> Month:
    lower, upper = (table.lower, table.upper) if table else partitions.month_bounds(row["month"])
    return Month(
        parent=row["parent"],
        name=table.name if table else partitions.partition_name(row["parent"], row["month"]),
        lower=lower,
        upper=upper,
        state=row["state"],
        exists=table is not None,
        attached=table is not None and table.attached,
        pending=table is not None and table.pending,
        ours=table is None or _is_ours(table),
        changed=row["changed"],
        rows=table.rows if table else 0,
        bytes=table.bytes if table else 0,
        segments=row["segments"],
        cold_rows=row["rows"],
        cold_bytes=row["bytes"],
        quarantined=row["quarantined"],
    )


def _unmapped(table: Partition) -> Month:
    """A partition that somebody attached by hand; it is served, so it counts."""
    return Month(
        parent=table.parent,
        name=table.name,
        lower=table.lower,
        upper=table.upper,
        state=table.state,
        attached=table.attached,
        pending=table.pending,
        ours=False,
        rows=table.rows,
        bytes=table.bytes,
    )


def _is_ours(table: Partition) -> bool:
    named = table.name == partitions.partition_name(table.parent, table.month)
    return named and (table.lower, table.upper) == partitions.month_bounds(table.month)
