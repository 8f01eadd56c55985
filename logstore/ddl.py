"""The statements that make, guard, attach, detach and drop a month's table; written once, run and shown in plans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg import sql

Statement = sql.Composed


def make(parent: str, name: str, including: str = "ALL") -> Statement:
    """LIKE and, later, ATTACH instead of PARTITION OF, which would stall everybody behind one open transaction."""
    statement = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING {})")
    return statement.format(sql.Identifier(name), sql.Identifier(parent), sql.SQL(including))


def check(name: str, constraint: str, lower: datetime, upper: datetime) -> Statement:
    """The bounds as a constraint, which spares ATTACH the scan."""
    statement = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} CHECK (time >= {} AND time < {})")
    return statement.format(sql.Identifier(name), sql.Identifier(constraint), _literal(lower), _literal(upper))


def attach(parent: str, name: str, lower: datetime, upper: datetime) -> Statement:
    statement = sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})")
    return statement.format(sql.Identifier(parent), sql.Identifier(name), _literal(lower), _literal(upper))


def detach(parent: str, name: str, *, finalize: bool = False) -> Statement:
    statement = sql.SQL("ALTER TABLE {} DETACH PARTITION {} {}")
    how = sql.SQL("FINALIZE" if finalize else "CONCURRENTLY")
    return statement.format(sql.Identifier(parent), sql.Identifier(name), how)


def guard(name: str) -> Statement:
    """The trigger that makes a leaf read-only."""
    statement = sql.SQL(
        "CREATE TRIGGER refuse_write BEFORE INSERT OR UPDATE OR DELETE ON {}"
        " FOR EACH ROW EXECUTE FUNCTION refuse_write()"
    )
    return statement.format(sql.Identifier(name))


def switch_guard(name: str, switch: str) -> Statement:
    """Switched rather than dropped: dropping a trigger needs an exclusive lock."""
    return sql.SQL("ALTER TABLE {} {} TRIGGER refuse_write").format(sql.Identifier(name), sql.SQL(switch))


def drop(name: str) -> Statement:
    return sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name))


def filled(statement: str, values: Mapping[str, Any]) -> str:
    """A named statement with its values in place; to be shown, never to be run."""
    return re.sub(r"%\((\w+)\)s", lambda match: sql.Literal(values[match[1]]).as_string(), statement)


def _literal(time: datetime) -> sql.Literal:
    return sql.Literal(f"{time:%Y-%m-%d %H:%M:%S}+00")
