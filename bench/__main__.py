"""make bench: every promise of speed as a ratio against what a user would pick instead, in one run."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Result

CASES = ("paging", "insert", "export", "ad_hoc", "metrics", "fields", "maintenance", "load")
_RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--case", choices=CASES, help="only this one")
    given = parser.parse_args()
    results: dict[str, list[Result]] = {}
    for case in [given.case] if given.case else CASES:
        print(f"\n{case}", flush=True)
        for result in importlib.import_module(f"bench.{case}").run(given.size):
            results.setdefault(case, []).append(result)
            _show(result)
    _save(given.size, results)
    broken = [result.name for found in results.values() for result in found if _broken(result)]
    print(f"\nbroken promises: {', '.join(broken)}" if broken else "\nevery promise holds")
    return 1 if broken else 0


def _broken(result: Result) -> bool:
    return any(result.kept(rival) is False for rival in result.rivals)


def _show(result: Result) -> None:
    own = result.product
    print(f"  {result.name}: {_ms(own.minimum)} (median {_ms(own.median)}, spread {own.spread:.0%})", flush=True)
    for rival, timing in result.rivals.items():
        most = result.promises.get(rival)
        promise = "" if most is None else f"  promised ≤ {most:.2f}: {'ok' if result.kept(rival) else 'BROKEN'}"
        print(f"      {result.ratio(rival):6.2f} × {rival} ({_ms(timing.minimum)}){promise}", flush=True)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _save(size: str, results: dict[str, list[Result]]) -> None:
    _RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    document = {
        "time": now.isoformat(timespec="seconds"),
        "size": size,
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "cases": {case: [result.to_dict() for result in found] for case, found in results.items()},
    }
    path = _RESULTS / f"{now:%Y%m%dT%H%M%SZ}-{size}.json"
    path.write_text(json.dumps(document, indent=1))
    print(f"\nsaved {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    sys.exit(main())
