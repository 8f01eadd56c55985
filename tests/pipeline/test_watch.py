"""Watching a folder: what appears is loaded once, what is unfinished waits, what is bad stops nothing else."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import logstore
from logstore import LoadError, Selection
from logstore.commands import main
from logstore.pipeline import watch
from logstore.pipeline.watch import SETTLE, Watch

from .files import event, write
from .test_read import refusing

pytestmark = pytest.mark.spark


class Clock:
    """A clock that a test moves; it begins far enough ahead for every file to look old."""

    def __init__(self) -> None:
        self.now = time.time() + 1000

    def __call__(self) -> float:
        return self.now


def ids(store: logstore.LogStore) -> list[str]:
    return [e.id for e in store.list_event(Selection(), order="asc")]


def test_each_file_is_loaded_once_also_by_another_watcher(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "a.jsonl", [event(1)])
    write(tmp_path / "deep" / "b.json", [event(2)])
    for name in ("c.jsonl.part", "d.tmp", ".e.jsonl", "_f.jsonl", "notes.txt"):
        write(tmp_path / name, [event(9)])
    first = Watch(store, tmp_path, spark=spark, clock=Clock())
    (done,) = first.look().loaded
    assert (done.inserted, len(done.sources)) == (2, 2), "files that are there together share a load"
    assert first.look() == watch.Pass()
    again = Watch(store, tmp_path, spark=spark, clock=Clock()).look()
    assert again.loaded == [] and set(again.known.values()) == {done.id}
    (tmp_path / "c.jsonl.part").rename(tmp_path / "c.jsonl")
    assert [load.inserted for load in first.look().loaded] == [1]


def test_a_file_that_grows_waits_until_it_settles(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    clock = Clock()
    clock.now = time.time()
    folder = Watch(store, tmp_path, spark=spark, clock=clock)
    path = write(tmp_path / "a.jsonl", [event(1)])
    os.utime(path, (clock.now + 5000, clock.now + 5000))  # a file server's clock may be ahead
    assert folder.look().waiting == [str(path)]
    for number in (2, 3):
        clock.now += SETTLE
        with path.open("a") as file:
            file.write(json.dumps(event(number)) + "\n")
        assert folder.look().waiting == [str(path)]
    clock.now += SETTLE
    assert [load.inserted for load in folder.look().loaded] == [3]
    with path.open("a") as file:
        file.write(json.dumps(event(4)) + "\n")
    clock.now += SETTLE
    assert folder.look().waiting == [str(path)]
    clock.now += SETTLE
    assert [load.inserted for load in folder.look().loaded] == [1], "taken too early: what followed is loaded too"


def test_a_bad_file_is_named_and_tried_again_later_while_the_others_load(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    clock = Clock()
    folder = Watch(store, tmp_path, spark=spark, clock=clock)
    write(tmp_path / "a.jsonl", [event(1), "{broken"])
    bad = tmp_path / "b.parquet"
    bad.write_bytes(b"no Parquet")
    write(tmp_path / "c.jsonl", [event(3)])
    done = folder.look()
    assert [(load.inserted, load.dead) for load in done.loaded] == [(1, 1), (1, 0)]
    assert list(done.failed) == [str(bad)] and "no readable Parquet" in done.failed[str(bad)]
    assert folder.look() == watch.Pass(), "not at once"
    clock.now += 61
    assert list(folder.look().failed) == [str(bad)]
    clock.now += 61
    assert folder.look().failed == {}, "ever more rarely"
    bad.unlink()
    assert folder.look() == watch.Pass()


def test_a_file_whose_last_line_has_no_end_waits_longer(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    clock = Clock()
    clock.now = time.time()
    folder = Watch(store, tmp_path, spark=spark, clock=clock)
    half = tmp_path / "half.jsonl"
    half.write_text(json.dumps(event(1)))
    whole = write(tmp_path / "whole.jsonl", [event(2)])
    for path in (half, whole):
        os.utime(path, (clock.now, clock.now))
    clock.now += SETTLE
    done = folder.look()
    assert (done.waiting, [load.inserted for load in done.loaded]) == ([str(half)], [1])
    clock.now += 10 * SETTLE
    assert [load.inserted for load in folder.look().loaded] == [1]


def test_odd_entries_stop_nothing_else(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.jsonl", [event(1)])
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/b\xff.jsonl")
    write(Path(odd), [event(2)])
    write(tmp_path / "gone" / "c.jsonl", [event(3)])
    write(tmp_path / "closed" / "d.jsonl", [event(4)])
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "not there")
    refuse_gone = refusing("gone", FileNotFoundError(2, "No such file"))
    monkeypatch.setattr(os, "scandir", refuse_gone)
    monkeypatch.setattr(os, "scandir", refusing("closed", PermissionError(13, "Permission denied")))
    folder = Watch(store, tmp_path, spark=spark, clock=Clock())
    done = folder.look()
    assert [load.inserted for load in done.loaded] == [1]
    assert set(done.failed) == {odd, str(tmp_path / "closed")}
    assert "not UTF-8" in done.failed[odd] and "Permission denied" in done.failed[str(tmp_path / "closed")]
    assert folder.look() == watch.Pass(), "they are tried again later"


@pytest.mark.parametrize(
    "error",
    [psycopg.errors.CardinalityViolation("twice"), OSError(5, "Input/output error"), logstore.PartitionError("x")],
)
def test_an_error_of_one_file_is_told_and_the_others_load(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    bad = write(tmp_path / "a.jsonl", [event(1)])
    write(tmp_path / "b.jsonl", [event(2)])
    load = watch.load

    def fail(store: logstore.LogStore, paths: list[str], **options: Any) -> Any:
        if str(bad) in paths:
            raise error
        return load(store, paths, **options)

    monkeypatch.setattr(watch, "load", fail)
    done = Watch(store, tmp_path, spark=spark, clock=Clock()).look()
    assert list(done.failed) == [str(bad)]
    assert [load.inserted for load in done.loaded] == [1]


def test_a_folder_that_is_not_there_is_refused(store: logstore.LogStore, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no folder"):
        Watch(store, tmp_path / "nowhere")


@pytest.fixture
def command(
    store: logstore.LogStore, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("LOGSTORE_DSN", store.database.conninfo)
    monkeypatch.setenv("LOGSTORE_ROLE", "operator")
    monkeypatch.setattr(watch, "SETTLE", 0.05)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["watch", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_once_loads_what_is_there_and_says_what_failed(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    write(tmp_path / "a.jsonl", [event(1)])
    os.utime(tmp_path / "a.jsonl", (0, 0))  # nobody still writes to it
    assert command(str(tmp_path), "--once")[:2] == (0, "load 1: a.jsonl: 1 inserted, 0 updated, 0 skipped, 0 dead\n")
    (tmp_path / "evil\x1b[2J.parquet").write_bytes(b"no Parquet")
    code, out, err = command(str(tmp_path), "--once", "--json")
    document: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert (code, document["loads"], list(document["known"].values())) == (1, [], [1])
    assert len(document["failed"]) == 1 and "evil\\x1b" in err
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff.jsonl")), [event(2)])
    code, out, err = command(str(tmp_path), "--once", "--json")
    out.encode(), err.encode()
    assert any(path.endswith("odd\udcff.jsonl") for path in json.loads(out.splitlines()[-1])["failed"])


def test_an_interrupt_ends_it_cleanly(
    command: Callable[..., tuple[int, str, str]], store: logstore.LogStore, tmp_path: Path
) -> None:
    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while not ids(store) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    write(tmp_path / "a.jsonl", [event(1)])
    other = threading.Thread(target=interrupt)
    other.start()
    code, _, err = command(str(tmp_path))
    other.join()
    assert (code, ids(store)) == (0, ["evt_000001"])
    assert "stopped" in err
