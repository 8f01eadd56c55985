"""Servers of the workbench for tests: started on a free port of loopback, waited for within bounds, and stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from logstore.settings import ROOT

SECONDS = 30  # that a server may take to start or to stop


@contextmanager
def serving(dsn: str, *, role: str = "reader", **settings: str) -> Iterator[str]:
    """A server of its own, cold; its address while it runs."""
    process, address = start(LOGSTORE_DSN=dsn, LOGSTORE_ROLE=role, **settings)
    try:
        wait_until_it_answers(process, address)
        yield address
    finally:
        stop(process)


def start(**settings: str) -> tuple[subprocess.Popen[str], str]:
    """A server process with these settings, from another folder than ours, and the address that it will have."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LOGSTORE_", "STREAMLIT_"))}
    env |= {"PYTHONPATH": str(ROOT), **settings}
    command = [sys.executable, "-m", "logstore", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return process, f"http://127.0.0.1:{port}"


def stop(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
    """End a server, with a kill if it does not listen; its exit code and what it printed."""
    process.send_signal(how)
    return ended(process)


def stop_all(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End several servers at once."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        ended(process)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a server that was told to end."""
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=SECONDS)
        raise
    return process.returncode, said


def wait_until_it_answers(process: subprocess.Popen[str], address: str) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the server ended: {process.stdout.read() if process.stdout else ''}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"the server does not answer within {SECONDS} s")
