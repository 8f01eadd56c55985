"""One staged month put in its place: attached, inserted, updated, or turned into dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import psycopg
from psycopg import sql

from logstore import metrics, partitions
from logstore.lines import COLUMNS
from logstore.statements import statements
from logstore.tables import JSON_COLUMNS


@dataclass(frozen=True, slots=True)
class Staged:
    """One staging table: the rows that a load has for one month."""

    name: str
    parent: str
    month: date
    rows: int

    @property
    def counts(self) -> str:
        """The table of its roll-up, until it is attached."""
        return f"{self.name}_counts"


@dataclass(slots=True)
class Merged:
    """What a merge did; the four add up to the rows that were read."""

    inserted: int = 0
    updated: int = 0
    skipped: int = 0
    dead: int = 0


def take_counts(connection: psycopg.Connection[Any], table: Staged, merged: Merged) -> None:
    """Add the roll-up of a month that will be attached to those of the log."""
    rows = metrics.add_counts(connection, table.parent, table.counts)
    merged.inserted += rows
    merged.skipped += table.rows - rows


def attach(connection: psycopg.Connection[Any], table: Staged) -> None:
    """Make the staging table itself the month. Dropping its last two columns rewrites nothing."""
    staging, name = sql.Identifier(table.name), partitions.partition_name(table.parent, table.month)
    connection.execute(
        sql.SQL("ALTER TABLE {} DROP COLUMN position, DROP COLUMN file, RESET (autovacuum_enabled)").format(staging)
    )
    connection.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(staging, sql.Identifier(name)))
    partitions.attach(connection, table.parent, table.month)


def shorten_names(connection: psycopg.Connection[Any], load: int, table: Staged) -> None:
    """Indexes and statistics lose the load's number, where the name is free."""
    name = partitions.partition_name(table.parent, table.month)
    found = connection.execute(statements("postgres", "pipeline")["names_to_shorten"], {"table": name}).fetchall()
    for kind, long in found:
        short = long.removeprefix(f"load_{load}_")
        if short != long and connection.execute("SELECT to_regclass(%s)", [short]).fetchone() == (None,):
            connection.execute(
                sql.SQL("ALTER {} {} RENAME TO {}").format(sql.SQL(kind), sql.Identifier(long), sql.Identifier(short))
            )


def insert(connection: psycopg.Connection[Any], table: Staged, merged: Merged) -> int:
    """Insert the rows that are not there yet, sorted by (time, id)."""
    columns = sql.SQL(", ").join(map(sql.Identifier, columns_of(table.parent)))
    inserted = connection.execute(
        sql.SQL(
            "INSERT INTO {parent} ({columns}) SELECT {columns} FROM (SELECT DISTINCT ON (time, id) * FROM {staging}"
            " ORDER BY time, id, file DESC, position DESC) AS chosen ORDER BY time, id ON CONFLICT (time, id) DO NOTHING"
        ).format(parent=sql.Identifier(table.parent), columns=columns, staging=sql.Identifier(table.name))
    ).rowcount
    merged.inserted += inserted
    return inserted


def update(connection: psycopg.Connection[Any], table: Staged, inserted: int, merged: Merged) -> None:
    """Give attempts that were there the status, code and response of the file; events stay as they are."""
    if inserted == table.rows:
        return
    staging = sql.Identifier(table.name)
    if table.parent == "events":
        merged.skipped += table.rows - inserted
        return
    distinct = connection.execute(
        sql.SQL("SELECT count(*) FROM (SELECT DISTINCT time, id FROM {}) AS k").format(staging)
    ).fetchone()
    assert distinct is not None
    merged.updated += distinct[0] - inserted
    merged.skipped += table.rows - distinct[0]
    # Locked in the order of (time, id) before any is changed. Rows that say the same already are left alone.
    connection.execute(
        sql.SQL(
            "WITH given AS MATERIALIZED (SELECT DISTINCT ON (time, id) time, id, status, code, response_data FROM {staging}"
            " ORDER BY time, id, file DESC, position DESC), locked AS MATERIALIZED (SELECT a.time, a.id FROM {parent} a"
            " JOIN given g ON a.time = g.time AND a.id = g.id"
            " WHERE (a.status, a.code, a.response_data) IS DISTINCT FROM (g.status, g.code, g.response_data)"
            " ORDER BY a.time, a.id FOR UPDATE OF a)"
            " UPDATE {parent} a SET status = g.status, code = g.code, response_data = g.response_data"
            " FROM given g JOIN locked l ON l.time = g.time AND l.id = g.id WHERE a.time = g.time AND a.id = g.id"
        ).format(staging=staging, parent=sql.Identifier(table.parent))
    )


def refuse(connection: psycopg.Connection[Any], load: int, table: Staged, state: str) -> None:
    """The month was closed while the load ran: its rows become letters. The line is gone, so the row is written as one.

    Payloads as JSON inside a text: a payload that is itself a text would else be read as the JSON inside it.
    """
    name = partitions.partition_name(table.parent, table.month)
    values = {
        "load": load,
        "message": f"{name} is {state}: reopen it with `python -m logstore restore {name}`",
    }
    payloads = [
        sql.SQL("{}, {}::text").format(sql.Literal(name), sql.Identifier(name))
        for name in columns_of(table.parent)
        if name in JSON_COLUMNS
    ]
    connection.execute(
        sql.SQL(
            "INSERT INTO load_letters (load, split, file, position, raw, truncated, reason, message)"
            " SELECT %(load)s, 0, file, position, (to_jsonb(s) - 'file' - 'position' || jsonb_build_object({}))::text,"
            " false, 'month_not_open', %(message)s FROM {} AS s"
        ).format(sql.SQL(", ").join(payloads), sql.Identifier(table.name)),
        values,
    )


def columns_of(parent: str) -> tuple[str, ...]:
    """The columns of the log that a staging table of this parent holds."""
    return COLUMNS["event" if parent == "events" else "attempt"]
