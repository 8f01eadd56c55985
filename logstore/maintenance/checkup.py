"""Health: what an operator must know before it hurts, with a level and what to do about it. It only reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from logstore import display, retention
from logstore.maintenance import runs
from logstore.maintenance.planning import is_hidden, moment, undo_window
from logstore.maintenance.runs import Entry
from logstore.maintenance.survey import Survey, look
from logstore.retention import Month
from logstore.settings import Settings
from logstore.statements import statements
from logstore.store import LogStore
from logstore.tables import PARENTS

LEVELS = ("ok", "warn", "act")
_RUNWAY_DAYS = 7  # fewer than these many days ahead: warn
_DISK_DAYS = {"act": 7, "warn": 30}
_APPLY = "run `python -m logstore maintain apply`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One check: how it stands and, unless it is ok, what to do."""

    check: str
    level: str
    what: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Every check; the level is that of the worst."""

    now: datetime
    findings: tuple[Finding, ...]

    @property
    def level(self) -> str:
        return max((finding.level for finding in self.findings), key=LEVELS.index, default="ok")

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "now": self.now.isoformat(),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def _repr_html_(self) -> str:
        rows = [asdict(finding).values() for finding in self.findings]
        return display.table(("check", "level", "what", "advice"), rows, caption=f"health: {self.level}", most=1000)


def health(store: LogStore, *, now: datetime | None = None) -> Health:
    """How the log stands."""
    at = moment(now)
    survey = look(store.database, now=at)
    with store.database.connection(autocommit=True) as connection:
        row = connection.execute(statements("postgres", "maintenance")["open_letters"]).fetchone()
        last = runs.recent(connection, limit=1)
        at_work = connection.execute(statements("postgres", "maintenance")["lock_holder"]).fetchone() is not None
    letters = 0 if row is None else int(row[0])
    growth = bytes_a_day(survey.months, at)
    return Health(
        now=at,
        findings=(
            _runway(survey, growth, at),
            _overdue(survey, store.settings, at),
            _unarchived(survey),
            _detaches(survey),
            _awaiting_purge(survey, store.settings, at),
            _quarantined(survey),
            _foreign(survey),
            _letters(letters),
            _last_run(last, at_work=at_work),
            *_disks(store, growth),
        ),
    )


def bytes_a_day(months: tuple[Month, ...], now: datetime) -> float:
    """The recent growth of the log: of each table the greater of the current month's so far and the last one's."""
    found = 0.0
    for parent in PARENTS:
        rates = [0.0]
        for month in months:
            if month.parent == parent and month.attached and month.lower <= now < month.upper + timedelta(days=31):
                days = (min(now, month.upper) - month.lower) / timedelta(days=1)
                rates.append(month.bytes / max(days, 1.0) if month.rows else 0.0)  # empty indexes have a size, too
        found += max(rates)
    return found


def _runway(survey: Survey, growth: float, now: datetime) -> Finding:
    """How far ahead months exist without a hole; a log that nobody writes to has time."""
    ends = {parent: _end_of_runway(survey.months, parent, now) for parent in PARENTS}
    if not survey.months:
        return Finding(check="runway", level="ok", what="the log is empty; the first writer makes its months")
    table, end = min(ends.items(), key=lambda item: item[1])
    days = (end - now) / timedelta(days=1)
    rate = f"about {size_text(growth)} a day are written"
    if days <= 0:
        level = "act" if growth else "warn"
        return Finding(check="runway", level=level, what=f"{table} has no month for now; {rate}", advice=_APPLY)
    what = f"months exist for {days:.0f} more days (until {end:%Y-%m-%d}); {rate}"
    return (
        Finding(check="runway", level="ok", what=what)
        if days >= _RUNWAY_DAYS
        else Finding(check="runway", level="warn", what=what, advice=_APPLY)
    )


def _end_of_runway(months: tuple[Month, ...], parent: str, now: datetime) -> datetime:
    end = now
    for month in months:  # oldest first
        usable = month.parent == parent and month.state == "open" and month.attached and not month.pending
        if usable and month.lower <= end < month.upper:
            end = month.upper
    return end


def _overdue(survey: Survey, settings: Settings, now: datetime) -> Finding:
    due = retention.plan(survey.months, survey.policies, now=now, undo=undo_window(settings)).archive
    names = [leaving.month.name for leaving in due]
    return _some("retention", names, "past retention and still in PostgreSQL", _APPLY, good="nothing is past retention")


def _unarchived(survey: Survey) -> Finding:
    names = [month.name for month in survey.months if month.state == "closed"]
    advice = f"{_APPLY} to archive what is due, or `python -m logstore restore NAME` to write to it again"
    return _some("closed", names, "closed but not served from the archive", advice, good="no month is closed half-way")


def _detaches(survey: Survey) -> Finding:
    hidden = [month.name for month in survey.months if is_hidden(month)]
    if hidden:
        what = "out of the log although nothing else holds their rows"
        return _some("detach", hidden, what, f"{_APPLY}: it puts them back", level="act")
    pending = [month.name for month in survey.months if month.pending]
    return _some("detach", pending, "detached half-way", f"{_APPLY}: it finalises first", good="no detach is half done")


def _awaiting_purge(survey: Survey, settings: Settings, now: datetime) -> Finding:
    waiting = [month for month in survey.months if month.state == "cold" and month.exists and not month.attached]
    over = [m.name for m in waiting if retention.may_purge(m, now=now, undo=undo_window(settings))]
    size = size_text(sum(month.bytes for month in waiting))
    good = (
        f"{len(waiting)} detached tables ({size}) wait for the end of their undo window" if waiting else "nothing waits"
    )
    return _some("purge", over, "past the undo window and still on disk", _APPLY, good=good)


def _quarantined(survey: Survey) -> Finding:
    names = [month.name for month in survey.months if month.quarantined]
    advice = "run `python -m logstore verify`: it says for each file what is wrong and how to get it back"
    return _some("quarantine", names, "with quarantined segments", advice, level="act", good="every segment is trusted")


def _foreign(survey: Survey) -> Finding:
    names = [month.name for month in survey.months if not month.ours]
    advice = (
        "logstore did not make them and leaves them alone, and retention stops there: rename them or move their rows"
    )
    return _some(
        "strangers", names, "with a name or bounds of their own", advice, good="every partition is a month of ours"
    )


def _letters(count: int) -> Finding:
    if not count:
        return Finding(check="dead letters", level="ok", what="no row waits for a person")
    advice = "see `python -m logstore dead-letters list`: requeue or discard them"
    return Finding(check="dead letters", level="warn", what=f"{count:,} rows could not be loaded", advice=advice)


def _last_run(last: list[Entry], *, at_work: bool) -> Finding:
    if not last:
        return Finding(check="last run", level="ok", what="maintenance has not run yet")
    entry = last[0]
    what = f"{entry.what} by {entry.actor} at {entry.time:%Y-%m-%d %H:%M} UTC: {entry.result}"
    if entry.result == "failed":
        what, advice = f"{what}: {entry.error}", f"see to it, then {_APPLY}"
        return Finding(check="last run", level="warn", what=what, advice=advice)
    if entry.result == "started" and not at_work:
        return Finding(check="last run", level="warn", what=f"{what}, but never ended", advice=f"{_APPLY}: it goes on")
    return Finding(check="last run", level="ok", what=what)


def _disks(store: LogStore, growth: float) -> Iterator[Finding]:
    """Free space against growth. A server elsewhere has its disk elsewhere: there only the archive is looked at."""
    places = [store.settings.archive] + ([store.settings.home] if store.database.server is not None else [])
    seen = set()
    for place in places:
        there = _existing(place)
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield disk_finding(place, shutil.disk_usage(there).free, growth)


def disk_finding(place: Path, free: int, growth: float) -> Finding:
    """Whether the space lasts, should the log go on growing as it did."""
    days = free / growth if growth else float("inf")
    level = next((level for level, most in _DISK_DAYS.items() if days < most), "ok")
    lasts = f", enough for {days:,.0f} days" if growth and days < 3650 else ""
    what = f"{size_text(free)} free under {place}{lasts}"
    advice = "" if level == "ok" else "free some space, or keep less: `python -m logstore maintain policy`"
    return Finding(check="disk", level=level, what=what, advice=advice)


def _existing(place: Path) -> Path:
    return next(path for path in (place, *place.absolute().parents) if path.exists())


def _some(check: str, names: list[str], what: str, advice: str, *, level: str = "warn", good: str = "") -> Finding:
    if not names:
        return Finding(check=check, level="ok", what=good)
    noun = "month" if len(names) == 1 else "months"
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return Finding(check=check, level=level, what=f"{len(names)} {noun} {what}: {shown}", advice=advice)


def size_text(count: float) -> str:
    """Bytes for a person: 1.5 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
