"""Loads and dead letters without Spark: looking at them, requeueing once, discarding, from Python and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

import logstore
from logstore import LoadError, ServerError, loads, partitions
from logstore.commands import main
from logstore.settings import ROOT
from logstore.statements import statements

from .pipeline.files import attempt, event


def letter(store: logstore.LogStore, raw: str, reason: str = "malformed", **more: Any) -> int:
    """A letter as a load leaves it."""
    values = {
        "raw": raw,
        "reason": reason,
        "position": more.pop("position", 0),
        "truncated": more.pop("truncated", False),
    }
    with store.database.connection() as connection:
        load = connection.execute("INSERT INTO loads (state, stage) VALUES ('done', 'done') RETURNING id").fetchone()
        assert load is not None
        row = connection.execute(
            "INSERT INTO dead_letters (load, file, position, line, raw, truncated, reason, message)"
            " VALUES (%(load)s, '/data/a.jsonl', %(position)s, 1, %(raw)s, %(truncated)s, %(reason)s, 'said')"
            " RETURNING id",
            {**values, "load": load[0]},
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_letter_is_loaded_with_its_text_as_it_stands(any_store: logstore.LogStore) -> None:
    raw = json.dumps(event(1)).replace('"n": 1', '"n": 1.10')
    number = letter(any_store, raw, "month_not_open")
    loads.requeue(any_store, number)
    with any_store.database.connection() as connection:
        assert connection.execute("SELECT data ->> 'n' FROM events").fetchone() == ("1.10",)
        assert connection.execute("SELECT tenant_id FROM tenants").fetchall() == [(event(1)["tenant_id"],)]
    found = loads.dead_letter(any_store, number)
    assert (found.state, found.attempts, found.corrected) == ("requeued", 2, None)


def test_a_corrected_letter_updates_an_attempt_that_is_there(store: logstore.LogStore) -> None:
    first, second = (letter(store, "no", position=i) for i in range(2))
    loads.requeue(store, first, json.dumps(attempt(1, status="failed", code="500")))
    loads.requeue(store, second, json.dumps(attempt(1, status="success", code="200", topic="other")))
    found = store.retrieve_attempt(attempt(1)["id"])
    assert found is not None
    assert (found.status, found.code, found.topic) == ("success", "200", attempt(1)["topic"])
    assert json.loads(loads.dead_letter(store, second).corrected or "")["code"] == "200"


def test_a_letter_is_requeued_once(store: logstore.LogStore) -> None:
    number = letter(store, json.dumps(event(1)))
    loads.requeue(store, number)
    with pytest.raises(LoadError, match="requeued already"):
        loads.requeue(store, number)
    with pytest.raises(LoadError, match="requeued already"):
        loads.discard(store, number)


def test_two_people_requeue_the_same_letter_and_one_of_them_does(store: logstore.LogStore) -> None:
    one = letter(store, "no")
    gate, told = threading.Barrier(5), []

    def requeue(number: int) -> None:
        gate.wait()
        try:
            loads.requeue(store, one, json.dumps(event(number)))
        except LoadError as error:
            told.append(str(error))

    threads = [threading.Thread(target=requeue, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 4
    assert len(store.list_event()) == 1


def test_a_letter_that_is_still_wrong_stays_open_and_says_the_new_reason(store: logstore.LogStore) -> None:
    number = letter(store, "no")
    with pytest.raises(LoadError, match="still refused \\(naive_time\\)"):
        loads.requeue(store, number, json.dumps(event(1, time="2026-02-01T00:00:00")))
    found = loads.dead_letter(store, number)
    assert (found.state, found.reason, found.attempts) == ("open", "naive_time", 2)
    loads.requeue(store, number, json.dumps(event(1)))


def test_a_letter_for_a_closed_month_waits_for_it_to_open(store: logstore.LogStore) -> None:
    partitions.ensure(store.database, [("events", partitions.parse_name("events_2026_01")[1])])
    partitions.close(store.database, "events_2026_01")
    number = letter(store, json.dumps(event(1)), "month_not_open")
    with pytest.raises(LoadError, match="restore events_2026_01"):
        loads.requeue(store, number)
    partitions.reopen(store.database, "events_2026_01")
    loads.requeue(store, number)
    assert len(store.list_event()) == 1


def test_a_letter_that_is_not_whole_needs_the_whole_text(store: logstore.LogStore) -> None:
    number = letter(store, '{"id": "x', "oversize", truncated=True)
    with pytest.raises(LoadError, match="requeue it with the whole text"):
        loads.requeue(store, number)
    loads.requeue(store, number, json.dumps(event(1)))


def test_a_discarded_letter_is_done_with(store: logstore.LogStore) -> None:
    number = letter(store, "no")
    loads.discard(store, number)
    assert loads.dead_letters(store) == []
    assert [x.id for x in loads.dead_letters(store, state="discarded")] == [number]
    with pytest.raises(LoadError, match="discarded already"):
        loads.requeue(store, number, json.dumps(event(1)))


def test_letters_are_listed_by_reason_and_load_page_by_page(store: logstore.LogStore) -> None:
    ids = [letter(store, f"no {i}", "nul" if i % 2 else "malformed", position=i) for i in range(6)]
    assert [x.id for x in loads.dead_letters(store, limit=2)] == ids[:-3:-1]
    assert [x.id for x in loads.dead_letters(store, limit=2, before=ids[4])] == [ids[3], ids[2]]
    assert [x.id for x in loads.dead_letters(store, reason="nul")] == [ids[5], ids[3], ids[1]]
    assert len(loads.dead_letters(store, load=loads.dead_letter(store, ids[0]).load)) == 1
    assert loads.letter_counts(store) == [("open", "malformed", 3), ("open", "nul", 3)]
    assert loads.letter_counts(store, load=loads.dead_letter(store, ids[1]).load) == [("open", "nul", 1)]


def test_what_is_not_there_is_said_to_be_not_there(store: logstore.LogStore) -> None:
    with pytest.raises(LoadError, match="there is no dead letter 99"):
        loads.requeue(store, 99)
    with pytest.raises(LoadError, match="there is no load 99"):
        loads.get(store, 99)
    with pytest.raises(LoadError, match="unknown state"):
        loads.dead_letters(store, state="lost")


def test_a_reader_looks_and_changes_nothing(open_store: Any, store: logstore.LogStore, dsn: str) -> None:
    number = letter(store, json.dumps(event(1)))
    reader = open_store(dsn, role="reader")
    assert loads.dead_letter(reader, number).raw
    assert loads.history(reader)
    for change in (loads.requeue, loads.discard):
        with pytest.raises(ServerError, match="LOGSTORE_ROLE=operator"):
            change(reader, number)


def test_the_command_line_lists_shows_requeues_and_discards(
    store: logstore.LogStore,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    first, second, third = (letter(store, f"no\x1b[31m {i}", position=i) for i in range(3))

    def said(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        return capsys.readouterr().out

    listed = said("dead-letters", "list")
    assert "a.jsonl" in listed
    assert "\x1b" not in listed
    assert json.loads(said("dead-letters", "show", str(first), "--json"))["reason"] == "malformed"
    shown = said("dead-letters", "show", str(first))
    assert "no\\x1b[31m 0" in shown and "\x1b" not in shown
    corrected = tmp_path / "corrected.json"
    corrected.write_text(json.dumps(event(1)))
    assert "loaded as an event" in said("dead-letters", "requeue", str(first), "--file", str(corrected))
    assert (
        json.loads(said("dead-letters", "requeue", str(second), "--text", json.dumps(attempt(1)), "--json"))["kind"]
        == "attempt"
    )
    said("dead-letters", "requeue", str(second), code=2)
    assert "discarded" in said("dead-letters", "discard", str(third))
    assert json.loads(said("dead-letters", "list", "--json")) == []
    assert len(json.loads(said("loads", "--json"))) == 3
    assert (len(store.list_event()), len(store.list_attempt())) == (1, 1)


def test_an_empty_correction_is_not_the_old_text(store: logstore.LogStore) -> None:
    number = letter(store, json.dumps(event(1)))
    with pytest.raises(LoadError, match="still refused \\(malformed\\)"):
        loads.requeue(store, number, "")
    assert store.list_event().data == ()


def test_a_letter_that_postgres_refuses_again_stays_open_and_says_so(store: logstore.LogStore) -> None:
    raw = json.dumps(event(1, data={"n": "@"})).replace('"@"', "9" * 140_000)
    number = letter(store, raw, "refused")
    with pytest.raises(LoadError, match="still refused \\(refused\\): PostgreSQL refuses it"):
        loads.requeue(store, number)
    found = loads.dead_letter(store, number)
    assert (found.state, found.reason, found.attempts) == ("open", "refused", 2)


def test_a_month_that_closes_just_before_the_row_is_written_is_a_reason(
    store: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions.ensure(store.database, [("events", partitions.parse_name("events_2026_01")[1])])
    number = letter(store, json.dumps(event(1)))
    monkeypatch.setattr(partitions, "ensure", lambda database, _: partitions.close(database, "events_2026_01"))
    with pytest.raises(LoadError, match=r"month_not_open.*restore events_2026_01"):
        loads.requeue(store, number)
    assert loads.dead_letter(store, number).state == "open"


def test_a_running_load_whose_process_is_gone_is_called_dead(
    store: logstore.LogStore, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    with store.database.connection(autocommit=True) as driver:
        for _ in range(2):
            driver.execute("INSERT INTO loads DEFAULT VALUES")
        assert driver.execute(statements("postgres", "loads")["live_lock"], {"load": 2}).fetchone() == (True,)
        assert [(x.id, x.alive) for x in loads.history(store)] == [(2, True), (1, False)]
        assert main(["loads"]) == 0
        assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["state", "running", "dead"]


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.UndefinedTable("relation does not exist\nLINE 1: SELECT"),
        PermissionError(13, "Permission denied", "/data/a\x1b.jsonl"),
        psycopg.OperationalError("connection failed"),
    ],
    ids=["PostgreSQL", "file system", "connection"],
)
def test_what_the_machine_refuses_is_one_sentence_and_no_traceback(
    dsn: str,
    store: logstore.LogStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    monkeypatch.setattr(loads, "history", fail)
    assert main(["loads", "--json"]) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1 and "Traceback" not in said.err and "\x1b" not in said.err
    assert json.loads(said.out)["message"]


def test_a_path_that_is_not_there_is_one_sentence(
    dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: logstore.LogStore
) -> None:
    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    assert main(["load", "/no/such/file.jsonl"]) == 2
    assert "there is no /no/such/file.jsonl" in capsys.readouterr().err


def test_the_commands_about_loads_do_not_import_spark() -> None:
    code = "import sys, logstore.loads, logstore.commands.load; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"
