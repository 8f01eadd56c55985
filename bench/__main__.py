"""make bench: every promise of speed as a ratio against what a user would pick instead, in one run.

`--compare` says which ratios of the last two runs are not within 30 % of each other. `--sabotage` makes a promise worse on
purpose and succeeds when the run sees it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator

from bench import data, history, report, sabotage
from bench.measure import Result, Timing

CASES = (
    "paging",
    "lookup",
    "insert",
    "load",
    "export",
    "ad_hoc",
    "metrics",
    "pages",
    "growth",
    "fields",
    "maintenance",
)
_BUSY = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--case", choices=CASES, action="append", help="only this one; may be given several times")
    parser.add_argument("--compare", action="store_true", help="compare the last two runs and measure nothing")
    parser.add_argument("--sabotage", choices=tuple(sabotage.WAYS), help="make a promise worse on purpose")
    given = parser.parse_args()
    if given.compare:
        return _compare(given.size)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a run that is ended stops its servers too
    if given.sabotage:
        return _sabotage(given.sabotage, given.size)
    start, stolen = time.perf_counter(), history.stolen()
    results = _measure(given.case or CASES, given.size)
    seconds = time.perf_counter() - start
    busy = (history.stolen() - stolen) / (seconds * (os.cpu_count() or 1))
    path = history.save(given.size, results, seconds, busy=busy)
    print(f"\nsaved {path.name}, and {report.write().name} with its history, in {path.parent}")
    broken = [f"{r.name} ({', '.join(r.broken())})" for found in results.values() for r in found if r.broken()]
    if busy > _BUSY:
        print(f"the host gave {busy:.0%} of this machine's time to others: what broke may hold on a quieter one")
    print("\n  ".join(["broken promises:", *broken]) if broken else "every promise holds")
    return 1 if broken else 0


def _measure(cases: Iterator[str] | tuple[str, ...] | list[str], size: str) -> dict[str, list[Result]]:
    results: dict[str, list[Result]] = {}
    with contextlib.ExitStack() as last:
        last.callback(data.close)
        for case in cases:
            print(f"\n{case}", flush=True)
            start = time.perf_counter()
            for result in importlib.import_module(f"bench.{case}").run(size):
                results.setdefault(case, []).append(result)
                _show(result)
            print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    return results


def _show(result: Result) -> None:
    print(f"  {result.name}\n      {'':8}    {_times(result.product)}", flush=True)
    for rival, timing in result.rivals.items():
        most = result.promises.get(rival)
        promise = "" if most is None else f"  promised ≤ {most:.2f}: {'ok' if result.kept(rival) else 'BROKEN'}"
        print(f"      {result.ratio(rival):8.2f} ×  {_times(timing)}  {rival}{promise}", flush=True)


def _times(timing: Timing) -> str:
    if timing.limit:
        return f"{'':36}"
    return f"{_ms(timing.minimum):>10} min {_ms(timing.median):>10} median {timing.spread:>5.0%} spread"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _compare(size: str) -> int:
    pair = history.last_two(history.runs(size))
    if pair is None:
        print(f"nothing was measured twice at the size {size}: run `make bench SIZE={size}` again")
        return 2
    apart = list(history.differences(*pair))
    for (case, name, rival), before, after in apart:
        print(f"{case}: {name}: {before:.2f} × then {after:.2f} × {rival}")
    print(f"{len(apart)} of {len(pair[1])} ratios differ by more than 30 %")
    return 1 if apart else 0


def _sabotage(way: str, size: str) -> int:
    case, worse = sabotage.WAYS[way]
    with worse():
        found = _measure([case], size)[case]
    seen = [result.name for result in found if result.broken()]
    print(f"\nseen in {len(seen)} of {len(found)}" if seen else "\nnot seen")
    return 0 if seen else 1


if __name__ == "__main__":
    sys.exit(main())
