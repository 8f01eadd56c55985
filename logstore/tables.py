"""The tables of the log as SQLAlchemy sees them; a test compares them with the live catalogue."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, DateTime, Index, Integer, MetaData, PrimaryKeyConstraint, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from logstore.cursor import Kind
from logstore.records import Attempt, Event

metadata = MetaData()


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text(collation="C"), nullable=nullable)


def _time(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False)


def _json(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable)


events = Table(
    "events",
    metadata,
    _text("id"),
    _text("tenant_id"),
    _text("destination_id"),
    _time("time"),
    _text("topic"),
    Column("eligible_for_retry", Boolean, nullable=False),
    _json("data"),
    _json("metadata"),
    PrimaryKeyConstraint("time", "id"),
    postgresql_partition_by="RANGE (time)",
)

attempts = Table(
    "attempts",
    metadata,
    _text("id"),
    _text("event_id"),
    _text("tenant_id"),
    _text("destination_id"),
    _text("topic"),
    _text("status"),
    _time("time"),
    Column("attempt_number", Integer, nullable=False),
    Column("manual", Boolean, nullable=False),
    _text("code", nullable=True),
    _json("response_data", nullable=True),
    _time("event_time"),
    Column("eligible_for_retry", Boolean, nullable=False),
    _json("event_data"),
    _json("event_metadata"),
    PrimaryKeyConstraint("time", "id"),
    postgresql_partition_by="RANGE (time)",
)

for _table, _name, _columns in (
    (events, "idx_events_tenant_time", ("tenant_id",)),
    (events, "idx_events_tenant_topic_time", ("tenant_id", "topic")),
    (attempts, "idx_attempts_tenant_time", ("tenant_id",)),
    (attempts, "idx_attempts_tenant_dest_time", ("tenant_id", "destination_id")),
    (attempts, "idx_attempts_tenant_status_time", ("tenant_id", "status")),
    (attempts, "idx_attempts_tenant_topic_time", ("tenant_id", "topic")),
    (attempts, "idx_attempts_event_time", ("event_id",)),
):
    Index(_name, *(_table.c[c] for c in _columns), _table.c.time.desc(), _table.c.id.desc())
Index("idx_events_id", events.c.id)
Index("idx_attempts_id", attempts.c.id)

names = MetaData()
tenants = Table("tenants", names, _text("tenant_id"))
destinations = Table("destinations", names, _text("tenant_id"), _text("destination_id"))

BY_KIND: dict[Kind, Table] = {"event": events, "attempt": attempts}
RECORDS: dict[Kind, type[Event] | type[Attempt]] = {"event": Event, "attempt": Attempt}
PARENTS = ("events", "attempts")
JSON_COLUMNS = frozenset(c.name for table in (events, attempts) for c in table.columns if isinstance(c.type, JSONB))
TIME_COLUMNS = frozenset(("time", "event_time"))
