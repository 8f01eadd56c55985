"""What became of the events of a range: delivered, not delivered, never attempted; over both tiers, from the records.

A destination counts as reached when any attempt succeeded, also one of a later month. The newest part of the range, after
the last archived month, is counted by PostgreSQL alone. For what lies before, DuckDB joins the files with what PostgreSQL
has of those events.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Any

import duckdb
import pandas
import psycopg
from sqlalchemy import DateTime, Interval, Select, and_, case, func, literal, select, text

from logstore import cold, deadline, filters, partitions, segments
from logstore.cold import Wanted
from logstore.queries import predicates, question, render
from logstore.records import Selection, TimeFilter, to_micros
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import attempts, events
from logstore.tiers import Map, stretches
from logstore.workbench.counts import measures
from logstore.workbench.counts.bars import Bars
from logstore.workbench.counts.measures import Many
from logstore.workbench.times import Window

OUTCOMES = ("not delivered", "never attempted", "delivered")  # as bars are stacked
_MICRO = timedelta(microseconds=1)
Counted = dict[tuple[datetime, str], int]


def outcomes(
    store: LogStore, selection: Selection, window: Window, zone: tzinfo, *, everything: bool = False
) -> pandas.DataFrame:
    """Events per bar and outcome; `attrs` carry the bars' width and warnings of what could not be read.

    Of more events than one reads in a moment it only says how many were published, unless `everything` is wanted.
    """
    look = lambda: _look(store, selection, window, zone)  # noqa: E731 - an argument
    found = measures.unless_many(store, "event", selection, window, look, everything=everything)
    if not isinstance(found, Many):
        return found
    published = measures.histogram(store, "event", selection, window, zone)
    published.attrs["note"] = "what became of them: narrow the range"
    return published


def _look(store: LogStore, selection: Selection, window: Window, zone: tzinfo) -> pandas.DataFrame:
    bars = Bars.of(window, zone)

    def read(connection: psycopg.Connection[Any], known: Map) -> tuple[Counted, list[str]]:
        months = [
            month for parent in ("events", "attempts") for s in stretches(known.states, parent) for month in s.months
        ]
        edge = max((partitions.month_bounds(month)[1] for month in months), default=window.lower)
        edge = min(max(edge, window.lower), window.upper)
        counted: Counted = {}
        if edge < window.upper:
            _hot(connection, _Part(selection, Window(edge, window.upper), bars), counted)
        warnings = []
        if window.lower < edge:
            part = _Part(selection, Window(window.lower, edge), bars)
            warnings = _both(store, connection, known, part, counted)
        return counted, warnings

    counted, warnings = store.tiers.steadily(read)
    frame = bars.frame(counted, OUTCOMES, window.upper)
    frame.attrs["warnings"] = tuple(warnings)
    return frame


class _Part:
    """The events of a selection in a part of the window."""

    def __init__(self, selection: Selection, window: Window, bars: Bars) -> None:
        self.selection = selection.but(time=TimeFilter(gte=window.lower, lt=window.upper))
        self.where = None if selection.where is None else filters.parse(selection.where, "event")
        self.window, self.bars = window, bars
        tenants = list(selection.tenant_ids) or None
        self.values = {"lower": window.lower, "upper": window.upper, "tenants": tenants}

    def chosen(self, within: Any = (None, None)) -> tuple[list[Any], dict[str, Any]]:
        """The conditions of the events in PostgreSQL, and their values."""
        page: dict[str, Any] = {"position": None, "ascending": True, "limit": 1}
        asked = question("event", self.selection, within=within, where=self.where, plain=True, **page)
        return predicates(events, asked.shape), asked.values


def _hot(connection: psycopg.Connection[Any], part: _Part, counted: Counted) -> None:
    chosen, values = part.chosen()
    statement, constants = render(_hot_sql(part, chosen))
    with deadline.limited(connection):
        rows = connection.execute(statement, {**constants, **values}).fetchall()
    for start, outcome, number in rows:
        _add(counted, start, outcome, number)


def _hot_sql(part: _Part, chosen: list[Any]) -> Select[Any]:
    bars, window, tenants = part.bars, part.window, part.selection.tenant_ids
    start = func.date_bin(literal(bars.width, Interval), events.c.time, literal(bars.origin, DateTime(timezone=True)))
    keys = (attempts.c.tenant_id, attempts.c.event_id, attempts.c.event_time)
    # An attempt follows its event, so its own time prunes months. The event's lower end is left to the join: named here as
    # well, it makes the planner expect a twentieth of the rows, and sort them instead of hashing.
    tried = [attempts.c.time >= window.lower, attempts.c.event_time < window.upper]
    tried += [attempts.c.tenant_id.in_(tenants)] if tenants else []
    reached = func.bool_or(attempts.c.status == "success").label("reached")
    each = select(*keys, reached).where(*tried).group_by(*keys, attempts.c.destination_id).subquery("each_destination")
    names = (each.c.tenant_id, each.c.event_id, each.c.event_time)
    found = select(*names, func.bool_and(each.c.reached).label("everywhere")).group_by(*names).subquery("each_event")
    same = and_(
        found.c.tenant_id == events.c.tenant_id, found.c.event_id == events.c.id, found.c.event_time == events.c.time
    )
    outcome = case((found.c.event_id.is_(None), literal(1)), (found.c.everywhere, literal(2)), else_=literal(0))
    counts = select(start, outcome, func.count()).select_from(events.outerjoin(found, same))
    # Grouped by position: PostgreSQL takes the same parameters in two places for two different expressions.
    return counts.where(*chosen).group_by(text("1"), text("2"))


def _both(store: LogStore, connection: psycopg.Connection[Any], known: Map, part: _Part, counted: Counted) -> list[str]:
    cursor = segments.engine()
    cursor.execute(
        "CREATE TEMP TABLE tried (tenant_id VARCHAR, event_id VARCHAR, event_time BIGINT, destination_id VARCHAR,"
        " reached BOOLEAN); CREATE TEMP TABLE published (tenant_id VARCHAR, id VARCHAR, time BIGINT)"
    )
    known_sql = statements("duckdb", "workbench")
    with cursor, deadline.interrupted(cursor):
        warnings = _published(store, connection, known, part, cursor)
        with deadline.limited(connection):
            rows = connection.execute(statements("postgres", "workbench")["tried_events"], part.values).fetchall()
        _fill(cursor, "tried", rows)
        spans = [to_micros(part.window.lower), to_micros(part.window.upper)]
        months = [month for stretch in stretches(known.states, "attempts") for month in stretch.months]
        for segment in known.listed("attempts", months):
            if segment.max_time is None or segment.max_time < part.window.lower:
                continue
            warnings += _from(store, cursor, segment, known_sql["tried_events"], spans)
        bars = (to_micros(part.bars.origin), part.bars.width // _MICRO)
        for place, outcome, number in cursor.execute(known_sql["outcomes_of_range"], bars).fetchall():
            _add(counted, part.bars.origin + place * part.bars.width, outcome, number)
    return warnings


def _published(store: LogStore, connection: Any, known: Map, part: _Part, cursor: Any) -> list[str]:
    """The events of the part, from whichever tier has them."""
    wanted = Wanted("event", part.selection, part.where)
    conditions = cold.conditions(wanted)
    where = " AND ".join(f"({condition})" for condition, _ in conditions)
    values = [value for _, found in conditions for value in found]
    insert = f"INSERT INTO published SELECT tenant_id, id, epoch_us(time) FROM read_parquet(?) WHERE {where}"
    warnings = []
    for stretch in stretches(known.states, "events"):
        if not wanted.meets(stretch.lower, stretch.upper):
            continue
        for segment in known.listed("events", stretch.months):
            if wanted.meets(segment.min_time, segment.max_time):
                warnings += _from(store, cursor, segment, insert, values)
        if not stretch.months:
            chosen, bound = part.chosen((stretch.lower, stretch.upper))
            statement, constants = render(select(events.c.tenant_id, events.c.id, events.c.time).where(*chosen))
            with deadline.limited(connection):
                rows = connection.execute(statement, {**constants, **bound}).fetchall()
            _fill(cursor, "published", [(tenant, id_, to_micros(time)) for tenant, id_, time in rows])
    return warnings


def _from(
    store: LogStore, cursor: duckdb.DuckDBPyConnection, segment: Any, statement: str, values: list[Any]
) -> list[str]:
    """Run a statement over one segment; what cannot be read is named."""
    if segment.state != "sealed":
        return [cold.hole(segment)]
    try:
        cursor.execute(statement, [str(segment.path(store.settings.archive)), *values])
    except duckdb.InterruptException:
        raise
    except cold.UNREADABLE as error:
        return [cold.hole(segment, error)]
    return []


def _fill(cursor: duckdb.DuckDBPyConnection, name: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        frame = pandas.DataFrame(rows)
        cursor.register("filling", frame)
        cursor.execute(f"INSERT INTO {name} SELECT * FROM filling")
        cursor.unregister("filling")


def _add(counted: Counted, start: datetime, outcome: int, number: int) -> None:
    counted[start, OUTCOMES[outcome]] = counted.get((start, OUTCOMES[outcome]), 0) + number
