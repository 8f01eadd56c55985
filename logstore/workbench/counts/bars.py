"""The bars of a histogram: round times of a zone's clock, made of grains that roll-ups can count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

import pandas

from logstore import metrics
from logstore.records import to_micros
from logstore.workbench import times
from logstore.workbench.times import Window

_GRAINS = (
    "1d",
    "12h",
    "6h",
    "3h",
    "2h",
    "1h",
    "30m",
    "15m",
    "10m",
    "5m",
    "2m",
    "1m",
    "30s",
    "15s",
    "10s",
    "5s",
    "2s",
    "1s",
)
_SLOTS_MOST = 20_000  # of grains that are added up to bars


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of a window: where the first starts, how wide they are, and the grains that they are made of."""

    origin: datetime
    width: timedelta
    grain: str

    @classmethod
    def of(cls, window: Window, zone: tzinfo) -> Bars:
        """Bars on round times of the zone's clock, made of the widest grains that fit, which roll-ups like best."""
        width = times.bar_width(window.span)
        found = cls._made(times.bar_origin(window.lower, width, zone), width)
        if found.slots(window) > _SLOTS_MOST:  # years of hours, only for a zone's midnight
            found = cls._made(times.bar_origin(window.lower, width, UTC), width)
        return found

    @classmethod
    def _made(cls, origin: datetime, width: timedelta) -> Bars:
        edges = (to_micros(origin), width // timedelta(microseconds=1))
        fits = (g for g in _GRAINS if all(edge % (metrics.Granularity.parse(g).width or 1) == 0 for edge in edges))
        return cls(origin, width, next(fits, _GRAINS[-1]))

    def slots(self, window: Window) -> int:
        return metrics.Granularity.parse(self.grain).count(to_micros(window.lower), to_micros(window.upper))

    def start(self, time: datetime) -> datetime:
        return self.origin + (time - self.origin) // self.width * self.width

    def frame(
        self, counted: Mapping[tuple[datetime, str], int], outcomes: Sequence[str], upper: datetime
    ) -> pandas.DataFrame:
        """A row per bar and outcome (`start`, `outcome`, `count`), with zeros where nothing happened."""
        starts = times.bar_starts(self.origin, upper, self.width)
        rows = [(at, outcome, counted.get((at, outcome), 0)) for outcome in outcomes for at in starts]
        frame = pandas.DataFrame(rows, columns=["start", "outcome", "count"])
        frame.attrs["width"] = self.width
        frame.attrs["warnings"] = ()
        return frame
