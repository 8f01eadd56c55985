"""Apply, undo, purge: one at a time in the whole system, step by step, each step resumable."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import psycopg

from logstore import archive, metrics, partitions, retention
from logstore.errors import LogstoreError, MaintenanceError, ServerError
from logstore.faults import fault
from logstore.maintenance.locks import Patience, patiently, the_only_one
from logstore.maintenance.planning import moment, plan, step_of, undo_window, way_out
from logstore.maintenance.runs import Effect, Progress, Run
from logstore.maintenance.steps import Plan, Step
from logstore.maintenance.survey import look
from logstore.retention import Leaving, Month
from logstore.store import LogStore


def apply(
    store: LogStore,
    wanted: Plan,
    *,
    actor: str,
    progress: Progress | None = None,
    patience: Patience = Patience(),
) -> Run:
    """Carry out a plan, unless the catalogue has changed since it was made. What is done stays done if a step fails."""
    return _carry_out(store, lambda: _fresh(store, wanted), actor=actor, progress=progress, patience=patience)


def undo(
    store: LogStore,
    partition: str,
    *,
    actor: str,
    progress: Progress | None = None,
    patience: Patience = Patience(),
) -> Run:
    """Take a month back into PostgreSQL from its own table, without reading it, and leave it open as it was at first.

    It works as long as the table is there, so at least for the undo window; a month that was only closed is reopened. The
    segments are retired: the month may change now. The next plan will archive it again while its policy says so.
    """

    def find() -> Plan:
        now = moment(None)
        month = _find(store, partition, now)
        if month.state == "open":
            raise MaintenanceError(f"{partition} is open: there is nothing to undo")
        if not month.exists:
            raise MaintenanceError(
                f"the table of {partition} is gone; `python -m logstore restore {partition}` rebuilds it from its segments"
            )
        step = step_of("undo", month, "it is wanted in PostgreSQL again")
        return Plan.of((step,), now=now, catalogue=[partition, month.state])

    return _carry_out(store, find, actor=actor, progress=progress, patience=patience)


def archive_now(
    store: LogStore,
    partition: str,
    *,
    actor: str,
    now: datetime | None = None,
    progress: Progress | None = None,
    patience: Patience = Patience(),
) -> Run:
    """Let a month that is over leave PostgreSQL before its policy says so, by the same steps."""
    at = moment(now)

    def find() -> Plan:
        month = _find(store, partition, at)
        if month.state not in ("open", "closed"):
            raise MaintenanceError(f"{partition} is {month.state}: the archive serves it already")
        if not (month.ours and month.attached) or month.pending:
            raise MaintenanceError(f"{partition} is not a whole part of {month.parent}: plan and apply first")
        if month.upper > at:
            raise MaintenanceError(f"{partition} is not over: it ends on {month.upper:%Y-%m-%d}")
        steps = tuple(way_out(Leaving(month=month, reason="asked for")))
        return Plan.of(steps, now=at, catalogue=[partition, month.state])

    return _carry_out(store, find, actor=actor, progress=progress, patience=patience)


def purge(
    store: LogStore,
    partition: str,
    *,
    actor: str,
    override: bool = False,
    now: datetime | None = None,
    progress: Progress | None = None,
    patience: Patience = Patience(),
) -> Run:
    """Give up a detached month's table before the next plan does; inside the undo window only when told to."""
    at = moment(now)

    def find() -> Plan:
        month = _find(store, partition, at)
        _check_purge(month, store, at, override=override)
        step = step_of("purge", month, "asked for, inside the undo window" if override else "asked for")
        return Plan.of((step,), now=at, catalogue=[partition, month.state])

    return _carry_out(store, find, actor=actor, progress=progress, patience=patience)


def _carry_out(
    store: LogStore, find: Callable[[], Plan], *, actor: str, progress: Progress | None, patience: Patience
) -> Run:
    if store.database.role == "reader":
        raise ServerError("this store was opened to read: set LOGSTORE_ROLE=operator for maintenance")
    with the_only_one(store.database, actor) as connection:
        run = Run(actor=actor, plan=find())
        for number, step in enumerate(run.plan, 1):

            def work(step: Step = step) -> Effect:
                effect = patiently(connection, step, lambda: _WORK[step.action](store, step), patience)
                fault(f"maintain.{step.action}")
                return effect

            try:
                run.do(connection, number, work, progress)
            except MaintenanceError:
                raise
            except (LogstoreError, psycopg.Error, OSError) as error:
                raise MaintenanceError(
                    f"{step.what} failed: {error}. The steps before it are done; see to it, then plan and apply again"
                ) from error
    return run


def _fresh(store: LogStore, wanted: Plan) -> Plan:
    """The plan made again for the same moment; another hash means that the world has moved on."""
    again = plan(store, now=wanted.now)
    if again.hash != wanted.hash:
        raise MaintenanceError("the plan is stale: months, segments or policies have changed since; plan again")
    return again


def _find(store: LogStore, partition: str, now: datetime) -> Month:
    parent, first = partitions.parse_name(partition)
    for month in look(store.database, now=now).months:
        if month.parent == parent and month.lower.date() == first:
            return month
    raise MaintenanceError(f"there is no partition {partition}; see `python -m logstore partitions`")


def _check_purge(month: Month, store: LogStore, now: datetime, *, override: bool) -> None:
    if month.state != "cold" or month.attached:
        raise MaintenanceError(
            f"{month.name} is {month.state}{' and attached' if month.attached else ''}: only a detached month can be purged"
        )
    if not month.sealed:
        raise MaintenanceError(
            f"{month.quarantined} segments of {month.name} are quarantined, so its table is the only good copy: "
            f"`python -m logstore maintain undo {month.name}`, then archive it again"
        )
    window = undo_window(store.settings)
    if not override and not retention.may_purge(month, now=now, undo=window):
        raise MaintenanceError(
            f"{month.name} can still be undone: its window of {window.days} days is not over. Wait, or say --override"
        )


# The work of each action


def _verify(store: LogStore, step: Step) -> Effect:
    found = archive.verify(store, step.partition)
    if found:
        raise MaintenanceError(
            f"{step.partition} is not safe in the archive: {found[0].what}: {found[0].problem}. Its table stays"
        )
    return Effect(rows=step.rows, bytes=step.bytes)


def _export(store: LogStore, step: Step) -> Effect:
    sealed = archive.export(store, step.partition)
    return Effect(rows=sum(segment.rows for segment in sealed), bytes=sum(segment.bytes for segment in sealed))


def _purge(store: LogStore, step: Step) -> Effect:
    """The files are read once more: in a moment they are all there is."""
    _verify(store, step)
    partitions.drop(store.database, step.partition)
    return Effect(rows=step.rows, bytes=step.bytes)


def _remove(store: LogStore, step: Step) -> Effect:
    gone = archive.retire(store, step.partition, note="retention")
    return Effect(rows=sum(segment.rows for segment in gone), bytes=sum(segment.bytes for segment in gone))


def _delete(store: LogStore, step: Step) -> Effect:
    with store.database.connection(autocommit=True) as connection:
        archive.delete_expired(store, connection)
    return Effect(rows=step.rows, bytes=step.bytes)


def _fold(store: LogStore, step: Step) -> Effect:
    return Effect(rows=metrics.fold(store), bytes=step.bytes)


def _premake(store: LogStore, step: Step) -> Effect:
    partitions.ensure(store.database, [partitions.parse_name(step.partition)])
    return Effect()


def _plainly(change: Callable[[LogStore, str], None]) -> Callable[[LogStore, Step], Effect]:
    def work(store: LogStore, step: Step) -> Effect:
        change(store, step.partition)
        return Effect(rows=step.rows, bytes=step.bytes)

    return work


_WORK: dict[str, Callable[[LogStore, Step], Effect]] = {
    "attach": _plainly(lambda store, name: partitions.attach_again(store.database, name)),
    "finalise": _plainly(lambda store, name: partitions.detach(store.database, name)),
    "premake": _premake,
    "close": _plainly(lambda store, name: partitions.close(store.database, name)),
    "export": _export,
    "verify": _verify,
    "flip": _plainly(archive.flip),
    "detach": _plainly(lambda store, name: partitions.detach(store.database, name)),
    "purge": _purge,
    "remove": _remove,
    "delete": _delete,
    "fold": _fold,
    "undo": _plainly(archive.restore),
}
