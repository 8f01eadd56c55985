"""A question for metrics, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from logstore import filters
from logstore.cursor import Kind
from logstore.errors import InvalidSelection
from logstore.metrics.buckets import Granularity
from logstore.metrics.measures import DIMENSIONS, LATENCIES, MEASURES, PARTS, Measure
from logstore.records import Selection, TimeFilter, from_micros, to_micros

ROWS_MOST = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked of one kind of record over [start, end)."""

    kind: Kind
    start: datetime
    end: datetime
    selection: Selection
    where: Any  # the filter's tree
    measures: tuple[str, ...]
    dimensions: tuple[str, ...]
    granularity: Granularity | None

    @classmethod
    def of(
        cls,
        kind: Kind,
        start: datetime,
        end: datetime,
        *,
        selection: Selection = Selection(),
        measures: Iterable[str] = ("count",),
        dimensions: Iterable[str] = (),
        granularity: str | None = None,
    ) -> Question:
        """The question, or InvalidSelection with what to change."""
        if not isinstance(selection, Selection):
            raise InvalidSelection("the selection must be a Selection(…)")
        if kind == "event" and selection.status is not None:
            raise InvalidSelection("events have no status; attempt_metrics answers which deliveries failed")
        start, end = _utc(start, "start"), _utc(end, "end")
        if start >= end:
            raise InvalidSelection(
                f"the range is empty: start {start.isoformat()} must be before end {end.isoformat()}"
            )
        chosen = _names(measures, "measures", MEASURES[kind])
        if not chosen:
            raise InvalidSelection(f"name at least one measure of {', '.join(MEASURES[kind])}")
        width = None if granularity is None else Granularity.parse(granularity)
        if width is not None:
            _check_slots(width, to_micros(start), to_micros(end))
        return cls(
            kind=kind,
            start=start,
            end=end,
            selection=selection,
            where=None if selection.where is None else filters.parse(selection.where, kind),
            measures=chosen,
            dimensions=_names(dimensions, "dimensions", DIMENSIONS[kind]),
            granularity=width,
        )

    @property
    def inside(self) -> Selection:
        """The selection, no wider than the range."""
        time = self.selection.time
        lower, upper = max(self.start, time.gte or self.start), min(self.end, time.lt or self.end)
        return self.selection.but(time=TimeFilter(gte=lower, lt=upper, gt=time.gt, lte=time.lte))

    def over(self, lower: datetime, upper: datetime) -> Question:
        """The same question about a stretch of its range alone; its buckets stay where they are."""
        return replace(self, selection=self.inside.but(time=TimeFilter(gte=lower, lt=upper)))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that the measures are made of, as engines must give them after the dimensions."""
        wanted = {part for measure in self._measures() for part in measure.parts} | {"records"}
        return tuple(part for part in (*PARTS, LATENCIES) if part in wanted)

    def _measures(self) -> list[Measure]:
        return [MEASURES[self.kind][name] for name in self.measures]

    def starts(self) -> list[int | None]:
        """The starts of all buckets, or one None where time is not cut."""
        if self.granularity is None:
            return [None]
        return [*self.granularity.starts(to_micros(self.start), to_micros(self.end))]

    def too_many(self, combinations: int | None = None) -> InvalidSelection:
        """The refusal of an answer that nobody could read; `combinations` are as many as were found."""
        slots = len(self.starts())
        by = f" by {', '.join(self.dimensions)}" if self.dimensions else ""
        size = f"{slots} time slots × {combinations} combinations" if combinations else f"more than {ROWS_MOST} groups"
        return InvalidSelection(
            f"that is {size}{by}; at most {ROWS_MOST} rows are given: shorten the range, take wider buckets, "
            "fewer dimensions, or select fewer records"
        )


def _utc(time: datetime, name: str) -> datetime:
    if not isinstance(time, datetime) or time.utcoffset() is None:
        raise InvalidSelection(f"{name} must be a datetime with a time zone, not {time!r}: add tzinfo=datetime.UTC")
    return time.astimezone(UTC)


def _names(given: Iterable[str], what: str, known: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidSelection(f"{what} takes a tuple of names: write {what}=({given!r},)")
    names = tuple(dict.fromkeys(given))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidSelection(f"unknown {what} {', '.join(map(repr, unknown))}: known are {', '.join(known)}")
    return names


def _check_slots(granularity: Granularity, start: int, end: int) -> None:
    slots = granularity.count(start, end)
    if slots > ROWS_MOST:
        raise InvalidSelection(
            f"the range has {slots} slots of {granularity}; at most {ROWS_MOST} are given: "
            "shorten the range or take wider buckets"
        )
    try:
        from_micros(granularity.bucket(start))
    except OverflowError:
        raise InvalidSelection(f"the bucket of {granularity} at the start begins before the year 1") from None
