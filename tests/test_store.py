"""Writing and finding records: batches are whole, conflicts follow the rules, look-ups answer for the right tenant."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logstore
from logstore import Attempt, InvalidRecord, LogStore, PartitionError, Selection, ServerError, partitions
from logstore.embedded import EmbeddedServer
from logstore.inserts import InsertReport
from tests import records_of
from tests.conftest import QUICK, new_database
from tests.records_of import START, attempt, event, unique


def report(inserted: int, skipped: int, new: int, updated: int) -> InsertReport:
    return InsertReport(
        events_inserted=inserted, events_skipped=skipped, attempts_inserted=new, attempts_updated=updated
    )


def test_what_was_inserted_comes_back_equal(any_store: LogStore) -> None:
    data = {"text": "ü😀\\u0000 is text here", "nested": {"a": [1, 2.5, None, True]}, "quote": "'\""}
    sent = event(data=data, metadata={"m": [1]}, destination_id="des_9", eligible_for_retry=False)
    tried = attempt(event_data=data, response_data={"body": "no"}, code="503", status="failed", manual=True)
    assert any_store.insert_many([sent], [tried]) == report(1, 0, 1, 0)
    assert any_store.list_event().data == (sent,)
    assert any_store.list_attempt().data == (tried,)
    assert any_store.list_attempt().tiers == ("hot",)


def test_no_response_and_a_json_null_are_both_none(store: LogStore) -> None:
    store.insert_many(attempts=[attempt()])
    assert store.list_attempt().data[0].response_data is None


def test_an_event_that_is_there_is_left_as_it_was(any_store: LogStore) -> None:
    any_store.insert_many([event(topic="first")])
    assert any_store.insert_many([event(topic="second"), event("evt_2")]) == report(1, 1, 0, 0)
    assert {e.id: e.topic for e in any_store.list_event()} == {"evt_1": "first", "evt_2": "order.created"}


def test_an_attempt_that_is_there_changes_status_code_and_response_and_nothing_else(any_store: LogStore) -> None:
    first = attempt(status="failed", code="500", response_data={"try": 1})
    any_store.insert_many(attempts=[first])
    again = attempt(
        status="success",
        code=None,
        response_data={"try": 2},
        event_id="other",
        tenant_id="other",
        destination_id="other",
        topic="other",
        attempt_number=9,
        manual=True,
        event_time=START + timedelta(days=1),
        eligible_for_retry=False,
        event_data={"other": 1},
        event_metadata={"other": 1},
    )
    assert any_store.insert_many(attempts=[again]) == report(0, 0, 0, 1)
    assert any_store.list_attempt().data == (attempt(status="success", code=None, response_data={"try": 2}),)


def test_of_duplicates_inside_a_batch_the_last_wins(store: LogStore) -> None:
    assert store.insert_many(
        [event(topic="a"), event(topic="b")], [attempt(code="1"), attempt(code="2"), attempt("att_2")]
    ) == report(1, 1, 2, 1)
    assert store.list_event().data[0].topic == "b"
    assert {a.id: a.code for a in store.list_attempt()} == {"att_1": "2", "att_2": None}


@settings(max_examples=25)
@given(batches=st.lists(st.lists(records_of.attempts, max_size=6), max_size=5))
def test_any_sequence_of_batches_leaves_what_the_rules_say(
    any_store_module: LogStore, batches: list[list[Attempt]]
) -> None:
    store = any_store_module
    with store.database.transaction() as connection:
        connection.execute("DELETE FROM attempts")
    expected: dict[Any, Attempt] = {}
    for batch in batches:
        done = store.insert_many(attempts=batch)
        new = {(a.time, a.id) for a in batch} - expected.keys()
        assert (done.attempts_inserted, done.attempts_updated) == (len(new), len(batch) - len(new))
        for given_one in unique(batch):
            there = expected.get((given_one.time, given_one.id), given_one)
            expected[given_one.time, given_one.id] = attempt(
                **{name: getattr(there, name) for name in Attempt.columns}
                | {name: getattr(given_one, name) for name in ("status", "code", "response_data")}
            )
    assert list(store.list_attempt(limit=1000, order="asc")) == unique(list(expected.values()))


@pytest.mark.parametrize(
    "data", [{"a": float("nan")}, {"a": "x\x00y"}, {"x\x00": 1}, {"a": object()}, {"a": "\ud800"}, {"a": [["\x00"]]}]
)
def test_data_that_is_not_json_is_refused_and_nothing_is_written(store: LogStore, data: Any) -> None:
    with pytest.raises(InvalidRecord, match="evt_bad"):
        store.insert_many([event("evt_good"), event("evt_bad", data=data)])
    assert store.list_event().data == ()


@pytest.mark.parametrize("days", [3, -366 * 11])
def test_an_absurd_time_is_refused_and_the_settings_named(store: LogStore, days: int) -> None:
    with pytest.raises(PartitionError, match="LOGSTORE_OLDEST or LOGSTORE_AHEAD"):
        store.insert_many([event(time=datetime.now(UTC) + timedelta(days=days))])


def test_a_reader_may_not_write(open_store: Any, dsn: str) -> None:
    open_store(dsn)
    reader = open_store(dsn, role="reader")
    with pytest.raises(ServerError, match="LOGSTORE_ROLE=operator"):
        reader.insert_many([event()])
    with reader.database.connection() as connection:
        connection.execute("SET transaction_read_only = off")  # the role holds even where the read-only mode is undone
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM events")


def test_retrieve_returns_the_newest_of_an_id(any_store: LogStore) -> None:
    later = START + timedelta(days=40)
    any_store.insert_many([event(), event(time=later)], [attempt(), attempt(time=later)])
    found, tried = any_store.retrieve_event("evt_1"), any_store.retrieve_attempt("att_1")
    assert found is not None and tried is not None
    assert found.time == tried.time == later


def test_what_belongs_to_another_tenant_is_not_found(any_store: LogStore) -> None:
    any_store.insert_many([event()], [attempt()])
    assert any_store.retrieve_event("evt_1", tenant_id="acme") is not None
    assert any_store.retrieve_event("evt_1", tenant_id="bravo") is None
    assert any_store.retrieve_attempt("att_1", tenant_id="bravo") is None
    assert any_store.retrieve_event("nothing") is None
    assert any_store.retrieve_event("a\x00b") is None


def test_an_event_is_found_by_destination_only_if_an_attempt_went_there(any_store: LogStore) -> None:
    any_store.insert_many(
        [event()], [attempt(destination_id="des_1"), attempt("att_2", tenant_id="b", destination_id="x")]
    )
    found = any_store.retrieve_event("evt_1", destination_id="des_1")
    assert found is not None and found.destination_id == "des_1"
    assert any_store.retrieve_event("evt_1", destination_id="des_2") is None
    assert any_store.retrieve_event("evt_1", destination_id="x") is None, "another tenant's attempt does not count"


def test_rows_written_by_another_program_are_listed_without_a_tenant_too(store: LogStore) -> None:
    store.insert_many(attempts=[attempt()])
    with store.database.connection() as connection:
        connection.execute(
            "INSERT INTO attempts SELECT 'raw', event_id, 'stranger', 'des_raw', 'raw.topic', status, time, 1, false, code,"
            " response_data, event_time, true, event_data, event_metadata FROM attempts"
        )
    for selection in (Selection(topics=("raw.topic",)), Selection(destination_ids=("des_raw",))):
        assert [a.id for a in store.list_attempt(selection)] == ["raw"]


def test_six_threads_with_overlapping_batches_neither_deadlock_nor_lose_a_row(any_store: LogStore) -> None:
    shared = [START + timedelta(seconds=n) for n in range(40)]
    failures: list[BaseException] = []

    def write(worker: int) -> None:
        chance = random.Random(worker)
        try:
            for turn in range(60):
                picked = chance.sample(range(40), 12)
                if worker % 2:
                    picked.sort(reverse=True)
                events = [event(f"e{n}", time=shared[n], topic=f"by{worker}") for n in picked]
                tries = [attempt(f"a{n}", time=shared[n], code=f"{worker}:{turn}", topic=f"by{worker}") for n in picked]
                any_store.insert_many(events[::-1], tries)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures
    assert {e.id for e in any_store.list_event()} == {a.id.replace("a", "e") for a in any_store.list_attempt()}
    assert len(any_store.list_event()) == 40
    for tried in any_store.list_attempt():
        assert tried.code is not None
        worker, turn = map(int, tried.code.split(":"))
        assert 0 <= worker < 6 and 0 <= turn < 60
        assert tried.topic.startswith("by")


WRITER = """
import sys, logstore
from datetime import timedelta
from tests.records_of import START, attempt, event
store = logstore.open(sys.argv[1], role="operator")
for batch in range(100_000):
    times = [START + timedelta(seconds=batch, microseconds=n) for n in range(200)]
    store.insert_many([event(f"e{batch}", time=t) for t in times], [attempt(f"a{batch}", time=t) for t in times])
    print(batch, flush=True)
"""


def test_killing_postgres_in_the_middle_leaves_batches_whole_or_absent(short_folder: Path) -> None:
    server = EmbeddedServer(short_folder / "kill", tuning=QUICK)
    server.acquire()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE killed")
        with logstore.open(server.dsn("killed"), role="operator") as store:
            store.insert_many([event()])
        for kill in range(3):
            done = _write_until_killed(server, seconds=0.4 + 0.15 * kill)
            server.revive()
            with psycopg.connect(server.dsn("killed")) as connection:
                rows = dict(
                    connection.execute("SELECT id, count(*) FROM events WHERE id <> 'evt_1' GROUP BY 1").fetchall()
                )
                tries = dict(connection.execute("SELECT id, count(*) FROM attempts GROUP BY 1").fetchall())
                connection.execute("DELETE FROM events WHERE id <> 'evt_1'")
                connection.execute("DELETE FROM attempts")
            assert set(rows.values()) <= {200} and set(tries.values()) <= {200}
            assert {name[1:] for name in rows} == {name[1:] for name in tries}, "events without their attempts"
            assert {str(batch) for batch in done} <= {name[1:] for name in rows}, "a batch that was reported is gone"
    finally:
        server.release()


def _write_until_killed(server: EmbeddedServer, *, seconds: float) -> list[int]:
    """The batches that a writer reported before PostgreSQL was killed under it."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, server.dsn("killed")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(seconds)
    postmaster = server.postmaster()
    assert postmaster is not None
    with psycopg.connect(server.dsn("killed")) as connection:
        backends = [
            pid
            for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        ]
    for pid in (postmaster, *backends):  # the postmaster first: it would restart what loses a backend
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    rest, _ = writer.communicate(timeout=60)
    return [int(line) for line in (first + rest).split()]


def test_a_store_that_is_open_goes_on_after_postgres_was_restarted(short_folder: Path) -> None:
    server = EmbeddedServer(short_folder / "again", tuning=QUICK)
    server.acquire()
    try:
        with logstore.open(home=short_folder / "again") as store:
            store.insert_many([event()])
            postmaster = server.postmaster()
            assert postmaster is not None
            os.kill(postmaster, signal.SIGKILL)
            server.revive()
            assert [e.id for e in store.list_event()] == ["evt_1"]
            assert store.retrieve_event("evt_1") is not None
            store.insert_many([event("evt_2")])
            assert len(store.list_event()) == 2
    finally:
        server.release()


def test_closing_twice_is_closing_once(open_store: Any, dsn: str) -> None:
    store = open_store(dsn)
    store.close()
    store.close()


def test_ten_writers_that_need_the_same_new_month_all_get_their_rows_in(any_store: LogStore) -> None:
    failures: list[BaseException] = []

    def write(worker: int) -> None:
        try:
            for month in range(3):
                at = START + timedelta(days=31 * month, seconds=worker)
                any_store.insert_many([event(f"e{worker}", time=at)], [attempt(f"a{worker}", time=at)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not failures
    assert len(any_store.list_event()) == len(any_store.list_attempt()) == 30


def test_two_databases_do_not_see_each_other(open_store: Any, server: EmbeddedServer) -> None:
    one, other = open_store(new_database(server)), open_store(new_database(server))
    one.insert_many([event()])
    assert other.list_event().data == ()


@pytest.mark.parametrize("data", [{1: 2}, {"a": [{"b": {None: 1}}]}, {"a": ({True: 1},)}], ids=str)
def test_a_key_that_is_no_text_is_refused_before_anything_is_written(store: LogStore, data: Any) -> None:
    with pytest.raises(InvalidRecord, match="is no text"):
        store.insert_many([event(data=data), event("evt_2")])
    assert store.list_event().data == ()


def test_a_month_that_somebody_holds_for_a_while_is_waited_for(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_LOCK_TIMEOUT", "300ms")
    with store.database.connection() as holder:
        partitions.lock(holder, "events", partitions.month_of(START))
        threading.Timer(0.5, holder.rollback).start()
        assert store.insert_many([event()]).events_inserted == 1


def test_a_month_that_somebody_does_not_let_go_is_a_sentence(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_LOCK_TIMEOUT", "50ms")
    with store.database.connection() as holder:
        partitions.lock(holder, "events", partitions.month_of(START))
        with pytest.raises(PartitionError, match="try again in a moment"):
            store.insert_many([event()])
    assert store.insert_many([event()]).events_inserted == 1
