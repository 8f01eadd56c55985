"""The embedded server starts by itself, is shared, survives its users, and explains what stops it."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import logstore
from logstore import ServerError
from logstore.embedded import EmbeddedServer
from tests.conftest import QUICK
from tests.records_of import event

USER = """
import sys, logstore
store = logstore.open(home=sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
store.close()
"""


@pytest.fixture(scope="module")
def home(short_folder: Path) -> Path:
    """A folder with a server that was made and stopped again."""
    with logstore.open(home=short_folder / "emb") as store:
        store.insert_many([event()])
    return short_folder / "emb"


def start_user(home: Path) -> subprocess.Popen[str]:
    user = subprocess.Popen(
        [sys.executable, "-c", USER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    assert user.stdout.readline() == "open\n"
    return user


def test_the_last_one_to_leave_stops_the_server(home: Path) -> None:
    server = EmbeddedServer(home)
    assert server.postmaster() is None
    first, second = logstore.open(home=home), start_user(home)
    pid = server.postmaster()
    assert pid is not None
    first.close()
    assert server.postmaster() == pid, "another process still uses it"
    second.communicate("leave\n", timeout=30)
    assert server.postmaster() is None


def test_a_user_killed_with_9_is_not_counted_for_ever(home: Path) -> None:
    server = EmbeddedServer(home)
    user = start_user(home)
    user.kill()
    user.communicate(timeout=30)
    assert server.postmaster() is not None, "nobody was left to stop it"
    with logstore.open(home=home) as store:
        assert len(store.list_event()) == 1
    assert server.postmaster() is None


def test_two_stores_of_one_process_share_the_server(home: Path) -> None:
    with logstore.open(home=home) as one:
        with logstore.open(home=home) as other:
            assert len(other.list_event()) == 1
        assert len(one.list_event()) == 1


def test_a_server_killed_with_9_comes_back_with_its_data(home: Path) -> None:
    server = EmbeddedServer(home)
    with logstore.open(home=home) as store:
        pid = server.postmaster()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert len(store.list_event()) == 1, "an open store starts it again by itself"


def test_two_processes_that_open_at_once_get_one_server(short_folder: Path) -> None:
    home = short_folder / "once"
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    outputs = [user.communicate("leave\n", timeout=90)[0] for user in users]
    assert outputs == ["open\n"] * 3
    assert EmbeddedServer(home).postmaster() is None


def test_a_path_too_long_for_a_socket_says_which_setting_to_change(short_folder: Path) -> None:
    with pytest.raises(ServerError, match="LOGSTORE_HOME to a shorter folder"):
        logstore.open(home=short_folder / ("long" * 30))


def test_a_folder_that_cannot_be_written_is_named(short_folder: Path) -> None:
    blocked = short_folder / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ServerError, match="LOGSTORE_HOME"):
        logstore.open(home=blocked / "home")


def test_another_versions_data_is_not_touched(short_folder: Path) -> None:
    folder = short_folder / "old"
    (folder / "pg").mkdir(parents=True)
    (folder / "pg" / "PG_VERSION").write_text("14\n")
    with pytest.raises(ServerError, match="made by PostgreSQL 14"):
        logstore.open(home=folder)
    assert (folder / "pg" / "PG_VERSION").read_text() == "14\n"


def test_a_folder_that_holds_something_else_is_not_touched(short_folder: Path) -> None:
    folder = short_folder / "else"
    (folder / "pg").mkdir(parents=True)
    (folder / "pg" / "precious").write_text("data")
    with pytest.raises(ServerError, match="no database"):
        logstore.open(home=folder)
    assert (folder / "pg" / "precious").read_text() == "data"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root; run the tests as root to see it")
def test_a_full_disk_says_so_and_loses_nothing(short_folder: Path) -> None:
    folder = short_folder / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a small disk; nothing to do about it here")
    try:
        with pytest.raises(ServerError, match="disk is full"):
            logstore.open(home=folder)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_the_data_belongs_to_a_user_of_its_own_when_we_are_root(home: Path) -> None:
    owner = pwd.getpwuid((home / "pg").stat().st_uid).pw_name
    assert owner == ("pgserver" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name)
    assert (home / "pg").stat().st_mode & 0o077 == 0, "the socket would let others in"


def test_settings_of_the_server_are_applied_at_every_start(short_folder: Path) -> None:
    for memory in ("64MB", "96MB"):
        server = EmbeddedServer(short_folder / "tuned", tuning={**QUICK, "shared_buffers": memory})
        server.acquire()
        with psycopg.connect(server.dsn()) as connection:
            assert connection.execute("SHOW shared_buffers").fetchone() == (memory,)
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        server.release()
