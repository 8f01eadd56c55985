"""Which fields the payloads of a topic have, and which of them are indexed.

Writers look at the payloads they write (a sample of a large batch) and note what they saw with one upsert per batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from logstore import filters
from logstore.cursor import Kind
from logstore.errors import InvalidSelection
from logstore.partitions import polite
from logstore.postgres import Database
from logstore.records import Attempt, Event, rfc3339
from logstore.statements import statements
from logstore.tables import RECORDS

SAMPLE = 100  # records of a batch that are looked at
LOAD_SAMPLE = 1000  # records of a month in a load
# A hostile payload must not flood the catalog, nor break its index (an entry holds 2 704 bytes).
_DEPTH, _PATHS, _PATH_BYTES = 6, 200, 1000  # of one payload
_TOPIC_PATHS = 2000  # later ones are not noted
_SKETCH = 64
_HASHES = 2**62
_INDEX_BYTES = 1024  # a longer value is not in the index (a btree entry holds 2 704 bytes), and is found by the scan

# Where a column of the language lives in each table.
COLUMNS = {
    "events": {"data": "data", "metadata": "metadata"},
    "attempts": {"data": "event_data", "metadata": "event_metadata", "response_data": "response_data"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field of a topic's payloads, as far as writers have looked."""

    topic: str
    column: str
    path: tuple[str, ...]
    types: dict[str, str]  # JSON type -> time of the newest record that had it
    rows: int
    nulls: int
    first_seen: datetime
    last_seen: datetime
    distinct: int  # about
    longest: int
    indexed: bool
    vanished: bool  # newer records of the topic do not have it any more

    @property
    def name(self) -> str:
        """As the filter language writes it."""
        return str(filters.Field(self.column, self.path))


@dataclass(slots=True)
class _Seen:
    types: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    nulls: int = 0
    first: datetime | None = None
    last: datetime | None = None
    hashes: set[int] = field(default_factory=set)
    longest: int = 0

    def add(self, value: Any, time: datetime) -> None:
        kind = _TYPES.get(type(value), "object")
        self.rows += 1
        self.nulls += value is None
        self.first = time if self.first is None or time < self.first else self.first
        self.last = time if self.last is None or time > self.last else self.last
        self.types[kind] = max(self.types.get(kind, ""), rfc3339(time))
        if kind in ("string", "number", "boolean"):
            text = value if isinstance(value, str) else json.dumps(value)
            data = text.encode(errors="replace")
            self.longest = max(self.longest, len(data))
            self.hashes.add(int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") % _HASHES)


_TYPES = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}


def observe(records: Iterable[Event | Attempt]) -> dict[tuple[str, str, tuple[str, ...]], Any]:
    """What the payloads of these records hold, by (topic, column, path)."""
    seen: dict[tuple[str, str, tuple[str, ...]], _Seen] = {}
    for record in records:
        payloads = (
            (("data", record.data), ("metadata", record.metadata))
            if isinstance(record, Event)
            else (("response_data", record.response_data),)  # the event inside was looked at as an event
        )
        for column, payload in payloads:
            for path, value in islice(_walk(payload), _PATHS):
                seen.setdefault((record.topic, column, path), _Seen()).add(value, record.time)
    return seen


def _walk(payload: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The fields of a payload, the outer ones first: what is left out of a large one is deep inside."""
    level: list[tuple[tuple[str, ...], int, Any]] = [((), 0, payload)]
    for _ in range(_DEPTH):
        inner = []
        for path, size, value in level:
            for key, item in value.items() if isinstance(value, dict) else ():
                longer = size + len(key.encode(errors="replace"))
                if longer <= _PATH_BYTES:
                    yield (*path, key), item
                    inner.append(((*path, key), longer, item))
        level = inner


def note(connection: psycopg.Connection[Any], events: Sequence[Event], attempts: Sequence[Attempt]) -> None:
    """Look at a batch, or at an even sample of a large one, and write down what was seen."""
    _write(connection, [*_sample(events), *_sample(attempts)])


def note_table(connection: psycopg.Connection[Any], name: str, kind: Kind, rows: int) -> None:
    """Look at a sample of a table that a load has staged: whole pages, because for single rows all would be read."""
    share = min(100.0, 100.0 * LOAD_SAMPLE / max(rows, 1))
    select = sql.SQL("SELECT {} FROM {} TABLESAMPLE SYSTEM ({}) REPEATABLE (1)").format(
        sql.SQL(", ").join(map(sql.Identifier, RECORDS[kind].columns)), sql.Identifier(name), share
    )
    _write(connection, RECORDS[kind]._rows(connection.execute(select).fetchall()))


def _write(connection: psycopg.Connection[Any], sample: Sequence[Event | Attempt]) -> None:
    seen = sorted(observe(sample).items())
    if not seen:
        return
    rows = [
        (topic, column, json.dumps(path), json.dumps(s.types), s.rows, s.nulls, s.first, s.last,
         json.dumps(sorted(s.hashes)[:_SKETCH]), s.longest)
        for (topic, column, path), s in seen
    ]  # fmt: skip
    columns = [list(column) for column in zip(*rows, strict=True)]
    connection.execute(statements("postgres", "fields")["note_fields"], [*columns, _TOPIC_PATHS])


def _sample(records: Sequence[Any]) -> Sequence[Any]:
    step = -(-len(records) // SAMPLE) or 1
    return records[::step]


def catalogue(database: Database, topic: str | None = None) -> list[Field]:
    """The fields that are known, of one topic or of all."""
    with database.connection(autocommit=True) as connection, connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statements("postgres", "fields")["list_fields"], {"topic": topic}).fetchall()
    found = []
    for row in rows:
        sketch, newest = row.pop("sketch"), row.pop("topic_last_seen")
        row["path"] = tuple(row["path"])
        # A day of records without the field says that it went away, unless it was always as rare as that.
        usual = (row["last_seen"] - row["first_seen"]).total_seconds() / max(row["rows"] - 1, 1)
        vanished = (newest - row["last_seen"]).total_seconds() > max(86_400, 20 * usual)
        found.append(Field(**row, distinct=_distinct(sketch), vanished=vanished))
    return found


def _distinct(sketch: list[int]) -> int:
    """How many different values there were about, from the smallest of their hashes: the denser, the more."""
    if len(sketch) < _SKETCH:
        return len(sketch)
    return round((_SKETCH - 1) * _HASHES / max(sketch))


def topics(database: Database) -> list[dict[str, Any]]:
    """Every topic with its indexed fields and settings."""
    with database.connection(autocommit=True) as connection, connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statements("postgres", "fields")["list_topics"]).fetchall()


# Indexed fields

Progress = Callable[[int, int], None]


def index_name(parent: str, column: str, path: Sequence[str]) -> str:
    digest = hashlib.sha256(json.dumps([column, *path]).encode()).hexdigest()[:12]
    return f"idx_{parent}_field_{digest}"


def add_index(
    database: Database, topic: str, column: str, path: Sequence[str], *, actor: str, progress: Progress | None = None
) -> None:
    """Index a field, month by month without stopping writers; run again after a kill, it goes on where it was."""
    parents = [parent for parent, columns in COLUMNS.items() if column in columns]
    if not parents or not path:
        raise InvalidSelection("name a field inside data, metadata or response_data, such as data.customer_id")
    _change_topic(database, topic, {"column": column, "path": list(path)}, actor=actor, add=True)
    with database.connection(autocommit=True) as connection:
        polite(connection)
        for parent in parents:
            name = index_name(parent, column, path)
            _create(connection, "CREATE INDEX IF NOT EXISTS {} ON ONLY {} ", name, parent, parent, column, path)
            _index_leaves(connection, parent, name, column, path, progress)


def _index_leaves(
    connection: psycopg.Connection[Any],
    parent: str,
    index: str,
    column: str,
    path: Sequence[str],
    progress: Progress | None,
) -> None:
    suffix = "_" + index.rsplit("_", 1)[1]
    values = {"parent": parent, "index": index, "suffix": suffix}
    missing = connection.execute(statements("postgres", "fields")["leaves_without"], values).fetchall()
    for number, (leaf, broken) in enumerate(missing, 1):
        part = leaf + suffix
        if broken:
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(broken)))
        _create(connection, "CREATE INDEX CONCURRENTLY IF NOT EXISTS {} ON {} ", part, leaf, parent, column, path)
        connection.execute(
            sql.SQL("ALTER INDEX {} ATTACH PARTITION {}").format(sql.Identifier(index), sql.Identifier(part))
        )
        if progress:
            progress(number, len(missing))


def _create(
    connection: psycopg.Connection[Any], verb: str, name: str, table: str, parent: str, column: str, path: Sequence[str]
) -> None:
    text = sql.Identifier(COLUMNS[parent][column])
    for part in path[:-1]:
        text = sql.SQL("({} -> {})").format(text, sql.Literal(part))  # type: ignore[assignment]
    value = sql.SQL("({} ->> {})").format(text, sql.Literal(path[-1]))
    # The topic leads, so that one topic's page is found in order; only values that fit are in it.
    connection.execute(
        sql.SQL(verb).format(sql.Identifier(name), sql.Identifier(table))
        + sql.SQL("(topic, {0}, time DESC, id DESC) WHERE octet_length({0}) <= {1}").format(value, _INDEX_BYTES)
    )


def drop_index(database: Database, topic: str, column: str, path: Sequence[str], *, actor: str) -> None:
    """Give up a field's index for a topic; the index goes when no topic wants it any more."""
    field_ = {"column": column, "path": list(path)}
    _change_topic(database, topic, field_, actor=actor, add=False)
    with database.connection(autocommit=True) as connection:
        wanted = connection.execute(statements("postgres", "fields")["indexed_fields"]).fetchall()
        if any(field_ in fields for _, fields in wanted):
            return
        polite(connection)
        for parent, columns in COLUMNS.items():
            if column in columns:
                name = sql.Identifier(index_name(parent, column, path))
                connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(name))


def _change_topic(database: Database, topic: str, field_: dict[str, Any], *, actor: str, add: bool) -> None:
    known = statements("postgres", "fields")
    with database.connection() as connection:
        row = connection.execute("SELECT indexed_fields FROM topics WHERE name = %s FOR UPDATE", [topic]).fetchone()
        if row is None:
            raise InvalidSelection(f"there is no topic {topic!r} yet; `python -m logstore topics` lists them")
        fields = [given for given in row[0] if given != field_] + ([field_] if add else [])
        if fields == row[0]:
            return
        connection.execute(known["change_topic"], {"name": topic, "indexed_fields": json.dumps(fields)})
        change = json.dumps({"index" if add else "unindex": field_})
        connection.execute(known["note_change"], {"topic": topic, "actor": actor, "change": change})


def indexed(connection: psycopg.Connection[Any]) -> set[tuple[str, str, tuple[str, ...]]]:
    """The indexed fields as (topic, column, path)."""
    rows = connection.execute(statements("postgres", "fields")["indexed_fields"]).fetchall()
    return {(name, given["column"], tuple(given["path"])) for name, fields in rows for given in fields}


def served(connection: psycopg.Connection[Any], topics: Sequence[str], tree: filters.Filter) -> filters.Compare | None:
    """The comparison of a filter that an index of fields serves, if there is one."""
    parts = tree.parts if isinstance(tree, filters.And) else (tree,)
    equal = [p for p in parts if isinstance(p, filters.Compare) and p.operator == "=" and not p.negated]
    named = [str(p.values[0].value) for p in equal if p.field.column == "topic"]
    one = {*topics, *named}
    if len(one) != 1:
        return None
    known = indexed(connection)
    for part in equal:
        column = part.field.column.removeprefix("event_")
        if (next(iter(one)), column, part.field.path) in known and why_not(part) is None:
            return part
    return None


def why_not(part: filters.Compare) -> str | None:
    """Why no index could serve a comparison, whatever is indexed; None when one could."""
    if part.negated:
        return "it is negated"
    if part.operator != "=":
        return f"indexes serve =, not {part.operator}"
    if part.values[0].kind != "text":
        return "indexes hold text; write the value in quotes if it is text"
    if len(str(part.values[0].value).encode()) > _INDEX_BYTES:
        return f"the value is longer than {_INDEX_BYTES} bytes, which no index holds"
    return None
