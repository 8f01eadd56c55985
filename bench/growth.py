"""1×, 4× and 16× the rows: what must not grow beside one of the small size, what may beside a straight line."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench import data, export, load, metrics, paging
from bench.measure import Comparison, Result, Work, compare
from logstore import LogStore, Selection, archive, partitions

STEPS = (1, 4, 16)  # the last one is the log of the metrics case
_LOADED = {"small": 12_500, "full": 62_500}


def run(size: str) -> Iterator[Result]:
    most = metrics.ROWS[size]
    logs = {step: data.log(most * step // STEPS[-1], metrics.MONTHS) for step in STEPS}
    yield _flat("a deep page of a tenant", logs, _page, most=1.5, repeat=50)
    yield _flat("90 days by hour and status", logs, _metrics, most=4.0, repeat=5)
    yield _straight(f"export of a month, {most // metrics.MONTHS:,} attempts", {s: _export(logs[s]) for s in STEPS})
    yield from _loads(_LOADED[size])


def _flat(
    name: str, logs: Mapping[int, LogStore], work: Callable[[LogStore], Work], *, most: float, repeat: int
) -> Result:
    """16× the rows may cost no more than `most` × what 1× costs."""
    works = {step: work(store) for step, store in logs.items()}
    rivals = {f"the same of 1/{STEPS[-1] // step} of the rows": works[step] for step in STEPS[:-1]}
    return compare(
        Comparison(
            name=f"{name}, {STEPS[-1]}× the rows",
            product=works[STEPS[-1]],
            rivals=rivals,
            promises={name: most for name in rivals},
            repeat=repeat,
            rounds=7,
        )
    )


def _straight(name: str, works: Mapping[int, Work], before: Work | None = None) -> Result:
    """16× the rows may cost 16× what 1× costs, and a little for the noise."""
    rivals = {str(step): works[step] for step in STEPS[:-1]}
    found = compare(Comparison(name="", product=works[STEPS[-1]], rivals=rivals, rounds=3, before=before))
    lines = {f"{STEPS[-1] // step} × 1/{STEPS[-1] // step} of the rows": found.rivals[str(step)] for step in STEPS[:-1]}
    scaled = {line: timing.times(STEPS[-1] // step) for (line, timing), step in zip(lines.items(), STEPS, strict=False)}
    return Result(
        name=f"{name}, {STEPS[-1]}× the rows",
        product=found.product,
        rivals=scaled,
        promises={line: 1.3 for line in scaled},
    )


def _page(store: LogStore) -> Work:
    with store.database.connection(autocommit=True) as connection:
        rows = connection.execute("SELECT count(*) FROM attempts WHERE tenant_id = 'tenant_1'").fetchone()
        assert rows is not None
        position = paging.place(connection, "tenant_1", rows[0] * 9 // 10)
    return paging.turn(store, Selection(tenant_ids=("tenant_1",)), position, 100)


def _metrics(store: LogStore) -> Work:
    return lambda: store.attempt_metrics(metrics.START, data.END, **metrics.ASKED)


def _export(store: LogStore) -> Work:
    name = partitions.partition_name("attempts", data.months_before(data.END, 1)[0])
    reset = export.reset(store, name)

    def work() -> Any:
        try:
            archive.export(store, name)
        finally:
            reset()

    return work


def _loads(rows: int) -> Iterator[Result]:
    folder = Path(tempfile.mkdtemp(prefix="lsb-"))
    folder.chmod(0o755)
    try:
        files = {step: load.write_attempts(folder / f"{step}.jsonl", rows * step) for step in STEPS}
        with load.tcp_store(folder / "home") as store:
            spark = load.start_spark(store)
            try:
                works = {step: lambda f=file: load.load(store, spark, f) for step, file in files.items()}
                yield _straight(f"load of {rows * STEPS[-1]:,} attempts", works, before=lambda: load.reset(store))
            finally:
                spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
