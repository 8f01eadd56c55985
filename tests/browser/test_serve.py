"""python -m logstore serve: starts, says where, and ends cleanly."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from tests.browser import servers


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_server_ends_at_once_and_the_embedded_database_with_it(short_folder: Path, how: signal.Signals) -> None:
    process, address = servers.start(LOGSTORE_HOME=str(short_folder / "serve"))
    try:
        servers.wait_until_it_answers(process, address)
    finally:
        code, said = servers.stop(process, how)
    assert code == 0
    assert f"The workbench is at {address}" in said
    assert said.endswith("stopped\n")
    assert EmbeddedServer(short_folder / "serve").postmaster() is None


def test_a_port_in_use_is_a_sentence(small: str) -> None:
    with servers.serving(small) as address:
        port = address.rsplit(":", 1)[1]
        command = [sys.executable, "-m", "logstore", "serve", "--port", port]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=servers.SECONDS, check=False)
    assert ended.returncode == 2
    assert "choose another --port" in ended.stderr
    assert "Traceback" not in ended.stderr
