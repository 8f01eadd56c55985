"""What is measured: parts that engines count and that add up over tiers, and measures that are made of parts.

A part is an aggregate that reads the same in PostgreSQL, DuckDB and Spark. Percentiles do not add up, so their part is the
bag of all latencies of a group, 8 bytes each; the bags of all tiers together give the exact percentile, in one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logstore.cursor import Kind

DIMENSIONS: dict[Kind, tuple[str, ...]] = {
    "event": ("tenant_id", "topic", "destination_id"),
    "attempt": ("tenant_id", "destination_id", "topic", "status", "code", "manual", "attempt_number"),
}

# name -> aggregate; `records` comes first and is always asked for, because a group without records is none.
PARTS = {
    "records": "count(*)",
    "successful": "count(*) FILTER (WHERE status = 'success')",
    "failed": "count(*) FILTER (WHERE status = 'failed')",
    "first_attempts": "count(*) FILTER (WHERE attempt_number = 1 AND NOT manual)",
    "retries": "count(*) FILTER (WHERE attempt_number > 1)",
    "manual_retries": "count(*) FILTER (WHERE manual)",
    "numbers": "sum(attempt_number)",
}
LATENCIES = "latencies"  # microseconds from event to attempt; how they are gathered is each engine's own
LATENCIES_MOST = 5_000_000  # that an answer with a time limit gathers: 40 MB

Parts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measure:
    """How a value is made of the parts of a group and the seconds of its bucket that lie inside the range."""

    parts: tuple[str, ...]
    value: Callable[[Parts, float], Any]
    whole: bool = False  # a whole number, 0 where there is nothing


def _count(part: str) -> Measure:
    return Measure((part,), lambda parts, _: parts[part], whole=True)


def _rate(part: str) -> Measure:
    return Measure((part,), lambda parts, seconds: parts[part] / seconds)


def _share(part: str) -> Measure:
    """Null without records: no traffic is not "no errors"."""
    return Measure((part,), lambda parts, _: parts[part] / parts["records"] if parts["records"] else None)


def _percentile(fraction: float) -> Measure:
    return Measure((LATENCIES,), lambda parts, _: percentile(parts[LATENCIES], fraction))


MEASURES: dict[Kind, dict[str, Measure]] = {
    "event": {"count": _count("records"), "rate": _rate("records")},
    "attempt": {
        "count": _count("records"),
        "successful_count": _count("successful"),
        "failed_count": _count("failed"),
        "error_rate": _share("failed"),
        "first_attempt_count": _count("first_attempts"),
        "retry_count": _count("retries"),
        "manual_retry_count": _count("manual_retries"),
        "avg_attempt_number": _share("numbers"),
        "rate": _rate("records"),
        "successful_rate": _rate("successful"),
        "failed_rate": _rate("failed"),
        "latency_p50": _percentile(0.50),
        "latency_p95": _percentile(0.95),
        "latency_p99": _percentile(0.99),
    },
}


def percentile(sorted_micros: Sequence[int], fraction: float) -> float | None:
    """The continuous percentile in seconds: between neighbours it interpolates, as percentile_cont does."""
    if len(sorted_micros) == 0:
        return None
    place = fraction * (len(sorted_micros) - 1)
    low = math.floor(place)
    below, above = int(sorted_micros[low]), int(sorted_micros[math.ceil(place)])
    return (below + (above - below) * (place - low)) / 1_000_000
