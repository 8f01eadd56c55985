"""A driver to kill: loads a file with the tasks run in this process, one after the other, without Spark."""

from __future__ import annotations

import sys
from typing import Any

import logstore
from logstore.pipeline import Limits, run, tasks
from logstore.pipeline.progress import Progress
from logstore.pipeline.read import Split
from logstore.pipeline.write import Job, Stage


def stage_here(spark: Any, job: Job, splits: list[Split], progress: Progress) -> None:
    """What Spark does, as far as the database can tell."""
    stage = Stage(job)
    try:
        for split in splits:
            stage.run(split)
            progress.read()
    finally:
        stage.close()


def main(dsn: str, path: str) -> None:
    tasks.stage = stage_here
    with logstore.open(dsn, role="operator") as store:
        run.load(store, [path], spark=object(), limits=Limits(split_bytes=20_000), force=True)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
