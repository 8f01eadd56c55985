"""The same load on a real cluster: a standalone master and two workers on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

import logstore
from logstore.pipeline import session
from logstore.settings import ROOT

from .files import contents, left_behind, mixed, write
from .test_load import _records

pytestmark = pytest.mark.spark
_CLASS = "org.apache.spark.deploy"


@pytest.fixture
def cluster(tmp_path: Path, short_folder: Path) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "JAVA_HOME": str(session.java_home(short_folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = tmp_path / f"{name}-{len(started)}.log"
        with log.open("wb") as out:  # spark-class execs java, so this process is the one to end
            command = [spark_class, f"{_CLASS}.{name.lower()}.{name}", "--host", "127.0.0.1", *arguments]
            started.append(
                subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=tmp_path)
            )
        return log

    try:
        address = _said(start("Master", "--port", "0", "--webui-port", "0"), r"Starting Spark master at (spark://\S+)")
        logs = [
            start("Worker", "--webui-port", "0", "--cores", "1", "--memory", "1g", address) for _ in range(2)
        ]  # fmt: skip
        for log in logs:
            _said(log, r"(Successfully registered with master)")
        yield address
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(20)


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        match = re.search(pattern, log.read_text(errors="replace"))
        if match:
            return match.group(1)
        time.sleep(0.2)
    pytest.fail(f"{log.name} never said {pattern!r}; it ends with\n{log.read_text(errors='replace')[-2000:]}")


def test_a_cluster_loads_the_same_table(
    store: logstore.LogStore, open_store: Any, server: Any, dsn: str, cluster: str, tmp_path: Path
) -> None:
    from ..conftest import new_database

    rows = mixed(600)
    for i in range(4):
        write(tmp_path / "in" / f"{i}.jsonl", rows[i::4])
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "LOGSTORE_DSN": dsn, "LOGSTORE_ROLE": "operator",
        "LOGSTORE_HOME": str(tmp_path / "h"), "LOGSTORE_SPARK_MASTER": cluster, "LOGSTORE_SPARK_MEMORY": "1g",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "logstore", "load", tmp_path / "in", "--json"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["load"]["inserted"] == 600
    expected = open_store(new_database(server))
    expected.insert_many(*_records(rows))
    assert contents(store) == contents(expected)
    assert left_behind(store) == []
