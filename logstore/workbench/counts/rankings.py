"""Tenants, destinations and topics by their failures, and the sums of a range; over both tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pandas

from logstore.errors import InvalidSelection, TooBroad
from logstore.metrics import Metrics
from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench.counts import last_times
from logstore.workbench.counts.measures import measured, unread
from logstore.workbench.times import Window


def ranking(store: LogStore, selection: Selection, window: Window, *, by: str) -> pandas.DataFrame:
    """Tenants or destinations, most failures first: attempts, failures, their rate and codes, last success and failure.

    `by` is a column or several, as `tenant_id` or `tenant_id,destination_id`, or `topic`. `unread` are the outcomes whose
    last time is in a file that cannot be read; `attrs` carry warnings.
    """
    names = tuple(by.split(","))
    ranks, warnings = _ranks(store, selection, window, names)
    return _ranked(ranks, names, warnings)


def tenants_and_destinations(store: LogStore, window: Window) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Both rankings of everybody; a tenant is the sum of its destinations, so they are read once."""
    ranks, warnings = _ranks(store, Selection(), window, ("tenant_id", "destination_id"))
    tenants: dict[tuple[str, ...], _Rank] = {}
    for (tenant, *_), rank in ranks.items():
        tenants.setdefault((tenant,), _Rank()).join(rank)
    return _ranked(tenants, ("tenant_id",), warnings), _ranked(ranks, ("tenant_id", "destination_id"), warnings)


def _ranks(
    store: LogStore, selection: Selection, window: Window, names: tuple[str, ...]
) -> tuple[dict[tuple[str, ...], _Rank], tuple[str, ...]]:
    ranks: dict[tuple[str, ...], _Rank] = {}
    found, warnings = _tries(store, selection, window, names)
    for row in found:
        codes = {row["code"] or "no code": row["count"]} if "code" in row else {}
        ranks.setdefault(tuple(row[name] for name in names), _Rank()).add(row["status"], row["count"], codes)
    if "tenant_id" in names and selection == selection.but(topics=(), event_ids=(), where=None):
        newest, holes = last_times.seen(store, selection, window)
        warnings += holes
        for seen in newest:
            rank = ranks.get(tuple(getattr(seen, name) for name in names))
            if rank is not None:
                rank.saw(seen)
    return ranks, tuple(dict.fromkeys(warnings))


def _tries(store: LogStore, selection: Selection, window: Window, names: tuple[str, ...]) -> tuple[Metrics, list[str]]:
    """Attempts by status and code; by status alone, and a warning, where that makes more groups than are given."""
    asked = (*names, "status")
    try:
        found = measured(store, "attempt", selection, window, dimensions=(*asked, "code"))
        return found, list(found.warnings)
    except InvalidSelection:
        pass
    try:
        found = measured(store, "attempt", selection, window, dimensions=asked)
    except InvalidSelection as error:
        raise TooBroad("Too many to rank: narrow the time or choose a tenant.") from error
    return found, [
        *found.warnings,
        "codes of failures, of which there are too many: narrow the time or choose a tenant",
    ]


def _ranked(ranks: dict[tuple[str, ...], _Rank], names: tuple[str, ...], warnings: tuple[str, ...]) -> pandas.DataFrame:
    rows = [(*key, *rank.row()) for key, rank in ranks.items()]
    order = sorted(rows, key=lambda row: (-row[len(names) + 1], -row[len(names)], row[: len(names)]))
    frame = pandas.DataFrame(order, columns=[*names, *_RANKED])
    frame.attrs["warnings"] = warnings
    return frame


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """How much happened; `warnings` name what could not be read."""

    events: int
    attempts: int
    failed: int
    warnings: tuple[str, ...]


def totals(store: LogStore, selection: Selection, window: Window) -> Totals:
    """Events that were published in a window, and attempts of the same time."""
    tried = measured(store, "attempt", selection, window, measures=("count", "failed_count"))
    published = measured(store, "event", selection.but(status=None, destination_ids=()), window)
    attempts, failed = tried.rows[0] if tried.rows else (0, 0)
    return Totals(
        events=published.rows[0][0] if published.rows else 0,
        attempts=attempts,
        failed=failed,
        warnings=unread(tried, published),
    )


_RANKED = ("attempts", "failed", "rate", "codes", "last_success", "last_failure", "unread")


@dataclass(slots=True)
class _Rank:
    """What is known of one tenant or destination while its parts are added up."""

    tries: dict[str, int] = field(default_factory=lambda: {"success": 0, "failed": 0})
    last: dict[str, datetime] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    codes: dict[str, int] = field(default_factory=dict)  # of failures

    def add(self, status: str, tries: int, codes: Mapping[str, int]) -> None:
        self.tries[status] += tries
        if status == "failed":
            self._add_codes(codes)

    def _add_codes(self, codes: Mapping[str, int]) -> None:
        for code, tries in codes.items():
            self.codes[code] = self.codes.get(code, 0) + tries

    def join(self, other: _Rank) -> None:
        """Add what is known of a part."""
        for status in self.tries:
            self.tries[status] += other.tries[status]
        self._add_codes(other.codes)
        for status, time in other.last.items():
            self.last[status] = max(time, self.last.get(status, time))
        self.unread |= other.unread

    def saw(self, seen: last_times.Seen) -> None:
        if seen.time is None:
            self.unread.add(seen.status)
        else:
            self.last[seen.status] = max(seen.time, self.last.get(seen.status, seen.time))

    def row(self) -> tuple[Any, ...]:
        attempts, failed = sum(self.tries.values()), self.tries["failed"]
        codes = ", ".join(f"{code} × {tries}" for code, tries in sorted(self.codes.items(), key=_most))
        rate = failed / attempts if attempts else 0.0
        # What was counted, and has no time, has one that nobody can read.
        unread = self.unread | {status for status, tries in self.tries.items() if tries and status not in self.last}
        last = (None if status in unread else self.last.get(status) for status in ("success", "failed"))
        return attempts, failed, rate, codes, *last, frozenset(unread)


def _most(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
