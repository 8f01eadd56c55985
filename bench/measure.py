"""Runs the product and its rivals by turns and compares their best times, so that a slow machine changes nothing."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Work = Callable[[], object]
ENOUGH = 0.05  # seconds that one timing of a quick work lasts; more repetitions would say nothing new
_SLICES = 10  # of one such timing
_CLOSE = 1.1  # of the quickest: a second timing within it confirms the first
_PATIENCE = 20.0  # seconds of one comparison after which nothing is timed again: what takes long is steadier by itself


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One question: the product's way beside others' ways of doing the same. A rival that is a number is a limit."""

    name: str
    product: Work
    rivals: Mapping[str, Work | float]
    promises: Mapping[str, float] = field(default_factory=dict)  # rival -> the most that product/rival may be
    repeat: int = 1  # the most runs inside one timing, for what is too quick to time alone
    rounds: int = 5
    before: Work | None = None  # before each timing, not timed


@dataclass(frozen=True, slots=True)
class Taken:
    """What a work returns when only a part of it counts: the seconds of that part."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Timing:
    minimum: float
    median: float
    spread: float  # (slowest - quickest) / quickest
    limit: bool = False  # a number of seconds that was set, not measured

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        quickest = min(seconds)
        return cls(minimum=quickest, median=statistics.median(seconds), spread=(max(seconds) - quickest) / quickest)

    def times(self, factor: float) -> Timing:
        return Timing(minimum=self.minimum * factor, median=self.median * factor, spread=self.spread)


@dataclass(frozen=True, kw_only=True)
class Result:
    name: str
    product: Timing
    rivals: Mapping[str, Timing]
    promises: Mapping[str, float]

    def ratio(self, rival: str) -> float:
        """Of the minima; against a limit, which is about what people usually see, of the product's median."""
        other = self.rivals[rival]
        return (self.product.median if other.limit else self.product.minimum) / other.minimum

    def kept(self, rival: str) -> bool | None:
        """Whether the promise against this rival holds; None where there is none."""
        most = self.promises.get(rival)
        return None if most is None else self.ratio(rival) <= most

    def broken(self) -> list[str]:
        return [rival for rival in self.rivals if self.kept(rival) is False]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratios": {rival: self.ratio(rival) for rival in self.rivals}}


def compare(comparison: Comparison) -> Result:
    """Time everything once as a warm-up, then in turns; up to twice as often where a busy machine leaves minima in doubt."""
    limits = {name: rival for name, rival in comparison.rivals.items() if isinstance(rival, int | float)}
    ways = {"": comparison.product} | {name: way for name, way in comparison.rivals.items() if callable(way)}
    repeats = {name: _repeat(comparison, way) for name, way in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    begun = time.perf_counter()
    for number in range(2 * comparison.rounds):
        late = time.perf_counter() - begun > _PATIENCE
        if number >= comparison.rounds and (late or all(map(_confirmed, seconds.values()))):
            break
        for name, best in _turn(comparison, ways, repeats).items():
            seconds[name].append(best)
    timings = {name: Timing.of(taken) for name, taken in seconds.items()}
    fixed = {name: Timing(minimum=limit, median=limit, spread=0, limit=True) for name, limit in limits.items()}
    return Result(
        name=comparison.name, product=timings.pop(""), rivals=timings | fixed, promises=dict(comparison.promises)
    )


def _confirmed(seconds: list[float]) -> bool:
    """Whether a second timing came close to the quickest; else that one had luck, or the others had none."""
    quickest, *others = sorted(seconds)
    return any(other <= quickest * _CLOSE for other in others)


def _repeat(comparison: Comparison, way: Work) -> int:
    """Warm up, and see how many runs make a timing long enough; a slow rival gets fewer, so that loops are bounded."""
    if comparison.repeat == 1:
        _turn(comparison, {"": way}, {"": 1})
        return 1
    quickest = min(_slice(way, 1) for _ in range(3))
    return max(1, min(comparison.repeat, round(ENOUGH / quickest)))


def _turn(comparison: Comparison, ways: Mapping[str, Work], repeats: Mapping[str, int]) -> dict[str, float]:
    """The seconds of one run of each way: of the best of some slices, the shorter the likelier that nobody disturbed it.

    The ways' slices follow one another, so that a machine that is slow for a while is so for all of them.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(_SLICES):
        for name, way in ways.items():
            runs = math.ceil(repeats[name] / _SLICES)
            if number * runs >= repeats[name]:
                continue
            if number == 0:
                gc.collect()
            if comparison.before:
                comparison.before()
            taken[name].append(_slice(way, runs))
    return {name: min(slices) for name, slices in taken.items()}


def _slice(way: Work, runs: int) -> float:
    taken: list[float] = []
    start = time.perf_counter()
    for _ in range(runs):
        found = way()
        if isinstance(found, Taken):
            taken.append(found.seconds)
    return (sum(taken) if taken else time.perf_counter() - start) / runs
