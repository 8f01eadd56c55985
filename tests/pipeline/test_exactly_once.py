"""Nothing twice, nothing lost: drivers killed at every step, workers killed, tasks run twice, loads stopped by hand."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import logstore
from logstore import LoadError, loads, pipeline
from logstore.pipeline import Limits, merge, read, run, tasks
from logstore.pipeline.write import Job, Stage, Stale
from logstore.settings import ROOT
from logstore.validation import Rules

from ..conftest import new_database
from .crash import stage_here
from .files import contents, event, left_behind, mixed, write

pytestmark = pytest.mark.spark

STEPS = sorted(
    set(
        re.findall(
            r'fault\("(load\.[\w.]+)"\)', "".join(p.read_text() for p in (ROOT / "logstore/pipeline").glob("*.py"))
        )
    )
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows: list[Any] = mixed(400)
    rows[100:100] = ["no json", json.dumps(event(1, time="2026-02-01T00:00:00"))]
    return write(tmp_path_factory.mktemp("source") / "a.jsonl", rows)


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in this process: what is proved here is between the database and us."""
    monkeypatch.setattr(tasks, "stage", stage_here)


def load(store: logstore.LogStore, path: Path, **options: Any) -> loads.Load:
    done = pipeline.load(store, [path], spark=object(), **options).load  # type: ignore[arg-type]
    assert done is not None
    return done


@pytest.fixture(scope="module")
def clean(server: Any, source: Path) -> dict[str, Any]:
    """What a single load that nothing disturbs leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "stage", stage_here)
        with logstore.open(new_database(server), role="operator") as store:
            assert load(store, source).dead == 2
            return contents(store)


def test_there_is_a_fault_point_at_every_step() -> None:
    assert STEPS == [
        "load.before_merge_commit", "load.begun", "load.described", "load.merged", "load.mid_merge", "load.prepared",
        "load.staged", "load.task.after_commit", "load.task.before_commit",
    ]  # fmt: skip


def wait_until_noticed(store: logstore.LogStore) -> None:
    """PostgreSQL sees a moment later than we do that the driver of a load is gone."""
    for _ in range(600):
        if not any(load.alive for load in loads.history(store)):
            return
        time.sleep(0.05)
    raise AssertionError("a load whose driver was killed is still taken for alive")


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("prepared", [False, True], ids=["new months", "existing months"])
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_killed_at_a_step_leaves_what_a_clean_load_leaves(
    store: logstore.LogStore, dsn: str, source: Path, clean: dict[str, Any], step: str, prepared: bool
) -> None:
    if prepared:  # half of the rows are there: months exist, rows conflict
        load(store, write(source.parent / "half.jsonl", mixed(400)[:200]))
        assert contents(store)["events"][0] > 50
    child = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.crash", dsn, source], cwd=ROOT, env={**os.environ, "LOGSTORE_FAULT": step},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr
    wait_until_noticed(store)
    if step == "load.merged":  # too late to matter: it was done
        assert contents(store) == clean
        assert pipeline.load(store, [source]).recognised
    else:
        assert load(store, source).state == "done"
        assert [x.state for x in loads.history(store)][:2] == ["done", "failed"]
    assert contents(store) == clean
    assert left_behind(store) == []
    assert len(loads.dead_letters(store)) == 2


@pytest.mark.usefixtures("local")
def test_what_a_dead_load_left_is_found_by_the_next_one(store: logstore.LogStore, dsn: str, source: Path) -> None:
    environment = {**os.environ, "LOGSTORE_FAULT": "load.prepared"}
    subprocess.run([sys.executable, "-m", "tests.pipeline.crash", dsn, source], cwd=ROOT, env=environment, check=False)
    assert len(left_behind(store)) > 3
    load(store, write(source.parent / "other.jsonl", [event(1)]))
    assert left_behind(store) == []
    gone = loads.history(store)[1]
    assert (gone.state, gone.error) == ("failed", "the process that ran it is gone")


def begun(
    store: logstore.LogStore, path: Path, limits: Limits
) -> tuple[psycopg.Connection[Any], Job, list[read.Split]]:
    files = read.sources([path])
    connection = store.database.connect(autocommit=True)
    number = run._begin(connection, files, False)
    return connection, run._job(store, connection, number, limits), read.plan(files, limits)


def staged_rows(connection: psycopg.Connection[Any], load: int) -> int:
    return sum(table.rows for table in merge.staged(connection, load))


def test_a_task_that_runs_again_adds_nothing(store: logstore.LogStore, source: Path) -> None:
    connection, job, splits = begun(store, source, Limits(split_bytes=20_000))
    for _ in range(3):
        stage = Stage(job)
        for split in splits:
            stage.run(split)
        stage.close()
        assert staged_rows(connection, job.load) == 400
    connection.close()


def test_tasks_that_run_at_the_same_time_add_once(store: logstore.LogStore, source: Path) -> None:
    """Speculation: several runs of one task, all of them complete."""
    connection, job, splits = begun(store, source, Limits())
    counts: list[Any] = []
    gate = threading.Barrier(4)

    def attempt() -> None:
        stage = Stage(job)
        gate.wait()
        counts.append(stage.run(splits[0]).staged)
        stage.close()

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [400] * 4
    assert staged_rows(connection, job.load) == 400
    connection.close()


def test_a_task_of_a_load_that_is_over_stages_nothing(store: logstore.LogStore, source: Path) -> None:
    connection, job, splits = begun(store, source, Limits())
    loads.abandon(connection, job.load, state="cancelled", error="by hand")
    stage = Stage(job)
    with pytest.raises(Stale):
        stage.run(splits[0])
    stage.close()
    assert left_behind(store) == []
    connection.close()


@pytest.mark.parametrize(
    "damage", ["DELETE FROM {} WHERE ctid = (SELECT min(ctid) FROM {})", "INSERT INTO {} SELECT * FROM {}"]
)
@pytest.mark.usefixtures("local")
def test_staging_that_is_not_what_the_tasks_counted_is_not_merged(
    store: logstore.LogStore, source: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = merge.staged

    def tampered(connection: psycopg.Connection[Any], load: int) -> Any:
        name = staged(connection, load)[0].name
        connection.execute(damage.format(name, name))
        return staged(connection, load)

    monkeypatch.setattr(merge, "staged", tampered)
    with pytest.raises(LoadError, match="not what the tasks counted"):
        load(store, source)
    assert contents(store)["events"][0] == 0
    assert left_behind(store) == []


@pytest.mark.usefixtures("local")
def test_a_file_that_changes_under_the_load_fails_it(
    store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", mixed(20))

    def stage(spark: Any, job: Job, splits: list[read.Split], progress: Any) -> None:
        stage_here(spark, job, splits, progress)
        with path.open("a") as file:
            file.write("{}\n")

    monkeypatch.setattr(tasks, "stage", stage)
    with pytest.raises(LoadError, match="changed while it was loaded"):
        load(store, path)
    assert contents(store)["events"][0] == 0


@pytest.mark.usefixtures("local")
def test_two_loads_of_the_same_rows_at_the_same_time_give_them_once(
    store: logstore.LogStore, source: Path, clean: dict[str, Any]
) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            load(store, source, force=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert contents(store) == clean
    assert left_behind(store) == []


# With Spark itself


def workers() -> list[int]:
    """The Python workers of Spark that descend from this process."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry.name)] = int(stat[1])
                if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return [pid for pid in found if parents.get(pid) in found and _descends(pid, parents)]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid > 1:
        pid = parents.get(pid, 0)
        if pid == os.getpid():
            return True
    return False


def test_a_worker_that_is_killed_is_replaced_and_nothing_doubles(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path, server: Any
) -> None:
    path = write(tmp_path / "a.jsonl", mixed(12_000))
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while not killed and not over.is_set():
            with store.database.connection(autocommit=True) as connection:
                staged = connection.execute("SELECT count(*) FROM load_splits").fetchone()
            if staged is not None and staged[0] >= 2:
                for pid in workers():
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        done = pipeline.load(store, [path], spark=spark, limits=Limits(split_bytes=200_000)).load
    finally:
        over.set()
        killer.join()
    assert killed
    assert done is not None
    assert (done.state, done.inserted, done.rows_read) == ("done", 12_000, 12_000)
    assert left_behind(store) == []


@pytest.fixture
def command(dsn: str, tmp_path: Path) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "logstore", *arguments],
                cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(ROOT), "LOGSTORE_DSN": dsn, "LOGSTORE_HOME": str(tmp_path / "h"),
                     "LOGSTORE_ROLE": "operator", "LOGSTORE_SPARK_MASTER": "local[1]", **environment},
            )
        )  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_load_that_is_stopped_by_hand_says_so_and_leaves_nothing(
    store: logstore.LogStore, command: Any, tmp_path: Path, by: signal.Signals
) -> None:
    path = write(tmp_path / "a.jsonl", mixed(60_000))
    process = command("load", str(path))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not [x for x in loads.history(store) if x.rows_read]:
        time.sleep(0.05)
    process.send_signal(by)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    (load,) = loads.history(store)
    assert (load.state, load.error) == ("cancelled", "stopped by hand")
    assert contents(store)["events"][0] == 0
    assert left_behind(store) == []
    assert "Traceback" not in said


def test_a_command_killed_after_staging_and_run_again_gives_the_clean_load(
    store: logstore.LogStore, command: Any, source: Path, clean: dict[str, Any], tmp_path: Path
) -> None:
    killed = command("load", str(source), LOGSTORE_FAULT="load.staged")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    again = command("load", str(source), "--json")
    out, said = again.communicate(timeout=60)
    assert again.returncode == 0, said
    assert json.loads(out.splitlines()[-1])["load"]["inserted"] == 400
    assert contents(store) == clean
    assert left_behind(store) == []
    litter = [p.name for p in tmp_path.iterdir() if p.name not in ("h", "home")]
    assert litter == [], "Spark wrote into the folder it was started in"


def test_rules_come_from_the_settings(store: logstore.LogStore) -> None:
    rules = Rules.of(store.settings, {}, now=datetime(2026, 5, 1, tzinfo=UTC))
    assert rules.newest == datetime(2026, 5, 3, tzinfo=UTC)
