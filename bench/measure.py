"""Runs the product and its rivals by turns and compares their best times, so that a slow machine changes nothing."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

Work = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One question: the product's way beside others' ways of doing the same."""

    name: str
    product: Work
    rivals: dict[str, Work]
    promises: dict[str, float] = field(default_factory=dict)  # rival -> the most that product/rival may be
    repeat: int = 1  # runs inside one timing, for what is too quick to time alone
    rounds: int = 5
    before: Work | None = None  # before each timing, not timed


@dataclass(frozen=True, kw_only=True)
class Timing:
    minimum: float
    median: float
    spread: float  # (slowest - quickest) / quickest


@dataclass(frozen=True, kw_only=True)
class Result:
    name: str
    product: Timing
    rivals: dict[str, Timing]
    promises: dict[str, float]

    def ratio(self, rival: str) -> float:
        return self.product.minimum / self.rivals[rival].minimum

    def kept(self, rival: str) -> bool | None:
        """Whether the promise against this rival holds; None where there is none."""
        most = self.promises.get(rival)
        return None if most is None else self.ratio(rival) <= most

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratios": {rival: self.ratio(rival) for rival in self.rivals}}


def compare(comparison: Comparison) -> Result:
    """Time everything once as a warm-up, then in turns."""
    ways = {"": comparison.product, **comparison.rivals}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(comparison.rounds + 1):
        for name, work in ways.items():
            if comparison.before:
                comparison.before()
            taken = _time(work, comparison.repeat)
            if round_:
                seconds[name].append(taken)
    timings = {name: _timing(taken) for name, taken in seconds.items()}
    return Result(name=comparison.name, product=timings.pop(""), rivals=timings, promises=dict(comparison.promises))


def _time(work: Work, repeat: int) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - start) / repeat


def _timing(seconds: list[float]) -> Timing:
    return Timing(
        minimum=min(seconds), median=statistics.median(seconds), spread=(max(seconds) - min(seconds)) / min(seconds)
    )
