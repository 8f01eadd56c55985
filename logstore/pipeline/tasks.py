"""Spark's part of a load: one task per split or handful of small ones, watched from outside.

Rows never pass through the JVM: a task is given numbers of splits and answers with counts. So it is a plain RDD; a data
frame would make the JVM plan and compile for seconds before the first task runs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator

from pyspark.sql import SparkSession

from logstore.errors import LoadError, PartitionError
from logstore.pipeline.progress import Progress
from logstore.pipeline.read import Split
from logstore.pipeline.write import Job, Stage

_POLL_SECONDS = 0.25
_TASKS_A_CORE = 4


def stage(spark: SparkSession, job: Job, splits: list[Split], progress: Progress) -> None:
    """Run the tasks in a thread, so that this one can report and be interrupted."""
    if not splits:
        return
    failed: list[BaseException] = []
    errors: list[str] = []
    context = spark.sparkContext
    # A task costs two connections; a few for each core, so that none waits long for the last.
    parallel = min(len(splits), _TASKS_A_CORE * context.defaultParallelism)
    work_of_all = context.parallelize(range(len(splits)), parallel).mapPartitions(_task(job, splits))

    def work() -> None:
        try:
            context.setJobGroup(f"load {job.load}", f"load {job.load}", interruptOnCancel=True)
            errors.extend(error for error in work_of_all.collect() if error)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name=f"load {job.load}", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            progress.read()
    except BaseException:
        context.cancelJobGroup(f"load {job.load}")
        thread.join(10)
        raise
    if errors:
        raise LoadError(errors[0])
    if failed:
        raise LoadError(f"the tasks failed: {_first_line(failed[0])}; nothing was loaded, run it again") from failed[0]


def _task(job: Job, splits: list[Split]) -> Callable[[Iterable[int]], Iterator[str | None]]:
    """Stages its splits up to the first that fails for good; for each None, or the sentence in which it failed."""

    def run(numbers: Iterable[int]) -> Iterator[str | None]:
        # Spark collects garbage after every task; without this it looks at each object of every module again.
        gc.freeze()
        stage = Stage(job)
        try:
            for number in numbers:
                # An error that a retry would meet again is an answer, not a failure.
                try:
                    stage.run(splits[number])
                    yield None
                except (LoadError, PartitionError) as error:
                    yield str(error)
                    return  # nothing of the load will be kept
        finally:
            stage.close()

    return run


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told or lines or [type(error).__name__])[-1].strip()
