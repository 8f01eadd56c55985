"""JSON lines of attempts into the fully indexed table, beside Spark's JDBC writer and two psql \\copy of ready CSV.

Session start is excluded for both that use Spark. The rivals get a month that exists with all its indexes; the product
makes it. Into a month that exists the product has no short cut; that is shown without a promise.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb

import logstore
from bench.measure import Comparison, Result, compare
from logstore import LogStore, demo, partitions, pipeline
from logstore.embedded import EmbeddedServer
from logstore.records import Attempt

MONTH = date(2026, 8, 1)
JAR = Path("/usr/share/java/postgresql.jar")
_PROMISES = {"two psql \\copy": 1.0, "Spark JDBC": 1 / 2.5}  # of a million; a Spark job costs a second by itself
_COLUMNS = ", ".join(Attempt.columns)
_SCHEMA = (
    "id string, event_id string, tenant_id string, destination_id string, topic string, status string, time timestamp,"
    " attempt_number int, manual boolean, code string, response_data string, event_time timestamp,"
    " eligible_for_retry boolean, event_data string, event_metadata string"
)


def run(size: str) -> Iterator[Result]:
    rows = 100_000 if size == "small" else 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="lsb-"))
    folder.chmod(0o755)
    try:
        source = write_attempts(folder / "attempts.jsonl", rows)
        halves = write_csv(source)
        with tcp_store(folder / "home") as store:
            spark = start_spark(store)
            rivals: dict[str, Any] = {"two psql \\copy": lambda: psql_copy(store, halves)}
            if JAR.exists():
                rivals["Spark JDBC"] = lambda: jdbc_write(store, spark, source)
            rivals["the product into a month that exists"] = lambda: load(store, spark, source, exists=True)
            yield compare(
                Comparison(
                    name=f"load {rows} attempts",
                    product=lambda: load(store, spark, source),
                    rivals=rivals,
                    promises=_PROMISES if size == "full" else {},
                    rounds=2 if size == "full" else 3,
                    before=lambda: reset(store),
                )
            )
            memory(store, spark, source, rows)
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_attempts(path: Path, rows: int) -> Path:
    """Attempts of one month, in the order of time: payloads of the demo, ids and times of their own."""
    rng = Random(7)
    start, step = datetime(MONTH.year, MONTH.month, 1, tzinfo=UTC), timedelta(days=30) / rows
    tails = []
    for _, attempts in demo.events_and_attempts(events=3000, end=datetime(2026, 9, 1, tzinfo=UTC), days=30, seed=7):
        tails += [_tail(attempt) for attempt in attempts]
    with path.open("w") as file:
        for number in range(rows):
            moment = (start + step * number).isoformat()
            event = f'"evt_{rng.getrandbits(112):028x}"'
            file.write(f'{{"id": "att_{rng.getrandbits(112):028x}", "event_id": {event}, "time": "{moment}", ')
            file.write(tails[number % len(tails)])
    return path


def _tail(attempt: Attempt) -> str:
    import json

    rest = {k: v for k, v in attempt.to_dict().items() if k not in ("id", "event_id", "time")}
    return json.dumps(rest, ensure_ascii=False)[1:] + "\n"


def write_csv(source: Path) -> list[Path]:
    """What psql copies: the same rows, parsed and ready, in two halves."""
    halves = [source.with_name(f"half-{i}.csv") for i in (0, 1)]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    types = ", ".join(f"{c}: '{_duckdb_type(c)}'" for c in Attempt.columns)
    for i, half in enumerate(halves):
        connection.execute(
            f"COPY (SELECT {_COLUMNS} FROM (SELECT *, row_number() OVER () AS n FROM read_json('{source}',"
            f" format = 'newline_delimited', columns = {{{types}}})) WHERE n % 2 = {i})"
            f" TO '{half}' (FORMAT csv, HEADER false)"
        )
    return halves


def _duckdb_type(column: str) -> str:
    if column in ("time", "event_time"):
        return "TIMESTAMPTZ"
    if column in ("manual", "eligible_for_retry"):
        return "BOOLEAN"
    return "JSON" if column.endswith("data") else "INTEGER" if column == "attempt_number" else "VARCHAR"


@contextlib.contextmanager
def tcp_store(home: Path) -> Iterator[LogStore]:
    """A store whose server also listens on loopback, because JDBC cannot reach a Unix socket."""
    server = EmbeddedServer(home, tuning={"listen_addresses": "'127.0.0.1'"})
    server.acquire()
    try:
        with logstore.open(home=home) as store:
            yield store
    finally:
        server.release()


def start_spark(store: LogStore) -> Any:
    from logstore.pipeline import session

    if JAR.exists():
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {JAR} pyspark-shell"
    return session.start(store.settings)


def reset(store: LogStore) -> None:
    """An empty log without months, and a server that has nothing left to write."""
    with store.database.connection(autocommit=True) as connection:
        for partition in partitions.inventory(store.database):
            connection.execute(f"DROP TABLE {partition.name}")
        connection.execute("TRUNCATE loads, load_files, load_splits, load_letters, load_progress, dead_letters CASCADE")
        connection.execute("DELETE FROM months")
        connection.execute("TRUNCATE tenants, destinations, topics")
        connection.execute("CHECKPOINT")
    os.sync()


def load(store: LogStore, spark: Any, source: Path, *, exists: bool = False) -> pipeline.Report:
    """The product."""
    if exists:
        partitions.ensure(store.database, [("attempts", MONTH)])
    return pipeline.load(store, [source], spark=spark, bar=False)


def jdbc_write(store: LogStore, spark: Any, source: Path) -> None:
    """Spark's own JSON reader and JDBC writer, with the settings that make it quick."""
    partitions.ensure(store.database, [("attempts", MONTH)])
    frame = spark.read.schema(_SCHEMA).json(str(source)).select(*Attempt.columns).coalesce(2)
    url = "jdbc:postgresql://127.0.0.1:5432/logstore?user=postgres&reWriteBatchedInserts=true&stringtype=unspecified"
    options = {"driver": "org.postgresql.Driver", "batchsize": "10000"}
    frame.write.jdbc(url, "attempts", mode="append", properties=options)


def psql_copy(store: LogStore, halves: list[Path]) -> None:
    """Two psql at once, each with half of the rows as CSV that is ready."""
    partitions.ensure(store.database, [("attempts", MONTH)])
    assert store.database.server is not None
    psql = store.database.server.bin_dir / "psql"
    started = [
        subprocess.Popen(
            [psql, store.database.conninfo, "-q", "-c", f"\\copy attempts ({_COLUMNS}) FROM '{half}' (FORMAT csv)"],
            env={**os.environ, "PGTZ": "UTC"},
        )
        for half in halves
    ]
    if any(process.wait() for process in started):
        raise RuntimeError("psql failed")


def memory(store: LogStore, spark: Any, source: Path, rows: int) -> None:
    """Print what a file of a tenth and the whole one take at most: the second must not be more."""
    tenth = source.with_name("tenth.jsonl")
    with source.open() as lines, tenth.open("w") as file:
        file.writelines(itertools.islice(lines, rows // 10))
    for name, path in (("a tenth", tenth), ("all", source)):
        reset(store)
        with PeakMemory() as seen:
            load(store, spark, path)
        print(f"  memory of Spark's Python workers, {name} of {rows:,} attempts: {seen.peak / 1e6:.0f} MB", flush=True)


class PeakMemory:
    """The most resident memory of this process's Python workers together, in bytes, while a block runs."""

    def __enter__(self) -> PeakMemory:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.3):
            self.peak = max(self.peak, _workers_resident())


def _workers_resident() -> int:
    """In bytes, of the descendants of this process that are Spark's Python; other loads on the machine do not count."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            facts = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
            parents[int(entry.name)] = int(facts["PPid"])
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                resident[int(entry.name)] = int(facts["VmRSS"].split()[0]) * 1024
    ours = {os.getpid()}
    for _ in range(6):  # launcher, JVM, daemon, worker, and room
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return sum(size for pid, size in resident.items() if pid in ours)
