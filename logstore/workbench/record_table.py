"""A page of records as a table: which columns there are, what they say, and which ids lead on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas
import streamlit as st

from logstore import filters as language
from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.filters.python import value_at
from logstore.partitions import month_of
from logstore.records import Attempt, Event, Page
from logstore.tables import BY_KIND
from logstore.workbench import cached, deliveries, signs, texts
from logstore.workbench.frame import Frame

STATUS = {"success": f"{signs.GOOD} success", "failed": f"{signs.BAD} failed"}
TIER = {"hot": "hot", "cold": "archive"}
Record = Event | Attempt
LINK = ":material/link:"  # a button in a table looks like text; this says that it leads somewhere


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, what it says of a record, and its width."""

    heading: str
    say: Callable[[Any, Frame], Any]
    width: int | None = None
    leads_on: bool = False  # a click on it goes there, or narrows the list to it
    help: str | None = None


_TIME = Column("time", lambda record, frame: frame.show(record.time), 165)
_TENANT = Column("tenant", lambda record, _: record.tenant_id, 160, True, "click: only this tenant")
_TOPIC = Column("topic", lambda record, _: record.topic, 150)

COLUMNS: dict[Kind, dict[str, Column]] = {
    "event": {
        "time": _TIME,
        "id": Column("event", lambda event, _: event.id, 220, True, "click: what became of it"),
        "tenant": _TENANT,
        "topic": _TOPIC,
        "retry": Column("may be retried", lambda event, _: "yes" if event.eligible_for_retry else "no", 100),
        "destination": Column("published to", lambda event, _: event.destination_id or "all that subscribe", 250),
        "data": Column("payload", lambda event, _: _line(event.data), 420),
        "metadata": Column("metadata", lambda event, _: _line(event.metadata), 300),
    },
    "attempt": {
        "time": _TIME,
        "status": Column("outcome", lambda attempt, _: STATUS[attempt.status], 105),
        "code": Column("code", lambda attempt, _: attempt.code or "none", 135),
        "number": Column(
            "try", lambda attempt, _: _number(attempt), 85, help="which attempt; by hand where it says so"
        ),
        "tenant": _TENANT,
        "destination": Column(
            "destination", lambda attempt, _: attempt.destination_id, 230, True, "click: only this destination"
        ),
        "event": Column(
            "event", lambda attempt, _: attempt.event_id, 230, True, "click: the event and all its attempts"
        ),
        "topic": _TOPIC,
        "said": Column("answer", lambda attempt, _: deliveries.message(attempt.response_data), 145),
        "event_time": Column("event's time", lambda attempt, frame: frame.show(attempt.event_time), 190),
        "id": Column(
            "attempt", lambda attempt, _: attempt.id, 250, True, "click: the attempt, beside all of its event"
        ),
        "response": Column("response", lambda attempt, _: _line(attempt.response_data), 420),
        "data": Column("payload", lambda attempt, _: _line(attempt.event_data), 420),
    },
}
DEFAULTS: dict[Kind, tuple[str, ...]] = {
    "event": ("time", "id", "outcome", "tier", "tenant", "topic", "data"),
    "attempt": ("time", "status", "code", "event", "said", "tier", "destination", "number", "tenant", "topic"),
}
# Of an event's list only: what became of it takes a look at its attempts.
OUTCOME = Column("outcome", lambda event, _: "", 145, help="destinations reached, of those that were tried")
# Not the record's own: the page says where each was read.
_TIER = Column("tier", lambda record, _: "", 75, help="hot: in PostgreSQL; archive: in sealed Parquet segments")


def known(kind: Kind) -> dict[str, Column]:
    """The columns that a list can show, in the order of the chooser."""
    found = dict(COLUMNS[kind]) | {"tier": _TIER}
    if kind == "event":
        found["outcome"] = OUTCOME
    return found


def column_of(kind: Kind, name: str) -> Column | None:
    """A column by its name: one of ours, or a field of the payload as a filter names it."""
    found = known(kind).get(name)
    if found is not None or "." not in name:
        return found
    try:
        field = language.parse(f"{name} exists", kind)
    except InvalidFilter:
        return None
    if not isinstance(field, language.Compare) or field.negated or not field.field.path:
        return None
    return Column(name, lambda record, _: _text(value_at(field.field, record)), 200)


def chosen(kind: Kind, names: Sequence[str], without: Sequence[str] = ()) -> list[str]:
    """The columns of the URL as far as they exist, or the usual ones `without` some."""
    usual = [name for name in DEFAULTS[kind] if name not in without]
    return [name for name in dict.fromkeys(names) if column_of(kind, name)] or usual


def table(
    frame: Frame, kind: Kind, page: Page[Any], names: Sequence[str], outcomes: dict[Any, str] | None = None
) -> pandas.DataFrame:
    """The records of a page as text, a column per name."""
    columns = {name: column for name in names if (column := column_of(kind, name))}
    found = {name: [_said(column, record, frame) for record in page] for name, column in columns.items()}
    if "outcome" in found:
        found["outcome"] = [(outcomes or {}).get((r.tenant_id, r.id), f"{signs.NONE} never attempted") for r in page]
    if "tier" in found:
        found["tier"] = [TIER[tier] for tier in page.tiers]
    return pandas.DataFrame(found, columns=list(columns))


def tier_of(kind: Kind, record: Record) -> str:
    """Where a record that was read by itself is kept: its month says so."""
    state = cached.store().tiers.map().states.get((BY_KIND[kind].name, month_of(record.time)))
    return TIER["cold" if state in ("cold", "purged") else "hot"]


def _said(column: Column, record: Record, frame: Frame) -> Any:
    text = column.say(record, frame)
    return f"{LINK} {text}" if column.leads_on else text


def config(frame: Frame, kind: Kind, names: Sequence[str], key: str) -> dict[str, Any]:
    """How Streamlit draws the columns; ids that lead on are drawn as buttons, because its links leave the tab."""
    found: dict[str, Any] = {}
    for name in names:
        column = column_of(kind, name)
        if column is None:
            continue
        heading = f"{column.heading} ({frame.zone_name})" if name in ("time", "event_time") else column.heading
        if column.leads_on:
            found[name] = st.column_config.ButtonColumn(
                heading, width=column.width, type="tertiary", key=f"{key} {name}", alignment="left", help=column.help
            )
        else:
            found[name] = st.column_config.TextColumn(heading, width=column.width, help=column.help)
    return found


def clicked(kind: Kind, names: Sequence[str], key: str) -> tuple[str, int] | None:
    """The column and the row of the id that was clicked in this run."""
    for name in names:
        click = st.session_state.get(f"{key} {name}")
        if click is not None:
            return name, int(click["row"])
    return None


def _number(attempt: Attempt) -> str:
    return f"{attempt.attempt_number} by hand" if attempt.manual else str(attempt.attempt_number)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 160 else _line(value)


def _line(value: Any, most: int = 160) -> str:
    if value is None:
        return ""
    text = texts.dump(value, indent=None)
    return text if len(text) <= most else text[: most - 1] + "…"
