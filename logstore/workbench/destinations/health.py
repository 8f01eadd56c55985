"""How destinations did over time: error rates, codes, time to success; over both tiers, by the store's own measures.

Pictures are made of whole buckets, a little wider than the range: so roll-ups answer them, and no bar is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pandas

from logstore.metrics import Granularity
from logstore.records import Selection, from_micros, to_micros
from logstore.store import LogStore
from logstore.workbench.counts import measures, rankings
from logstore.workbench.counts.measures import Many
from logstore.workbench.times import Window

TRENDS_MOST = 100  # rows of a ranking that get a line
CODES_MOST = 6  # that the picture tells apart
OTHER = "other codes"
_WIDTHS = ("1m", "5m", "15m", "1h", "3h", "6h", "12h", "1d", "2d", "7d", "14d", "1M", "3M")
_SLOTS_MOST = 45
_TO_SUCCESS = ("count", "latency_p50", "latency_p95", "latency_p99")
Key = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """A ranking, and for its first rows how the error rate went; `warnings` name what could not be read."""

    rows: pandas.DataFrame
    trends: list[list[float | None]]
    width: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """One destination: its row of the ranking, if it has one, how soon it took events, and when it last answered."""

    row: dict[str, Any] | None
    successes: int
    percentiles: tuple[float | None, float | None, float | None]  # seconds: p50, p95, p99; None of too many
    last_success: datetime | None
    last_failure: datetime | None
    warnings: tuple[str, ...] = ()


def granularity(span: timedelta, *, finest: str = "1m") -> Granularity:
    """The narrowest width, `finest` or wider, that gives a line few enough points."""
    widths = [Granularity.parse(text) for text in _WIDTHS[_WIDTHS.index(finest) :]]
    micros = span // timedelta(microseconds=1)
    return next((width for width in widths if width.count(0, max(micros, 1)) <= _SLOTS_MOST), widths[-1])


def whole(window: Window, width: Granularity) -> Window:
    """The window, widened to whole buckets."""
    lower, last = (width.bucket(to_micros(edge)) for edge in (window.lower, window.upper - timedelta(microseconds=1)))
    return Window(from_micros(lower), from_micros(width.after(last)))


def everybody(store: LogStore, window: Window) -> dict[str, Ranked]:
    """All tenants, and all destinations, each by failures."""
    tenants, destinations = rankings.tenants_and_destinations(store, window)
    return {
        "tenant_id": _with_trends(store, Selection(), window, tenants, ["tenant_id"]),
        "tenant_id,destination_id": _with_trends(
            store, Selection(), window, destinations, ["tenant_id", "destination_id"]
        ),
    }


def ranked(store: LogStore, selection: Selection, window: Window) -> Ranked:
    """The destinations of a selection by their failures, each with its error rate over time."""
    rows = rankings.ranking(store, selection, window, by="tenant_id,destination_id")
    return _with_trends(store, selection, window, rows, ["tenant_id", "destination_id"])


def _with_trends(
    store: LogStore, selection: Selection, window: Window, rows: pandas.DataFrame, keys: list[str]
) -> Ranked:
    # What roll-ups tell apart: hours by tenant, days by destination. A short range reads its records.
    rolled = "1h" if keys == ["tenant_id"] else "1d"
    width = granularity(window.span, finest=rolled if window.span >= timedelta(days=3) else "1m")
    shown = [tuple(row) for row in rows[keys].head(TRENDS_MOST).itertuples(index=False)]
    if len(rows) > TRENDS_MOST:
        selection = selection.but(tenant_ids=tuple(dict.fromkeys(key[0] for key in shown)))
    if len(rows) > TRENDS_MOST and len(keys) > 1:
        selection = selection.but(destination_ids=tuple(dict.fromkeys(key[1] for key in shown)))
    lines, unread = rates(store, selection, window, keys, width) if shown else ({}, ())
    warnings = tuple(dict.fromkeys((*rows.attrs["warnings"], *unread)))
    return Ranked(rows=rows, trends=[lines.get(key, []) for key in shown], width=str(width), warnings=warnings)


def rates(
    store: LogStore, selection: Selection, window: Window, keys: list[str], width: Granularity
) -> tuple[dict[Key, list[float | None]], tuple[str, ...]]:
    """The error rate per bucket, by the keys, None where nothing was tried; and what could not be read."""
    around = whole(window, width)
    measured = store.attempt_metrics(
        around.lower,
        around.upper,
        selection=selection,
        measures=("error_rate",),
        dimensions=tuple(keys),
        granularity=str(width),
    )
    found: dict[Key, list[float | None]] = {}
    for _, *key, rate, _ in measured.rows:
        found.setdefault(tuple(key), []).append(rate)
    return found, measured.warnings


def health(store: LogStore, where: Selection, window: Window) -> Health:
    """How one destination does in the range, and when it last answered, whenever that was."""
    rows = rankings.ranking(store, where, window, by="tenant_id,destination_id")
    good = where.but(status="success")
    measure = lambda: measures.measured(store, "attempt", good, window, measures=_TO_SUCCESS)  # noqa: E731 - an argument
    reached = measures.unless_many(store, "attempt", good, window, measure)
    known: tuple[Any, ...] = (0, None, None, None)
    if isinstance(reached, Many):
        known = (reached.records, None, None, None)
    elif reached.rows:
        known = reached.rows[0]
    success, failure = (store.list_attempt(where.but(status=status), limit=1) for status in ("success", "failed"))
    measured = () if isinstance(reached, Many) else reached.warnings
    warnings = (*rows.attrs["warnings"], *measured, *success.warnings, *failure.warnings)
    return Health(
        row=None if rows.empty else dict(zip(rows.columns, rows.iloc[0], strict=True)),
        successes=known[0],
        percentiles=(known[1], known[2], known[3]),
        last_success=success.data[0].time if success.data else None,
        last_failure=failure.data[0].time if failure.data else None,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def codes(store: LogStore, where: Selection, window: Window) -> pandas.DataFrame:
    """Failed attempts per bucket and code (`start`, `code`, `count`), the most frequent code first; rare ones together."""
    width = granularity(window.span, finest="1d" if window.span > timedelta(days=8) else "1m")
    around = whole(window, width)
    measured = store.attempt_metrics(
        around.lower,
        around.upper,
        selection=where.but(status="failed"),
        dimensions=("code",),
        granularity=str(width),
    )
    frame = measured.to_pandas().rename(columns={"time": "start"})[["code", "start", "count"]]
    frame["code"] = frame["code"].fillna("no code")
    totals = frame.groupby("code")["count"].sum().sort_values(ascending=False, kind="stable")
    named = list(totals.index[:CODES_MOST])
    frame.loc[~frame["code"].isin(named), "code"] = OTHER
    frame["code"] = pandas.Categorical(frame["code"], [*named, OTHER])
    found = frame.groupby(["code", "start"], observed=True)["count"].sum().reset_index()
    found.attrs |= {"width": str(width), "lower": around.lower, "upper": around.upper, "warnings": measured.warnings}
    return found
