"""The same rows in PostgreSQL, DuckDB and Python, and what each of them says about many filters at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    DateTime,
    Integer,
    MetaData,
    Table,
    Text,
    cast,
    false,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from logstore.filters import Filter, matches, to_duckdb, to_postgres
from logstore.filters.tree import COLUMN_TYPES
from logstore.records import Attempt, Event

RECORDS = {"event": Event, "attempt": Attempt}
_POSTGRES = {
    "text": Text(),
    "time": DateTime(timezone=True),
    "boolean": Boolean(),
    "integer": Integer(),
    "json": JSONB(none_as_null=True),
}
_DUCKDB = {"text": "VARCHAR", "time": "TIMESTAMPTZ", "boolean": "BOOLEAN", "integer": "INTEGER", "json": "VARCHAR"}

TABLES = {
    kind: Table(
        f"{kind}_rows",
        MetaData(),
        *(Column(name, _POSTGRES[COLUMN_TYPES[name]]) for name in record.columns),
        prefixes=["TEMPORARY"],
    )
    for kind, record in RECORDS.items()
}

Answers = list[list[bool]]  # a list of answers for each filter, one for each row in the order of their ids


def fill(connection: Connection, kind: str, rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Put rows, whose JSON is text, into the table; the rows come back as the archive gets them, JSON as jsonb::text."""
    table = TABLES[kind]
    connection.execute(table.delete())
    names = [name for name in table.c.keys() if COLUMN_TYPES[name] == "json"]  # noqa: SIM118
    for at, row in enumerate(rows):
        stored = {**row, "id": row.get("id", f"{at:04}")}
        stored |= {name: cast(literal(row[name], Text), JSONB) for name in names if row[name] is not None}
        connection.execute(table.insert().values(stored))
    columns = [cast(c, Text) if c.name in names else c for c in table.c]
    return [tuple(row) for row in connection.execute(select(*columns).order_by(table.c.id))]


def from_postgres(connection: Connection, kind: str, trees: Sequence[Filter]) -> Answers:
    table = TABLES[kind]
    conditions = [func.coalesce(to_postgres(tree, table), false()) for tree in trees]
    found = connection.execute(select(*(c.label(f"f{at}") for at, c in enumerate(conditions))).order_by(table.c.id))
    return [list(answers) for answers in zip(*found, strict=True)]


def from_duckdb(connection: duckdb.DuckDBPyConnection, kind: str, rows: list[tuple[Any, ...]], trees: Any) -> Answers:
    columns = RECORDS[kind].columns
    types = ", ".join(f'"{name}" {_DUCKDB[COLUMN_TYPES[name]]}' for name in columns)
    connection.execute(f"CREATE OR REPLACE TABLE rows ({types})")
    row = f"({', '.join('?' * len(columns))})"
    connection.execute(f"INSERT INTO rows VALUES {', '.join([row] * len(rows))}", [v for r in rows for v in r])
    emitted = [to_duckdb(tree) for tree in trees]
    texts = ", ".join(f"coalesce({sql.text}, FALSE)" for sql in emitted)
    found = connection.execute(f"SELECT {texts} FROM rows ORDER BY id", [p for sql in emitted for p in sql.params])
    return [list(answers) for answers in zip(*found.fetchall(), strict=True)]


def records(kind: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    """The rows as the store gives them to people."""
    columns = RECORDS[kind].columns
    read = [
        [json.loads(v) if v is not None and COLUMN_TYPES[c] == "json" else v for c, v in zip(columns, row, strict=True)]
        for row in rows
    ]
    return RECORDS[kind]._rows(read)


def from_python(kind: str, rows: list[tuple[Any, ...]], trees: Sequence[Filter]) -> Answers:
    read = records(kind, rows)
    return [[matches(tree, record) for record in read] for tree in trees]
