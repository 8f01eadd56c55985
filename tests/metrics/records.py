"""Random records, ranges and questions for metrics: few values, so that groups meet; times around edges of buckets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from logstore.metrics import buckets
from logstore.metrics.measures import DIMENSIONS, MEASURES
from tests import records_of

# Two neighbouring months, with edges of days, hours and weeks in reach.
EDGES = (
    datetime(2026, 3, 1, tzinfo=UTC),
    datetime(2026, 3, 31, 22, tzinfo=UTC),
    datetime(2026, 4, 1, tzinfo=UTC),
    datetime(2026, 4, 5, tzinfo=UTC),
)
MONTHS = ("2026_02", "2026_03", "2026_04")
times = st.builds(
    lambda edge, part: edge + part,
    st.sampled_from(EDGES),
    st.sampled_from([timedelta(0), timedelta(microseconds=-1), timedelta(microseconds=1)])
    | st.timedeltas(timedelta(hours=-3), timedelta(hours=3))
    | st.timedeltas(timedelta(days=-3), timedelta(days=3)),
)
attempts = st.builds(
    lambda base, time, latency, manual, code: replace(
        base, time=time, event_time=time - latency, manual=manual, code=code
    ),
    records_of.attempts,
    times,
    st.timedeltas(timedelta(seconds=-1), timedelta(hours=2)) | st.sampled_from([timedelta(0), timedelta(seconds=1)]),
    st.booleans(),
    st.sampled_from([None, "", "200", "500"]),
)
events = st.builds(
    lambda base, time, destination: replace(base, time=time, destination_id=destination),
    records_of.events,
    times,
    st.sampled_from(["", "d1"]),
)
ranges = st.builds(
    lambda start, length: (start, start + length),
    times,
    st.timedeltas(timedelta(microseconds=1), timedelta(days=40))
    | st.sampled_from([timedelta(days=9), timedelta(hours=6)]),
)
_WIDTH = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "M": 2_592_000}


@st.composite
def questions(draw: st.DrawFn, kind: Any = "attempt") -> tuple[tuple[datetime, datetime], dict[str, Any]]:
    """A range, and everything else that a question has; not more than a few hundred slots."""
    start, end = draw(ranges)
    seconds = (end - start).total_seconds()
    units = [unit for unit in buckets.MOST if seconds / _WIDTH[unit] < 300]
    unit = draw(st.sampled_from(units))
    granularity = draw(st.none() | st.integers(1, buckets.MOST[unit]).map(lambda n: f"{n}{unit}"))
    dimensions = tuple(draw(st.lists(st.sampled_from(DIMENSIONS[kind]), unique=True, max_size=3)))
    # Without latencies roll-ups may answer the middle of the range, and the records its edges.
    counted = tuple(name for name in MEASURES[kind] if not name.startswith("latency"))
    measures = draw(st.sampled_from([tuple(MEASURES[kind]), counted]))
    return (start, end), {"measures": measures, "dimensions": dimensions, "granularity": granularity}
