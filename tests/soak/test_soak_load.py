"""A load killed at random moments, twenty times each: the driver, a Python worker, PostgreSQL.

LOGSTORE_SOAK sets another number of rounds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

import logstore
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT

from ..pipeline.files import contents, left_behind, mixed, write
from ..pipeline.test_load import _records

pytestmark = pytest.mark.soak

ROUNDS = int(os.environ.get("LOGSTORE_SOAK", "20"))
ROWS = 40_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows: list[Any] = mixed(ROWS)
    rows[1000:1000] = ["no json"]
    folder = tmp_path_factory.mktemp("source")
    for i in range(3):
        write(folder / f"{i}.jsonl", rows[i::3])
    return folder


@pytest.fixture(scope="module")
def own_server(short_folder: Path) -> Iterator[EmbeddedServer]:
    """A server that may be killed; with fsync, because its crashes are the point."""
    server = EmbeddedServer(short_folder / "soak")
    server.acquire()
    yield server
    server.revive()
    server.release()


@pytest.fixture(scope="module")
def clean(own_server: EmbeddedServer) -> dict[str, Any]:
    with logstore.open(new_log(own_server, "clean"), role="operator") as store:
        events, attempts = _records(mixed(ROWS))
        for i in range(0, ROWS, 5000):
            store.insert_many(events[i : i + 5000], attempts[i : i + 5000])
        return contents(store)


def new_log(server: EmbeddedServer, name: str) -> str:
    server.revive()
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return server.dsn(name)


def start(dsn: str, source: Path, home: Path) -> subprocess.Popen[str]:
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "LOGSTORE_DSN": dsn, "LOGSTORE_ROLE": "operator",
        "LOGSTORE_HOME": str(home), "LOGSTORE_SPARK_MASTER": "local[2]",
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "logstore", "load", str(source), "--json"],
        env=environment, cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def begun(dsn: str, process: subprocess.Popen[str]) -> None:
    """Wait until the load has begun: a kill before that proves nothing."""
    while process.poll() is None:
        try:
            with psycopg.connect(dsn) as connection:
                if connection.execute("SELECT count(*) FROM loads WHERE state = 'running'").fetchone() == (1,):
                    return
        except psycopg.Error:  # its tables are not there yet
            pass
        time.sleep(0.02)


def python_workers(session: int) -> list[int]:
    """Spark's forked Python workers among the processes of a session."""
    daemons, parents = set(), {}
    for entry in Path("/proc").iterdir():
        try:
            pid = int(entry.name)
            if os.getsid(pid) == session and b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                daemons.add(pid)
                parents[pid] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (ValueError, OSError):
            continue
    return [pid for pid in daemons if parents[pid] in daemons]


def kill(victim: str, process: subprocess.Popen[str], server: EmbeddedServer, rng: Random) -> bool:
    find = {
        "driver": lambda: [process.pid],
        "worker": lambda: python_workers(process.pid),
        "postgres": lambda: [pid for pid in [server.postmaster()] if pid is not None],
    }[victim]
    pids = find()
    while not pids and process.poll() is None:  # a worker may not be there yet
        time.sleep(0.05)
        pids = find()
    if process.poll() is not None:
        return False
    os.kill(rng.choice(pids), signal.SIGKILL)
    return True


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for the driver; what it started may outlive its kill and is ended with its session."""
    out, err = process.communicate(timeout=180)
    for entry in Path("/proc").iterdir():
        try:
            if os.getsid(int(entry.name)) == process.pid:
                os.kill(int(entry.name), signal.SIGKILL)
        except (ValueError, OSError):
            continue
    return out, err


@pytest.mark.parametrize("victim", ["driver", "worker", "postgres"])
def test_kills_at_random_moments_leave_what_a_clean_load_leaves(
    own_server: EmbeddedServer, source: Path, clean: dict[str, Any], tmp_path: Path, victim: str
) -> None:
    rng = Random(victim)
    hits = 0
    for round_ in range(ROUNDS):
        dsn = new_log(own_server, f"soak_{victim}_{round_}")
        process = start(dsn, source, tmp_path)
        begun(dsn, process)
        time.sleep(rng.uniform(0, 4))
        hits += kill(victim, process, own_server, rng)
        end(process)
        own_server.revive()
        again = start(dsn, source, tmp_path)
        out, err = end(again)
        assert again.returncode == 0, f"round {round_}: {err[-2000:]}"
        assert json.loads(out.splitlines()[-1])
        with logstore.open(dsn, role="operator") as store:
            assert contents(store) == clean, f"round {round_}"
            assert left_behind(store) == [], f"round {round_}"
        with psycopg.connect(own_server.dsn(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE soak_{victim}_{round_} WITH (FORCE)")
    print(f"{victim}: {hits} of {ROUNDS} kills hit a running load")
    assert hits >= ROUNDS // 2, "the kills came too late to prove anything"
