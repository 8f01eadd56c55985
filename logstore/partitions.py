"""Months of the log: which exist, in which state, and how one is made, closed and reopened.

A month of a table is open → closed → cold → purged. The table `months` is the map of states; its epoch changes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from logstore import ddl
from logstore.errors import PartitionError
from logstore.postgres import Database
from logstore.statements import statements
from logstore.tables import PARENTS

_BOUNDS = re.compile(r"FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)")
_LOCK_TIMEOUT = "5s"

Month = tuple[str, date]  # (parent, first day)


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """One month of one table, as the catalogue and the map describe it."""

    parent: str
    name: str
    lower: datetime
    upper: datetime
    state: str
    attached: bool = True
    pending: bool = False  # a concurrent detach that was interrupted
    rows: int = 0  # the planner's estimate
    bytes: int = 0

    @property
    def month(self) -> date:
        return self.lower.date()


@dataclass(frozen=True, kw_only=True, slots=True)
class MonthMap:
    """The states of all months at one epoch."""

    epoch: int
    states: dict[Month, str]


def month_of(time: datetime) -> date:
    """The first day of the UTC month that a time falls into."""
    time = time.astimezone(UTC)
    return date(time.year, time.month, 1)


def month_bounds(month: date) -> tuple[datetime, datetime]:
    """Lower (inclusive) and upper (exclusive) bound of a month."""
    lower = datetime(month.year, month.month, 1, tzinfo=UTC)
    return lower, datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)


def partition_name(parent: str, month: date) -> str:
    return f"{parent}_{month:%Y_%m}"


def parse_name(name: str) -> Month:
    """The month that a person means by `attempts_2026_08`."""
    match = re.fullmatch(rf"({'|'.join(PARENTS)})_(\d{{4}})_(\d{{2}})", name)
    if match is None or not 1 <= int(match.group(3)) <= 12 or match.group(2) == "0000":
        raise PartitionError(f"{name!r} names no partition; write it like attempts_2026_08")
    return match.group(1), date(int(match.group(2)), int(match.group(3)), 1)


def inventory(database: Database) -> list[Partition]:
    """Every month that exists as a table, attached or waiting for undo, oldest first."""
    known = statements("postgres", "partitions")
    with database.reading() as connection:
        states = read_map(connection).states
        with connection.cursor(row_factory=dict_row) as cursor:
            attached = cursor.execute(known["attached"]).fetchall()
            detached = cursor.execute(known["detached"]).fetchall()
    found = []
    for row in attached:
        lower, upper = _parse_bounds(row.pop("bounds"))
        state = states.get((row["parent"], lower.date()), "open")
        found.append(Partition(**row, lower=lower, upper=upper, state=state))
    for row in detached:
        lower, upper = month_bounds(row.pop("month"))
        found.append(Partition(**row, lower=lower, upper=upper, attached=False))
    return sorted(found, key=lambda partition: (partition.lower, partition.parent))


def read_map(connection: psycopg.Connection[Any]) -> MonthMap:
    """The map and its epoch, of one moment."""
    rows = connection.execute(statements("postgres", "partitions")["map"]).fetchall()
    states = {(parent, month): state for parent, month, state, _ in rows}
    return MonthMap(epoch=rows[0][3] if rows else read_epoch(connection), states=states)


def read_epoch(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(statements("postgres", "partitions")["epoch"]).fetchone()
    assert row is not None
    return int(row[0])


def ensure(database: Database, wanted: Iterable[Month]) -> None:
    """Make the months that are missing. Each in a transaction of its own: two of them in one could deadlock.

    LIKE and ATTACH instead of PARTITION OF, which would stall every reader and writer behind one open transaction.
    """
    with database.connection(autocommit=True) as connection:
        states = read_map(connection).states
        for parent, month in sorted(set(wanted)):
            # Said at once: a month on its way out may be held for seconds.
            if (state := states.get((parent, month), "open")) != "open":
                raise not_open(parent, month, state)
            with connection.transaction():
                lock(connection, parent, month)
                _ensure_one(connection, parent, month)


def _ensure_one(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    known = statements("postgres", "partitions")
    state = connection.execute(known["month_state"], {"parent": parent, "month": month}).fetchone()
    if state is not None and state[0] != "open":
        raise not_open(parent, month, state[0])
    lower, upper = month_bounds(month)
    rows = connection.execute(known["attached_months"], {"parent": parent}).fetchall()
    if any(_parse_bounds(bounds) == (lower, upper) for _, _, bounds in rows):
        note(connection, parent, month, "open")
        return
    name = partition_name(parent, month)
    make_table(connection, parent, name)
    attach(connection, parent, month)
    note(connection, parent, month, "open")


def make_table(connection: psycopg.Connection[Any], parent: str, name: str, *, including: str = "ALL") -> None:
    """A table shaped like its parent, with the parent's indexes and statistics unless told otherwise."""
    try:
        connection.execute(ddl.make(parent, name, including))
    except psycopg.errors.DuplicateTable as error:
        raise _in_the_way(parent, name) from error


def check_free(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    """Refuse a month that could not be made, before any work for it."""
    name = partition_name(parent, month)
    values = {"name": name, "parent": parent, "month": month}
    if connection.execute(statements("postgres", "partitions")["stray"], values).fetchone() is not None:
        raise _in_the_way(parent, name)


def _in_the_way(parent: str, name: str) -> PartitionError:
    return PartitionError(
        f"the table {name} exists but is not part of {parent}: attach it, rename it or drop it, then try again"
    )


def attach(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    """Make the month's table part of its parent; its own CHECK spares PostgreSQL the scan."""
    name = partition_name(parent, month)
    add_bounds_check(connection, name, month)
    connection.execute(ddl.attach(parent, name, *month_bounds(month)))


def add_bounds_check(connection: psycopg.Connection[Any], name: str, month: date, *, check: str | None = None) -> None:
    """The CHECK that lets ATTACH trust the table; ours, because newer versions leave none after a detach."""
    check = check or f"{name}_bounds"
    found = connection.execute(
        "SELECT FROM pg_constraint WHERE conrelid = to_regclass(%s) AND conname = %s", [name, check]
    ).fetchone()
    if found is None:
        connection.execute(ddl.check(name, check, *month_bounds(month)))


def close(database: Database, name: str) -> None:
    """Make a month read-only, so that its export has no race with inserts."""
    parent, month = parse_name(name)
    with database.connection() as connection:
        lock(connection, parent, month)
        state = state_of(connection, parent, month)
        if state in ("cold", "purged"):
            raise not_open(parent, month, state)
        if state == "open":
            _guard(connection, name, "ENABLE")
            note(connection, parent, month, "closed")


def reopen(database: Database, name: str) -> None:
    """Make a closed month writable again."""
    parent, month = parse_name(name)
    with database.connection() as connection:
        lock(connection, parent, month)
        state = state_of(connection, parent, month)
        if state in ("cold", "purged"):
            raise not_open(parent, month, state)
        if state == "closed":
            _guard(connection, name, "DISABLE")
            note(connection, parent, month, "open")
            # What was exported may now grow stale; it was never more than a copy of this table.
            connection.execute(
                statements("postgres", "partitions")["retire_segments"], {"parent": parent, "month": month}
            )


def detach(database: Database, name: str) -> None:
    """Take the table of a cold month out of its parent without stopping anybody; it stays for undo."""
    parent, month = parse_name(name)
    with database.connection(autocommit=True) as connection:
        polite(connection)
        _check_cold(connection, parent, month)
        _finish_detach(connection, parent, name)
        # From here on nobody turns the month back: its table must not leave behind a map that says it is there.
        connection.execute(statements("postgres", "partitions")["hold_month"], {"name": name})
        _check_cold(connection, parent, month)
        if _attachment(connection, parent, name)[0]:
            add_bounds_check(connection, name, month)
            connection.execute(ddl.detach(parent, name))


def _check_cold(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    if state_of(connection, parent, month) != "cold":
        name = partition_name(parent, month)
        raise PartitionError(f"{name} is not cold: export and flip it before it is detached")


def _finish_detach(connection: psycopg.Connection[Any], parent: str, name: str) -> None:
    """Finish a detach that was interrupted half-way.

    Never while holding the month: this waits for every older snapshot, also of those who wait for the month.
    """
    if _attachment(connection, parent, name)[1]:
        connection.execute(ddl.detach(parent, name, finalize=True))


def attach_again(database: Database, name: str) -> None:
    """Serve a month from its table again: a cold one closed as it was, in the moment in which the map turns back.

    A month that never left, but whose table somebody detached, is put back as it is: its rows are nowhere else.
    """
    parent, month = parse_name(name)
    with database.connection(autocommit=True) as connection:
        polite(connection)
        _finish_detach(connection, parent, name)
        with connection.transaction():
            lock(connection, parent, month)
            state = state_of(connection, parent, month)
            attached, pending = _attachment(connection, parent, name)
            if pending:
                raise PartitionError(
                    f"a detach of {name} was interrupted a moment ago: try again, and it is finished first"
                )
            if not attached:
                attach(connection, parent, month)
            if state in ("cold", "purged"):
                _guard(connection, name, "ENABLE")
                note(connection, parent, month, "closed")


def drop(database: Database, name: str) -> None:
    """Give up the table of a cold month; only its segments remain, so they must hold as many rows."""
    parent, month = parse_name(name)
    with database.connection() as connection:
        lock(connection, parent, month)
        state = state_of(connection, parent, month)
        if state == "purged":
            return
        if state != "cold" or _attachment(connection, parent, name)[0]:
            raise PartitionError(f"{name} is {state} or still attached: flip and detach it before it is purged")
        if table_exists(connection, name):
            rows, sealed = count_rows(connection, name), sealed_rows(connection, parent, month)
            if rows != sealed:
                raise PartitionError(
                    f"{name} has {rows} rows, its sealed segments have {sealed}: the table stays."
                    f" `python -m logstore restore {name}`, then archive it again"
                )
        connection.execute(ddl.drop(name))
        note(connection, parent, month, "purged")


def count_rows(connection: psycopg.Connection[Any], name: str) -> int:
    """The rows of a table, counted."""
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))).fetchone()
    assert row is not None
    return int(row[0])


def sealed_rows(connection: psycopg.Connection[Any], parent: str, month: date) -> int:
    """The rows that the catalog's trusted segments hold of a month."""
    values = {"parent": parent, "month": month}
    row = connection.execute(statements("postgres", "partitions")["sealed_rows"], values).fetchone()
    assert row is not None
    return int(row[0])


def note_names(connection: psycopg.Connection[Any], parent: str, table: str) -> None:
    """Write down the names that a table holds before it is attached as a whole, which fires no trigger.

    Its roll-up (metrics.count_table) does as well: there only the rows of days have a topic, and those have all names.
    """
    known = statements("postgres", "store")
    names = ("tenant_id", "topic", "destination_id") if parent == "attempts" else ("tenant_id", "topic")
    select = sql.SQL("SELECT DISTINCT {} FROM {} WHERE topic IS NOT NULL")
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    found = connection.execute(select.format(columns, sql.Identifier(table))).fetchall()
    connection.execute(known["note_tenants"], [sorted({row[0] for row in found})])
    if parent == "attempts":
        pairs = sorted({(row[0], row[2]) for row in found})
        connection.execute(known["note_destinations"], [[one[0] for one in pairs], [one[1] for one in pairs]])
    connection.execute(known["note_topics"], [sorted({row[1] for row in found})])


def table_exists(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone() == (True,)


def _attachment(connection: psycopg.Connection[Any], parent: str, name: str) -> tuple[bool, bool]:
    """Whether the table is part of its parent, and whether a detach of it is pending."""
    row = connection.execute(
        statements("postgres", "partitions")["attachment"], {"parent": parent, "name": name}
    ).fetchone()
    return (False, False) if row is None else (True, bool(row[0]))


def _guard(connection: psycopg.Connection[Any], name: str, switch: str) -> None:
    """Switch the trigger that refuses writes."""
    exists = connection.execute(statements("postgres", "partitions")["guard_exists"], {"name": name}).fetchone()
    if exists == (False,):
        connection.execute(ddl.guard(name))
    connection.execute(ddl.switch_guard(name, switch))


def note(connection: psycopg.Connection[Any], parent: str, month: date, state: str) -> None:
    """Write a month's state into the map."""
    values = {"parent": parent, "month": month, "state": state}
    connection.execute(statements("postgres", "partitions")["note_month"], values)


def not_open(parent: str, month: date, state: str) -> PartitionError:
    name = partition_name(parent, month)
    return PartitionError(
        f"{name} is {state} and takes no writes: reopen it with `python -m logstore restore {name}`, then try again"
    )


def state_of(connection: psycopg.Connection[Any], parent: str, month: date, *, missing: str | None = None) -> str:
    """The state of a month; one that is not on the map is refused unless `missing` says how to call it."""
    values = {"parent": parent, "month": month}
    row = connection.execute(statements("postgres", "partitions")["month_state"], values).fetchone()
    if row is None:
        if missing is not None:
            return missing
        raise PartitionError(
            f"there is no partition {partition_name(parent, month)}; see `python -m logstore partitions`"
        )
    return str(row[0])


def polite(connection: psycopg.Connection[Any]) -> None:
    """Give up rather than queue: everybody behind a waiting ALTER TABLE waits too."""
    connection.execute(sql.SQL("SET lock_timeout = {}").format(_LOCK_TIMEOUT))


def lock(connection: psycopg.Connection[Any], parent: str, month: date) -> None:
    """Hold a month until the end of the transaction: one change of its state or tables at a time."""
    connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(_LOCK_TIMEOUT))
    name = partition_name(parent, month)
    connection.execute(statements("postgres", "partitions")["lock_month"], {"name": name})


def _parse_bounds(text: str) -> tuple[datetime, datetime]:
    match = _BOUNDS.fullmatch(text)
    if match is None:
        raise PartitionError(f"a partition has bounds that logstore did not make: {text}")
    lower, upper = (datetime.fromisoformat(bound) for bound in match.groups())
    return lower, upper
