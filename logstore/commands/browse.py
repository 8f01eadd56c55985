"""list and get: the five operations' reading half, from a terminal."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import logstore
from logstore import export
from logstore.commands import Subparsers, command, json_text, show, table
from logstore.cursor import Kind
from logstore.errors import InvalidSelection
from logstore.records import Attempt, Event, Page, Selection, TimeFilter, parse_rfc3339, rfc3339

_LIST = """  python -m logstore list attempts --tenant acme --destination des_1 --status failed
  python -m logstore list events --topic order.created --topic order.paid --since 2026-08-01T00:00:00Z
  python -m logstore list attempts --where 'code >= 500 and data.amount > 100'
  python -m logstore list attempts --next CURSOR        the page after, as the last line of a page says
  python -m logstore list attempts --status failed --all --format csv > failed.csv    the whole selection"""
_GET = """  python -m logstore get event evt_123 --destination des_1
  python -m logstore get attempt att_456 --json"""


def add(commands: Subparsers) -> None:
    parser = command(commands, "list", _list, help="a page of events or attempts, newest first", examples=_LIST)
    parser.add_argument("kind", choices=("events", "attempts"))
    add_selection(parser)
    parser.add_argument("--limit", type=int, default=20, help="records on the page, 1 to 1000")
    parser.add_argument("--order", choices=("desc", "asc"), default="desc", help="newest or oldest first")
    turn = parser.add_mutually_exclusive_group()
    turn.add_argument("--next", metavar="CURSOR", help="the page after; a page's last lines say it")
    turn.add_argument("--prev", metavar="CURSOR", help="the page before")
    parser.add_argument("--all", action="store_true", help="every record, not a page; needs --format")
    parser.add_argument("--format", choices=tuple(export.FORMATS), help="of the file that --all writes to the output")
    parser = command(commands, "get", _get, help="one event or attempt by its id", examples=_GET)
    parser.add_argument("kind", choices=("event", "attempt"))
    parser.add_argument("id")
    parser.add_argument("--tenant", help="only if it belongs to this tenant")
    parser.add_argument("--destination", help="only if an attempt of the event went there")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that make a Selection; repeated ones mean any of."""
    parser.add_argument(
        "--tenant", action="append", default=[], metavar="ID", help="of this tenant; repeat for any of several"
    )
    parser.add_argument("--event", action="append", default=[], metavar="ID", help="of this event; may be repeated")
    parser.add_argument("--destination", action="append", default=[], metavar="ID", help="attempts only; repeatable")
    parser.add_argument("--topic", action="append", default=[], metavar="NAME", help="of this topic; repeatable")
    parser.add_argument("--status", help="success or failed; attempts only")
    parser.add_argument("--since", metavar="TIME", help="from this time on, such as 2026-08-01T00:00:00Z")
    parser.add_argument("--until", metavar="TIME", help="before this time")
    parser.add_argument("--where", metavar="FILTER", help="a filter, such as 'code >= 500 and data.amount > 100'")


def selection_of(given: argparse.Namespace) -> Selection:
    since, until = (parse_rfc3339(t) if t else None for t in (given.since, given.until))
    return Selection(
        tenant_ids=tuple(given.tenant),
        event_ids=tuple(given.event),
        destination_ids=tuple(given.destination),
        topics=tuple(given.topic),
        status=given.status,
        time=TimeFilter(gte=since, lt=until),
        where=given.where,
    )


def _list(given: argparse.Namespace) -> None:
    selection = selection_of(given)
    one_page = given.json or given.next or given.prev or given.order == "asc"
    if given.all != (given.format is not None) or (given.all and one_page):
        raise InvalidSelection("--all and --format go together, newest first, without --json, --next and --prev")
    kind: Kind = "event" if given.kind == "events" else "attempt"
    with logstore.open(role="reader") as store:
        if given.all:
            for piece in export.export(store, kind, selection, given.format):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        page = store.lister(kind)(selection, limit=given.limit, next=given.next, prev=given.prev, order=given.order)
    document = {
        "data": [record.to_dict() for record in page],
        "next": page.next,
        "prev": page.prev,
        "tiers": page.tiers,
        "warnings": page.warnings,
    }
    show(given, document, _as_text(page))


def _as_text(page: Page[Any]) -> str:
    lines = [f"! {warning}" for warning in page.warnings]
    lines.append(table([_row(record) for record in page], _head(page)) if page.data else "nothing matches")
    lines += [f"{name}: --{name} {token}" for name, token in (("prev", page.prev), ("next", page.next)) if token]
    return "\n".join(lines)


def _head(page: Page[Any]) -> tuple[str, ...]:
    if page.kind is Event:
        return ("time", "id", "tenant", "topic")
    # What is short comes first, so that a narrow terminal has it in one line, and the ids below.
    return ("time", "status", "code", "#", "topic", "tenant", "id", "event", "destination")


def _row(record: Event | Attempt) -> tuple[Any, ...]:
    if isinstance(record, Event):
        return rfc3339(record.time), record.id, record.tenant_id, record.topic
    return (
        rfc3339(record.time),
        record.status,
        record.code,
        record.attempt_number,
        record.topic,
        record.tenant_id,
        record.id,
        record.event_id,
        record.destination_id,
    )


def _get(given: argparse.Namespace) -> int:
    if given.kind == "attempt" and given.destination:
        raise InvalidSelection("--destination goes with `get event`; an attempt has only one")
    found: Event | Attempt | None
    with logstore.open(role="reader") as store:
        if given.kind == "event":
            found = store.retrieve_event(given.id, tenant_id=given.tenant, destination_id=given.destination)
        else:
            found = store.retrieve_attempt(given.id, tenant_id=given.tenant)
    if found is None:
        narrowed = " of that tenant or destination" if given.tenant or given.destination else ""
        show(
            given,
            None,
            f"no {given.kind} {given.id}{narrowed}; `python -m logstore list {given.kind}s` shows which there are",
        )
        return 1
    show(given, found.to_dict(), json_text(found.to_dict(), indent=2))
    return 0
