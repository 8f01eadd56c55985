"""The answer: groups of all tiers merged, series filled, measures computed; rows for charts and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing

from logstore import deadline, display
from logstore.errors import TooBroad
from logstore.metrics.measures import LATENCIES, LATENCIES_MOST, MEASURES
from logstore.metrics.question import ROWS_MOST, Question
from logstore.records import from_micros, to_micros

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True, slots=True)
class Metrics:
    """Measures by bucket and dimensions.

    With a granularity `columns` are `time` (the bucket's start), the dimensions, the measures, and `partial`: the bucket is
    not wholly inside the range. Without one they are the dimensions and the measures. Latencies are seconds.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    unit: str  # what is counted: events or attempts
    start: datetime
    end: datetime
    granularity: str | None
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    source: str  # roll-up, scan, roll-up and scan (of the edges), or spark
    tiers: tuple[str, ...] = ()  # that a scan read
    warnings: tuple[str, ...] = ()  # what could not be read and is missing here
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame; times are datetime64[us, UTC], counts int64, everything else float64 with NaN for null."""
        import pandas

        frame = pandas.DataFrame(list(self.rows), columns=list(self.columns))
        types = {name: "int64" if name.endswith("count") else "float64" for name in self.measures}
        if self.granularity is not None:
            types |= {"time": "datetime64[us, UTC]", "partial": "bool"}
        return frame.astype(types)

    def _repr_html_(self) -> str:
        source = f"{self.source} in {self.seconds:.3f} s"
        caption = f"{display.counted(len(self), 'row')} of {self.unit}, {source}"
        return display.table(self.columns, self.rows, caption=caption, notes=self.warnings)


@dataclass(slots=True)
class Groups:
    """Parts by (bucket, *dimensions), gathered from as many readings as it takes."""

    question: Question
    found: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    tiers: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    gathered: int = 0  # latencies

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows of bucket, dimensions, parts; whatever an engine calls a bucket, microseconds or a time."""
        split, names = 1 + len(self.question.dimensions), self.question.parts
        for row in rows:
            if not row[split]:
                continue  # an aggregate over nothing still gives a row when there is nothing to group by
            start = to_micros(row[0]) if isinstance(row[0], datetime) else row[0]
            key = (start, *row[1:split])
            parts = dict(zip(names, row[split:], strict=True))
            if LATENCIES in parts:
                parts[LATENCIES] = [_packed(parts[LATENCIES])]  # a list, so that bags of one group add up
                self._gather(parts["records"])
            there = self.found.get(key)
            self.found[key] = parts if there is None else {name: there[name] + parts[name] for name in names}
        if len(self.found) > ROWS_MOST:
            raise self.question.too_many()

    def _gather(self, latencies: int) -> None:
        """Whoever set no time limit may gather as many as the memory holds."""
        self.gathered += latencies
        if self.gathered > LATENCIES_MOST and deadline.left() is not None:
            raise TooBroad(
                f"Too broad: a percentile of more than {LATENCIES_MOST:,} attempts; narrow the time or choose a tenant."
            )

    def finish(self, *, source: str, seconds: float) -> Metrics:
        asked = self.question
        time = () if asked.granularity is None else ("time",)
        partial = () if asked.granularity is None else ("partial",)
        return Metrics(
            columns=(*time, *asked.dimensions, *asked.measures, *partial),
            rows=tuple(self._rows()),
            unit=f"{asked.kind}s",
            start=asked.start,
            end=asked.end,
            granularity=None if asked.granularity is None else str(asked.granularity),
            dimensions=asked.dimensions,
            measures=asked.measures,
            source=source,
            tiers=tuple(tier for tier in ("hot", "cold") if tier in self.tiers),
            warnings=tuple(self.warnings),
            seconds=seconds,
        )

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """One whole series after the other; without dimensions there is one series even over nothing."""
        asked = self.question
        starts = asked.starts()
        combinations = {key[1:] for key in self.found}
        if asked.granularity is not None and not asked.dimensions:
            combinations = {()}
        if len(starts) * len(combinations) > ROWS_MOST:
            raise asked.too_many(len(combinations))
        spans = list(self._spans(starts))
        nothing: dict[str, Any] = {part: () if part == LATENCIES else 0 for part in asked.parts}
        if LATENCIES in nothing:
            self._sort()
        values = [MEASURES[asked.kind][name].value for name in asked.measures]
        for combination in sorted(combinations, key=lambda c: [(v is not None, v) for v in c]):
            for start, (seconds, head, tail) in zip(starts, spans, strict=True):
                parts = self.found.get((start, *combination), nothing)
                yield (*head, *combination, *[value(parts, seconds) for value in values], *tail)

    def _sort(self) -> None:
        for parts in self.found.values():
            parts[LATENCIES] = numpy.sort(numpy.concatenate(parts[LATENCIES]))

    def _spans(self, starts: list[int | None]) -> Iterator[tuple[float, tuple[Any, ...], tuple[Any, ...]]]:
        """Of each bucket: its seconds inside the range, and what frames its rows: its start, and whether it is partial."""
        first, last = to_micros(self.question.start), to_micros(self.question.end)
        granularity = self.question.granularity
        for start, after in zip(starts, [*starts[1:], None], strict=True):
            if start is None or granularity is None:
                yield (last - first) / 1_000_000, (), ()
                return
            after = granularity.after(start) if after is None else after
            seconds = (min(after, last) - max(start, first)) / 1_000_000
            yield seconds, (from_micros(start),), (start < first or after > last,)


def _packed(latencies: Any) -> numpy.typing.NDArray[numpy.int64]:
    """Latencies as an engine gives them, 8 bytes each; PostgreSQL sends pairs of times in network order."""
    if isinstance(latencies, bytes):
        times = numpy.frombuffer(latencies, ">i8").reshape(-1, 2)
        latencies = times[:, 0] - times[:, 1]
    return numpy.asarray(latencies, numpy.int64)
