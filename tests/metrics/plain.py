"""Metrics the slow and obvious way, in plain Python: what every engine is compared with."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from logstore.metrics import Granularity
from logstore.records import from_micros, to_micros


def measured(
    records: list[Any],
    start: datetime,
    end: datetime,
    *,
    measures: tuple[str, ...],
    dimensions: tuple[str, ...] = (),
    granularity: str | None = None,
) -> list[dict[str, Any]]:
    """The rows, ordered by series and time."""
    inside = [record for record in records if start <= record.time < end]
    width = None if granularity is None else Granularity.parse(granularity)
    series = {tuple(getattr(record, name) for name in dimensions) for record in inside}
    if width is None:
        slots: list[int] = [0]
    else:
        slots, slot = [], width.bucket(to_micros(start))
        while slot < to_micros(end):
            slots.append(slot)
            slot = width.after(slot)
        series = series or (set() if dimensions else {()})
    rows = []
    for combination in sorted(series, key=lambda values: [(value is not None, value) for value in values]):
        mine = [r for r in inside if tuple(getattr(r, name) for name in dimensions) == combination]
        for slot in slots:
            row: dict[str, Any] = {} if width is None else {"time": from_micros(slot)}
            row |= dict(zip(dimensions, combination, strict=True))
            first, last = to_micros(start), to_micros(end)
            if width is not None:
                first, last = max(first, slot), min(last, width.after(slot))
            here = [r for r in mine if first <= to_micros(r.time) < last]
            row |= {name: value(name, here, (last - first) / 1e6) for name in measures}
            if width is not None:
                row["partial"] = first > slot or last < width.after(slot)
            rows.append(row)
    return rows


def value(name: str, records: list[Any], seconds: float) -> Any:
    """One measure of the records of one group, as the issue words it."""
    count = len(records)
    if name in ("count", "rate"):
        return count if name == "count" else count / seconds
    successful, failed = (sum(r.status == s for r in records) for s in ("success", "failed"))
    if name.startswith("latency_p"):
        return percentile(sorted(to_micros(r.time) - to_micros(r.event_time) for r in records), int(name[-2:]) / 100)
    return {
        "successful_count": lambda: successful,
        "failed_count": lambda: failed,
        "error_rate": lambda: failed / count if count else None,
        "first_attempt_count": lambda: sum(r.attempt_number == 1 and not r.manual for r in records),
        "retry_count": lambda: sum(r.attempt_number > 1 for r in records),
        "manual_retry_count": lambda: sum(r.manual for r in records),
        "avg_attempt_number": lambda: sum(r.attempt_number for r in records) / count if count else None,
        "successful_rate": lambda: successful / seconds,
        "failed_rate": lambda: failed / seconds,
    }[name]()


def percentile(values: list[int], fraction: float) -> float | None:
    if not values:
        return None
    place = (len(values) - 1) * fraction
    lower, upper = values[math.floor(place)], values[math.ceil(place)]
    return (lower * (1 - (place % 1)) + upper * (place % 1)) / 1e6


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Equal rows; floats to 1e-9."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, wanted in other.items():
            got = one[name]
            if isinstance(wanted, float) and isinstance(got, float):
                assert math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-9), (name, one, other)
            else:
                assert type(got) is type(wanted) and got == wanted, (name, one, other)
