"""Work that a page starts: the command line in processes of its own, so that no page waits for it or dies with it.

A command that runs when the server ends goes on and finishes; its figures are in the tables, not here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

import streamlit as st

from logstore.errors import LoadError
from logstore.settings import ROOT

_KEPT = 20  # ended children whose outcome is still shown
_ASK_SECONDS = 60


@dataclass(kw_only=True, eq=False)
class Child:
    """One command that this server started; the process object, not its number, is what is ended."""

    number: int
    kind: str  # load, maintain: which page shows it
    about: tuple[str, ...]  # paths, or what is done and the month that it is done to
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    cancelled: bool = False
    _outcome: tuple[Any, str | None] | None = None

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def outcome(self) -> tuple[Any, str | None]:
        """What an ended command answered, or the sentence in which it failed."""
        if self._outcome is None:
            with self.said:
                self.said.seek(0)
                self._outcome = _answer(self.said.read(), self.process.returncode)
        return self._outcome


class Children:
    """The children of this server, all sessions together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Child] = []
        self._count = 0

    def load(self, paths: Sequence[str], *, force: bool = False) -> Child:
        """Start a load of files or folders."""
        return self.start("load", paths, "load", "--json", *(["--force"] if force else []), "--", *paths)

    def start(self, kind: str, about: Sequence[str], *arguments: str) -> Child:
        """Start a command, which must have been asked for JSON."""
        said = tempfile.TemporaryFile()  # noqa: SIM115 - read when the child has ended
        # Its own session: Ctrl-C in the server's terminal must not reach it half-way.
        process = subprocess.Popen(
            _command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        with self._lock:
            self._count += 1
            child = Child(number=self._count, kind=kind, about=tuple(about), process=process, said=said)
            ended = [known for known in self._all if known.kind == kind and not known.runs]
            self._all.append(child)
        for known in ended[:-_KEPT]:
            self.forget(known.number)
        return child

    def all(self, kind: str | None = None) -> list[Child]:
        """The children, or those of one kind, the newest first."""
        with self._lock:
            return [child for child in self._all[::-1] if kind in (None, child.kind)]

    def cancel(self, number: int) -> None:
        """Ask a child to stop; it cleans up after itself. One that has ended is not touched."""
        for child in self.all():
            if child.number == number and child.runs:
                child.cancelled = True
                child.process.terminate()

    def forget(self, number: int) -> None:
        """Take a child that has ended from the list."""
        with self._lock:
            gone = [child for child in self._all if child.number == number and not child.runs]
            self._all = [child for child in self._all if child not in gone]
        for child in gone:
            child.said.close()


@st.cache_resource(show_spinner=False)
def children() -> Children:
    """The one registry of this server."""
    return Children()


def ask(*arguments: str, text: str = "") -> Any:
    """Run a short command and wait for its answer; its own sentence is raised when it refuses."""
    try:
        ended = subprocess.run(
            _command(*arguments, "--json"),
            input=text.encode(errors="surrogatepass"),
            capture_output=True,
            env=_environment(),
            timeout=_ASK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LoadError(f"the command did not end within {_ASK_SECONDS} s and was stopped; try again") from error
    answer, sentence = _answer(ended.stdout, ended.returncode)
    if answer is None:
        raise LoadError(sentence or "the command failed; run it in a terminal to see why")
    return answer


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "logstore", *arguments]


def _environment() -> dict[str, str]:
    """Ours, with the package on the path, wherever the server was started."""
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    return {**os.environ, "PYTHONPATH": path}


def _answer(said: bytes, code: int) -> tuple[Any, str | None]:
    """The document of a command that succeeded (1 says that it found something), or the sentence of one that did not."""
    lines = said.decode(errors="replace").strip().splitlines()
    try:
        document = json.loads(lines[-1]) if lines else None
    except ValueError:
        document = None
    if code in (0, 1) and isinstance(document, (dict, list)):
        return document, None
    if isinstance(document, dict) and "message" in document:
        return None, str(document["message"])
    return None, f"the command ended with code {code}; run it in a terminal to see why"
