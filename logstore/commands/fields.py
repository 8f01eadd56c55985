"""explain, fields, topics, index: what a selection costs, what payloads hold, and what is indexed."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

import logstore
from logstore import fields, filters
from logstore.commands import Subparsers, actor, command, operator, show, table
from logstore.commands.browse import add_selection, selection_of
from logstore.errors import InvalidSelection
from logstore.records import rfc3339

_EXPLAIN = """  python -m logstore explain attempts --tenant acme --where 'data.amount > 100'"""
_FIELDS = """  python -m logstore fields order.created"""
_TOPICS = """  python -m logstore topics"""
_INDEX = """  python -m logstore index add order.created data.customer_id
  python -m logstore index drop order.created data.customer_id"""


def add(commands: Subparsers) -> None:
    parser = command(commands, "explain", _explain, help="what the engines would do for a list", examples=_EXPLAIN)
    parser.add_argument("kind", choices=("events", "attempts"))
    add_selection(parser)
    parser = command(
        commands, "fields", _fields, help="the fields that occur in the payloads of a topic", examples=_FIELDS
    )
    parser.add_argument("topic", nargs="?", help="without one, of all topics")
    command(commands, "topics", _topics, help="the topics of the log and their indexed fields", examples=_TOPICS)
    parser = command(commands, "index", _index, help="index a field of a topic, or give it up", examples=_INDEX)
    parser.add_argument("action", choices=("add", "drop"))
    parser.add_argument("topic")
    parser.add_argument("field", help="as a filter writes it, such as data.customer_id")


def _explain(given: argparse.Namespace) -> None:
    selection = selection_of(given)
    with logstore.open(role="reader") as store:
        found = store.explain(selection, "event" if given.kind == "events" else "attempt")
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in asdict(found).items() if value is not None]
    show(given, asdict(found), "\n".join(lines))


def _fields(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        found = fields.catalogue(store.database, given.topic)
    rows = [
        (f.topic, f.name, "/".join(sorted(f.types)), f.rows, f.nulls, f.distinct, f.longest, rfc3339(f.last_seen),
         "indexed" if f.indexed else "", "vanished" if f.vanished else "")
        for f in found
    ]  # fmt: skip
    head = ("topic", "field", "types", "rows seen", "nulls", "values about", "longest", "last seen", "index", "")
    documents = [asdict(f) | {"name": f.name} for f in found]
    nothing = "no fields seen yet: insert or load"
    if given.topic is not None:
        nothing = f"no fields seen of {given.topic}; `python -m logstore topics` lists the topics"
    show(given, documents, table(rows, head) if rows else nothing)


def _topics(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        found = fields.topics(store.database)
    rows = [(t["name"], ", ".join(_name(f) for f in t["indexed_fields"]), rfc3339(t["created"])) for t in found]
    show(given, found, table(rows, ("topic", "indexed fields", "first seen")) if rows else "no topics yet")


def _name(field: dict[str, object]) -> str:
    path = field["path"]
    assert isinstance(path, list)
    return ".".join([str(field["column"]), *path])


def _index(given: argparse.Namespace) -> None:
    try:
        tree = filters.parse(f"{given.field} exists", "attempt")
    except logstore.InvalidFilter as error:
        raise InvalidSelection(f"{given.field!r} is no field: {error}") from error
    assert isinstance(tree, filters.Compare)
    column, path = tree.field.column.removeprefix("event_"), tree.field.path
    with operator() as store:
        if given.action == "add":
            fields.add_index(store.database, given.topic, column, path, actor=actor(), progress=_progress)
        else:
            fields.drop_index(store.database, given.topic, column, path, actor=actor())
    document = {"topic": given.topic, "field": given.field, "action": given.action}
    show(given, document, f"{given.field} of {given.topic}: {'indexed' if given.action == 'add' else 'index dropped'}")


def _progress(done: int, total: int) -> None:
    print(f"month {done} of {total}", file=sys.stderr, flush=True)
