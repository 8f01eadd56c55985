"""What is counted rather than listed: histograms and sums; over the whole range and both tiers.

Counts come from the store's metrics, and so from roll-ups wherever these know enough: then they cost the same however many
records there are. What has to read the records is asked through `later`, within a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, TypeVar

import pandas

from logstore import metrics
from logstore.cursor import Kind
from logstore.metrics import Question, rollups
from logstore.records import Selection, TimeFilter
from logstore.store import LogStore
from logstore.workbench.counts.bars import Bars
from logstore.workbench.times import Window

T = TypeVar("T")
READ_MOST = 15_000  # records that are read for a count which roll-ups do not have; for more, somebody must ask
STACKED: dict[Kind, tuple[str, ...]] = {
    "attempt": ("failed", "success"),  # as bars are stacked: what needs attention stands on the ground
    "event": ("published",),  # what became of them takes a look at their attempts: range_outcomes.py
}


def quick(kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> bool:
    """Whether a histogram needs no look at the records but those at the edges of the window."""
    asked = {"selection": selection, "granularity": Bars.of(window, zone).grain, "dimensions": _by(kind)}
    question = Question.of(kind, window.lower, window.upper, **asked)  # type: ignore[arg-type]
    return rollups.serves(question) is not None


def histogram(store: LogStore, kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> pandas.DataFrame:
    """Records per bar and outcome; `attrs` carry the bars' width and warnings of what could not be read."""
    bars = Bars.of(window, zone)
    found = measured(store, kind, selection, window, dimensions=_by(kind), granularity=bars.grain)
    counted: dict[tuple[datetime, str], int] = {}
    for row in found:
        if row["count"]:
            key = (
                bars.start(row["time"] if row["time"] >= bars.origin else bars.origin),
                row.get("status", "published"),
            )
            counted[key] = counted.get(key, 0) + row["count"]
    frame = bars.frame(counted, STACKED[kind], window.upper)
    frame.attrs["warnings"] = found.warnings
    return frame


def _by(kind: Kind) -> tuple[str, ...]:
    return ("status",) if kind == "attempt" else ()


def measured(store: LogStore, kind: Kind, selection: Selection, window: Window, **asked: Any) -> metrics.Metrics:
    """The store's metrics over a window; a selection's own time is the window's matter."""
    selection = selection.but(time=TimeFilter())
    return metrics.measure(store.tiers, kind, window.lower, window.upper, selection=selection, **asked)


@dataclass(frozen=True, slots=True)
class Many:
    """So many records that they are not read without being asked."""

    records: int


def unless_many(
    store: LogStore,
    kind: Kind,
    selection: Selection,
    window: Window,
    count: Callable[[], T],
    *,
    everything: bool = False,
) -> T | Many:
    """What has to read all these records, if they are few enough, roll-ups cannot tell, or `everything` is wanted."""
    asked = Question.of(kind, window.lower, window.upper, selection=selection.but(time=TimeFilter()))
    if not everything and rollups.serves(asked) is not None:
        found = measured(store, kind, selection, window)
        if found.rows and found.rows[0][0] > READ_MOST:
            return Many(found.rows[0][0])
    return count()


def unread(*found: metrics.Metrics) -> tuple[str, ...]:
    """What several counts lack, each once."""
    return tuple(dict.fromkeys(warning for part in found for warning in part.warnings))
