"""Ad hoc SQL of people we do not know: in a process of its own, with limits that the kernel and we enforce."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from logstore.analysis.answers import Answer
from logstore.analysis.views import column_types, read_archive
from logstore.errors import SandboxError
from logstore.store import LogStore
from logstore.tables import PARENTS

_CHILD = Path(__file__).with_name("child.py")
_THREADS = 2
_START = 20.0  # seconds that the child may take to start on a busy machine; 0.2 is usual
_GRACE = 1.0  # seconds after DuckDB was asked to stop, before the process is ended
_POLL = 0.05
_SQL_MOST = 100_000  # characters
_ANSWER_MOST = 64 << 20  # bytes
# Python, DuckDB, Arrow and the threads' stacks occupy this much address space before the query has any.
_BASE = 1 << 30
_UNITS = {"MB": 10**6, "GB": 10**9}


def sandbox(
    store: LogStore,
    sql: str,
    *,
    seconds: float = 10,
    rows: int = 10_000,
    memory: str = "1GB",
    cancel: threading.Event | None = None,
) -> Answer:
    """Run one SELECT or EXPLAIN over the archive's views `events` and `attempts`; SandboxError if it may not or cannot.

    It reads the listed segments and nothing else. It ends after `seconds`, at `memory`, or when `cancel` is set; more than
    `rows` rows are cut, and the answer says so.
    """
    space = _check(sql, seconds, rows, memory)
    archive = read_archive(store)
    task = {
        "sql": sql,
        "seconds": seconds,
        "rows": rows,
        "memory": memory,
        "threads": _THREADS,
        "address_space": space + _BASE,
        "folder": str(store.settings.archive),
        "columns": {parent: column_types(parent) for parent in PARENTS},
        "files": {parent: [s.location for s in archive.segments if s.parent == parent] for parent in PARENTS},
    }
    said, code = _converse(task, seconds, cancel, store.settings.archive if archive.segments else Path("/"))
    header, _, rest = said.lstrip(b"\n").partition(b"\n")
    outcome = _outcome(header, code, seconds, memory)
    with pa.ipc.open_stream(rest) as reader:
        table = reader.read_all()
    told = {name: outcome[name] for name in ("seconds", "truncated", "read")}
    return Answer(table=table, warnings=archive.warnings, **told)


def _check(sql: object, seconds: object, rows: object, memory: object) -> int:
    """The bytes that `memory` means; SandboxError for a limit that is none."""
    if not isinstance(sql, str) or not sql.strip():
        raise SandboxError("there is no statement: write one SELECT over events and attempts")
    if len(sql) > _SQL_MOST:
        raise SandboxError(f"the statement has {len(sql)} characters; at most {_SQL_MOST} are read")
    if "\x00" in sql or any("\ud800" <= c <= "\udfff" for c in sql):
        raise SandboxError("the statement holds characters that are not text")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 3600:
        raise SandboxError(f"seconds is {seconds!r}; give a number from above 0 to 3600")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 1_000_000:
        raise SandboxError(f"rows is {rows!r}; give a whole number from 1 to 1000000")
    match = re.fullmatch(r"([1-9]\d{0,5}) ?(MB|GB)", str(memory))
    if match is None or int(match[1]) * _UNITS[match[2]] < 64 * 10**6:
        raise SandboxError(f"memory is {memory!r}; write it like 512MB or 2GB, at least 64MB")
    return int(match[1]) * _UNITS[match[2]]


def _converse(task: dict[str, Any], seconds: float, cancel: threading.Event | None, folder: Path) -> tuple[bytes, int]:
    """All that the child says, and how it ended. Whatever happens here, Ctrl-C included, the child does not outlive it."""
    # Nothing of our environment but what finding Python's own library may need.
    environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    child = subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env=environment,
        cwd=folder,
        start_new_session=True,  # so that Ctrl-C reaches us alone
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError):  # it died at once; what it said or did not say tells
            child.stdin.write(json.dumps(task).encode() + b"\n")
        return _listen(child.stdout.fileno(), seconds, cancel), child.wait(timeout=_START)
    finally:
        child.kill()
        child.stdout.close()
        child.wait()
        child.stdin.close()


def _listen(pipe: int, seconds: float, cancel: threading.Event | None) -> bytes:
    said = bytearray()
    deadline = time.monotonic() + _START
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if cancel is not None and cancel.is_set():
                raise SandboxError("the query was cancelled")
            if time.monotonic() > deadline:
                raise _late(seconds) if said else SandboxError("the sandbox did not start; the machine is overloaded")
            if not selector.select(timeout=_POLL):
                continue
            part = os.read(pipe, 1 << 20)
            if not part:
                return bytes(said)
            if not said:  # the child's first word: the query starts now
                deadline = time.monotonic() + seconds + _GRACE
            said += part
            if len(said) > _ANSWER_MOST:
                raise SandboxError(f"the answer is larger than {_ANSWER_MOST >> 20} MB: select fewer columns or rows")


def _outcome(header: bytes, code: int, seconds: float, memory: str) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads(header)
    except ValueError:
        raise SandboxError(
            f"the query ended its process (code {code}): it needed more memory than {memory}, or DuckDB failed on it"
        ) from None
    reason = outcome.get("reason")
    if reason == "time":
        raise _late(seconds)
    if reason == "memory":
        raise SandboxError(f"the query needed more memory than {memory}: aggregate or limit earlier")
    if reason is not None:
        raise SandboxError(str(outcome["message"]))
    return outcome


def _late(seconds: float) -> SandboxError:
    return SandboxError(
        f"the query was stopped after {seconds:g} s: narrow it by time or tenant, or allow more seconds"
    )
