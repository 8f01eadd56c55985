"""Retention: from policies and months, which months leave which tier. Pure: it asks nobody, and the clock is given.

The rules, for every table by itself: comparisons are strict, so what equals a limit is kept; the oldest leave first; the
first month that is kept ends it, so no gap opens; the minimum always stays; age counts from a month's upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """How much of one table one tier keeps; None is unlimited."""

    parent: str
    tier: str  # hot, cold
    max_age: timedelta | None = None
    max_bytes: int | None = None
    max_count: int | None = None
    min_count: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Month:
    """What retention needs to know of one month of one table."""

    parent: str
    name: str
    lower: datetime
    upper: datetime
    state: str  # open, closed, cold, purged
    exists: bool = True  # it has a table in PostgreSQL,
    attached: bool = True  # which is part of its parent
    pending: bool = False  # and an interrupted detach
    ours: bool = True  # name and bounds are what logstore makes; another's table is left alone
    changed: datetime | None = None  # since when it is in its state
    rows: int = 0
    bytes: int = 0  # of the table
    segments: int = 0  # sealed ones
    cold_rows: int = 0
    cold_bytes: int = 0
    quarantined: int = 0  # segments that cannot be trusted

    @property
    def sealed(self) -> bool:
        """Every row is in a trusted segment: a month turns cold only after its segments were compared with it."""
        return self.state in ("cold", "purged") and not self.quarantined


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaving:
    """A month that goes, and why."""

    month: Month
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What retention asks for, oldest first."""

    archive: tuple[Leaving, ...] = ()  # from PostgreSQL's log into segments
    purge: tuple[Leaving, ...] = ()  # their detached tables: the undo window is over
    remove: tuple[Leaving, ...] = ()  # from the archive: these rows are gone for good


def plan(months: Iterable[Month], policies: Iterable[Policy], *, now: datetime, undo: timedelta) -> Decision:
    """Decide for every table by itself."""
    given = sorted(months, key=lambda month: (month.lower, month.parent))
    rules = {(policy.parent, policy.tier): policy for policy in policies}
    archive: list[Leaving] = []
    remove: list[Leaving] = []
    for parent in sorted({month.parent for month in given}):
        own = [month for month in given if month.parent == parent]
        if hot := rules.get((parent, "hot")):
            archive += _archive(own, hot, now)
        if cold := rules.get((parent, "cold")):
            remove += _remove(own, cold, now)
    purge = [
        Leaving(month=month, reason=f"the undo window of {_days(undo)} is over")
        for month in given
        if may_purge(month, now=now, undo=undo)
    ]
    order = lambda leaving: (leaving.month.lower, leaving.month.parent)  # noqa: E731
    return Decision(
        archive=tuple(sorted(archive, key=order)), purge=tuple(purge), remove=tuple(sorted(remove, key=order))
    )


def may_purge(month: Month, *, now: datetime, undo: timedelta) -> bool:
    """Whether a month's table may go: out of the log, safe in segments, and the window for second thoughts over."""
    gone = month.state == "cold" and not month.attached and month.sealed
    return gone and month.changed is not None and now - month.changed > undo


def _archive(months: Sequence[Month], policy: Policy, now: datetime) -> list[Leaving]:
    """Months that are made ahead are no part of it: they must not stand for the minimum, nor push anybody out.

    Nor is one whose table somebody dropped by hand: it holds nothing, and must not end it for those behind it.
    """
    hot = [month for month in months if month.state in ("open", "closed") and month.exists and month.lower <= now]
    return _prefix(hot, policy, now, size=lambda m: m.bytes, may_go=lambda m: m.ours and m.attached and not m.pending)


def _remove(months: Sequence[Month], policy: Policy, now: datetime) -> list[Leaving]:
    """Only months of which nothing but segments is left; an older one that is still in PostgreSQL ends it.

    A bad segment does not: nothing is left to write it again from, and what is behind it would be kept for ever.
    """
    there = [month for month in months if month.exists or month.segments or month.quarantined]
    cold = [month for month in there if month.state in ("cold", "purged")]
    before = next((n for n, month in enumerate(there) if month.state not in ("cold", "purged")), len(there))
    leaving = _prefix(cold, policy, now, size=lambda m: m.cold_bytes, may_go=lambda m: m.state == "purged")
    return [replace(one, reason=f"{one.reason}{_loss(one.month)}") for one in leaving[:before]]


def _loss(month: Month) -> str:
    """What goes although nobody could read it; a backup of the file would be of no use any more."""
    if not month.quarantined:
        return ""
    noun = "segment goes" if month.quarantined == 1 else "segments go"
    return f"; {month.quarantined} quarantined {noun} with it, and the rows that could not be read"


def _prefix(
    months: Sequence[Month],
    policy: Policy,
    now: datetime,
    *,
    size: Callable[[Month], int],
    may_go: Callable[[Month], bool],
) -> list[Leaving]:
    leaving: list[Leaving] = []
    count, total = len(months), sum(size(month) for month in months)
    for month in months:
        reason = _reason(policy, age=now - month.upper, total=total, count=count)
        if reason is None or count <= policy.min_count or month.upper >= now or not may_go(month):
            break
        leaving.append(Leaving(month=month, reason=reason))
        count, total = count - 1, total - size(month)
    return leaving


def _reason(policy: Policy, *, age: timedelta, total: int, count: int) -> str | None:
    """The first knob that is over its limit."""
    if policy.max_age is not None and age > policy.max_age:
        return f"it ended {_days(age)} ago, {policy.tier} keeps {_days(policy.max_age)}"
    if policy.max_bytes is not None and total > policy.max_bytes:
        return f"{policy.tier} holds {total:,} bytes and keeps {policy.max_bytes:,}"
    if policy.max_count is not None and count > policy.max_count:
        return f"{policy.tier} holds {count} months and keeps {policy.max_count}"
    return None


def _days(span: timedelta) -> str:
    return "1 day" if span.days == 1 else f"{span.days} days"
