"""From a survey to a plan: mend what is half done, make months, then let go what retention asks for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from psycopg import sql

from logstore import archive, ddl, partitions, retention
from logstore.errors import MaintenanceError
from logstore.maintenance.steps import Plan, Step
from logstore.maintenance.survey import Survey, look
from logstore.retention import Leaving, Month
from logstore.settings import Settings
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import PARENTS

MONTHS_AHEAD = 2  # beside the current one: a nightly job may fail for weeks before anybody would notice

_LOCKS = {
    "attach": "SHARE UPDATE EXCLUSIVE on {parent}: stops no reader or writer",
    "finalise": "SHARE UPDATE EXCLUSIVE on {parent}, ACCESS EXCLUSIVE on {name} alone; waits for old snapshots",
    "premake": "SHARE UPDATE EXCLUSIVE on {parent}: stops no reader or writer",
    "close": "SHARE ROW EXCLUSIVE on {name}: waits for its writers, not for readers",
    "export": "ACCESS SHARE on {name}: stops nobody",
    "verify": "none: reads files",
    "flip": "ACCESS SHARE on {name}: stops nobody",
    "detach": "SHARE UPDATE EXCLUSIVE on {parent}, then ACCESS EXCLUSIVE on {name} alone; waits for open transactions",
    "purge": "ACCESS EXCLUSIVE on {name}, which is out of the log",
    "remove": "none: marks segments",
    "delete": "none: deletes files",
    "fold": "ROW EXCLUSIVE on the roll-ups: stops nobody",
    "undo": "SHARE UPDATE EXCLUSIVE on {parent}: stops no reader or writer",
}


def plan(store: LogStore, *, now: datetime | None = None) -> Plan:
    """What maintenance would do now. It only reads."""
    now = moment(now)
    survey = look(store.database, now=now)
    steps = tuple(_steps(survey, store.settings, now))
    return Plan.of(steps, now=now, catalogue=survey.catalogue())


def moment(now: datetime | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    if now.tzinfo is None:
        raise MaintenanceError("the moment of a plan needs a time zone: datetime(…, tzinfo=UTC)")
    return now.astimezone(UTC)


def undo_window(settings: Settings) -> timedelta:
    return timedelta(days=settings.undo_days)


def step_of(action: str, month: Month, reason: str) -> Step:
    """A step on one month, with the statements that it will run."""
    cold = action in ("purge", "remove")
    return Step(
        action=action,
        table=month.parent,
        partition=month.name,
        sql=";\n".join(_sql(action, month)),
        lock=_LOCKS[action].format(parent=month.parent, name=month.name),
        reason=reason,
        lower=month.lower,
        upper=month.upper,
        rows=month.cold_rows if cold else max(month.rows, 0),
        bytes=month.cold_bytes if action == "remove" else month.bytes,
    )


def _steps(survey: Survey, settings: Settings, now: datetime) -> Iterator[Step]:
    decision = retention.plan(survey.months, survey.policies, now=now, undo=undo_window(settings))
    for month in survey.months:
        if is_hidden(month):
            yield step_of("attach", month, f"it is {month.state}, but its table is not part of {month.parent}")
        elif month.ours and month.pending:
            yield step_of("finalise", month, "a detach was interrupted half-way")
    yield from _premake(survey, settings, now)
    due = {leaving.month.name: leaving for leaving in decision.archive}
    for month in survey.months:
        if month.name in due:
            yield from way_out(due[month.name])
        elif month.ours and month.state == "cold" and month.attached and not month.pending:
            yield step_of("detach", month, "it is served from the archive")
    for leaving in decision.purge:
        yield step_of("purge", leaving.month, leaving.reason)
    for leaving in decision.remove:
        yield step_of("remove", leaving.month, leaving.reason)
    if survey.expired.segments:
        yield _delete(survey)
    if survey.unfolded[0]:
        yield _fold(survey)


def is_hidden(month: Month) -> bool:
    """Whether somebody detached the table of a month that is still served from it, so that its rows are nowhere."""
    there = month.attached and not month.pending
    return month.ours and month.exists and month.state in ("open", "closed") and not there


def way_out(leaving: Leaving) -> Iterator[Step]:
    """The steps by which a month leaves PostgreSQL; a closed one has the first behind it."""
    month = leaving.month
    actions = ("close", "export", "verify", "flip", "detach")
    for action in actions if month.state == "open" else actions[1:]:
        yield step_of(action, month, leaving.reason)


def _premake(survey: Survey, settings: Settings, now: datetime) -> Iterator[Step]:
    there = {(m.parent, m.lower.date()) for m in survey.months if m.attached or m.exists or m.state != "open"}
    last = max(_later(partitions.month_of(now), MONTHS_AHEAD), partitions.month_of(now + timedelta(settings.ahead)))
    month = partitions.month_of(now)
    while month <= last:
        for parent in PARENTS:
            if (parent, month) not in there:
                lower, upper = partitions.month_bounds(month)
                name = partitions.partition_name(parent, month)
                missing = Month(parent=parent, name=name, lower=lower, upper=upper, state="open")
                yield step_of("premake", missing, "months are made before they are needed")
        month = _later(month, 1)


def _delete(survey: Survey) -> Step:
    return Step(
        action="delete",
        table="segments",
        partition="",
        sql="DELETE FROM segments WHERE segment_id = ANY('{…}')",
        lock=_LOCKS["delete"],
        reason=f"{survey.expired.segments} retired files outlived every page that may have read them",
        rows=survey.expired.rows,
        bytes=survey.expired.bytes,
    )


def _fold(survey: Survey) -> Step:
    return Step(
        action="fold",
        table="attempts_deltas",
        partition="",
        sql=statements("postgres", "metrics")["fold"],
        lock=_LOCKS["fold"],
        reason="roll-ups answer faster when what was written since is added up",
        rows=survey.unfolded[0],
        bytes=survey.unfolded[1],
    )


def _later(month: date, count: int) -> date:
    number = month.year * 12 + month.month - 1 + count
    return date(number // 12, number % 12 + 1, 1)


def _sql(action: str, month: Month) -> list[str]:
    """The statements of an action, from where they are run."""
    parent, name = month.parent, month.name
    bounds = (month.lower, month.upper)
    found: list[str | sql.Composed] = []
    if action == "premake":
        made = [ddl.make(parent, name), ddl.check(name, f"{name}_bounds", *bounds), ddl.attach(parent, name, *bounds)]
        found = [*made, _note(month, "open")]
    elif action == "close":
        guard = f"-- unless it is there:\n{ddl.guard(name).as_string()}"
        found = [guard, ddl.switch_guard(name, "ENABLE"), _note(month, "closed")]
    elif action == "export":
        found = [archive.export_query(name)]
    elif action == "verify":
        found = [_named("segments", "set_verified", id="…")]
    elif action == "flip":
        found = [_note(month, "cold")]
    elif action in ("detach", "finalise"):
        found = [ddl.detach(parent, name, finalize=action == "finalise")]
    elif action == "attach":
        pending = [ddl.detach(parent, name, finalize=True)] if month.pending else []
        found = [*pending, ddl.attach(parent, name, *bounds)]
    elif action == "undo":
        again = [ddl.attach(parent, name, *bounds)]
        found = [*again, _note(month, "closed"), ddl.switch_guard(name, "DISABLE"), _note(month, "open")]
    elif action == "purge":
        found = [ddl.drop(name), _note(month, "purged")]
    elif action == "remove":
        found = [_named("segments", "set_state", state="retired", note="retention", ids=["…"])]
    return [text if isinstance(text, str) else text.as_string() for text in found]


def _note(month: Month, state: str) -> str:
    return _named("partitions", "note_month", parent=month.parent, month=month.lower.date(), state=state)


def _named(module: str, name: str, **values: Any) -> str:
    return ddl.filled(statements("postgres", module)[name], values)
