"""The driver's half of a load: staged rows checked, and made part of the log in one transaction.

A month that does not exist yet is not copied: its staging table, which prepare.py has indexed, is attached. A month that
exists takes the rows by INSERT … ON CONFLICT. Both give the same rows. Until the one transaction commits, nobody sees any
of it; with it the load is done, its letters are kept and its staging is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import sql

from logstore import partitions
from logstore.errors import LoadError
from logstore.faults import fault
from logstore.pipeline.place import Merged, Staged, attach, insert, refuse, shorten_names, take_counts, update
from logstore.postgres import Database
from logstore.statements import statements

_RETRIES = 5
# The month was closed, another writer and we waited for each other, a month was detached: look again and decide anew.
_LOOK_AGAIN = ("LS001", "40P01", "23514")


def staged(connection: psycopg.Connection[Any], load: int) -> list[Staged]:
    """The staging tables, once what they hold equals what the tasks counted."""
    known, mine = statements("postgres", "pipeline"), statements("postgres", "loads")
    tables = connection.execute(mine["staging_tables"], {"load": load}).fetchall()
    found: list[Staged] = []
    held: dict[int, tuple[int, int]] = {}
    for name, _, parent, month, _ in tables:
        count = sql.SQL("SELECT file, count(*), sum(position) FROM {} GROUP BY file").format(sql.Identifier(name))
        rows = connection.execute(count).fetchall()
        for file, number, positions in rows:
            before = held.get(file, (0, 0))
            held[file] = before[0] + number, before[1] + int(positions)
        found.append(Staged(name, parent, month, sum(row[1] for row in rows)))
    letters = dict(connection.execute(known["staged_letters"], {"load": load}).fetchall())
    for file, number, positions, kept in connection.execute(known["counted"], {"load": load}).fetchall():
        if held.pop(file, (0, 0)) != (number, int(positions)) or letters.pop(file, 0) != kept:
            raise LoadError(f"what is staged of file {file} is not what the tasks counted; nothing was loaded")
    if held or letters:
        raise LoadError("rows are staged that no task counted; nothing was loaded")
    return found


class _Appeared(Exception):
    """Another writer made a month that we were about to attach."""


def merge(database: Database, load: int, tables: Sequence[Staged], finish: Callable[[Any, Merged], None]) -> Merged:
    """Make the staged rows part of the log and finish the load, all or nothing."""
    failures = 0
    while True:
        try:
            with database.connection() as connection:
                merged = _merge(connection, load, tables)
                finish(connection, merged)
                fault("load.before_merge_commit")
            return merged
        except _Appeared:
            continue  # at most once for every month: it is there now
        except psycopg.Error as error:
            failures += 1
            if error.sqlstate not in _LOOK_AGAIN or failures == _RETRIES:
                raise


def _merge(connection: psycopg.Connection[Any], load: int, tables: Sequence[Staged]) -> Merged:
    """Everything that takes long, then the locks of new months, under which they are only attached.

    Who wants to write into such a month waits for its lock. Always in the order of insert_many.
    """
    connection.execute("SET LOCAL work_mem = '128MB'")
    merged = Merged()
    states = partitions.read_map(connection).states
    new = [table for table in tables if (table.parent, table.month) not in states]
    there = [table for table in tables if states.get((table.parent, table.month)) == "open"]
    for table in tables:
        if table not in there and table not in new:
            refuse(connection, load, table, states[table.parent, table.month])
    _insert_all(connection, there, merged)
    fault("load.mid_merge")
    for table in new:
        take_counts(connection, table, merged)
    for table in tables:
        done = [table.counts] if table in new else [table.counts, table.name]
        names = sql.SQL(", ").join(map(sql.Identifier, done))
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(names))
    merged.dead += connection.execute(statements("postgres", "pipeline")["move_letters"], {"load": load}).rowcount
    connection.execute(statements("postgres", "pipeline")["resolve_letters"], {"load": load})
    connection.execute(statements("postgres", "loads")["clean"], {"load": load})
    _attach_all(connection, load, new)
    return merged


def _attach_all(connection: psycopg.Connection[Any], load: int, tables: Sequence[Staged]) -> None:
    for table in sorted(tables, key=lambda table: (table.parent, table.month)):
        name = partitions.partition_name(table.parent, table.month)
        connection.execute(statements("postgres", "partitions")["lock_month"], {"name": name})
    states = partitions.read_map(connection).states
    if any((table.parent, table.month) in states for table in tables):
        raise _Appeared
    for table in tables:
        attach(connection, table)
    # After all attaches: the map's epoch is one row, and others wait for it holding a parent's lock.
    for table in tables:
        partitions.note(connection, table.parent, table.month, "open")
        shorten_names(connection, load, table)


def _insert_all(connection: psycopg.Connection[Any], tables: Sequence[Staged], merged: Merged) -> None:
    """All inserts before any update, as insert_many does: two writers that overlap then cannot wait for each other."""
    order = sorted(tables, key=lambda table: (table.parent != "events", table.month))
    inserted = {table.name: insert(connection, table, merged) for table in order}
    for table in order:
        update(connection, table, inserted[table.name], merged)
