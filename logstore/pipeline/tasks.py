"""Spark's part of a load: one task per split or handful of small ones, watched from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow
from pyspark.sql import SparkSession

from logstore.errors import LoadError
from logstore.pipeline.progress import Progress
from logstore.pipeline.read import Split
from logstore.pipeline.write import Job, Stage

_POLL_SECONDS = 0.25
_TASKS_MOST = 512
_RESULT = "split int, staged long, letters long, error string"
_RESULT_SCHEMA = pyarrow.schema(
    [("split", pyarrow.int32()), ("staged", pyarrow.int64()), ("letters", pyarrow.int64()), ("error", pyarrow.string())]
)


def stage(spark: SparkSession, job: Job, splits: list[Split], progress: Progress) -> None:
    """Run the tasks in a thread, so that this one can report and be interrupted."""
    if not splits:
        return
    failed: list[BaseException] = []
    errors: list[str] = []
    context = spark.sparkContext
    # Small files share tasks, because a task costs connections; large splits do not, so that none waits for another.
    large = sum(split.bytes for split in splits) // max(job.limits.split_bytes // 2, 1)
    parallel = min(len(splits), max(2 * context.defaultParallelism, large), _TASKS_MOST)
    work_of_all = spark.range(0, len(splits), 1, parallel).mapInArrow(_task(job, splits), _RESULT)

    def work() -> None:
        try:
            context.setJobGroup(f"load {job.load}", f"load {job.load}", interruptOnCancel=True)
            errors.extend(row.error for row in work_of_all.collect() if row.error)
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


def _task(job: Job, splits: list[Split]) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def run(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        stage = Stage(job)
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    # An error that a retry would meet again is an answer, not a failure.
                    try:
                        counts = stage.run(splits[number])
                        row = {"split": number, "staged": counts.staged, "letters": counts.letters, "error": None}
                    except LoadError as error:
                        row = {"split": number, "staged": 0, "letters": 0, "error": str(error)}
                    yield pyarrow.RecordBatch.from_pylist([row], schema=_RESULT_SCHEMA)
        finally:
            stage.close()

    return run


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told or lines or [type(error).__name__])[-1].strip()
