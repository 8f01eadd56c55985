"""Maintenance does what its plan says, one at a time, politely; killed anywhere it is made good by running again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from logstore import (
    LogStore,
    MaintenanceError,
    PartitionError,
    Selection,
    TimeFilter,
    archive,
    ddl,
    maintenance,
    partitions,
)
from logstore.maintenance import Patience, Plan, Step, locks
from logstore.retention import Policy
from tests.records_of import attempt, event
from tests.test_archive import make_cold
from tests.test_paging import walk

NOW = datetime.now(UTC)
WEEKS = timedelta(days=8)  # longer than the undo window
QUICK = Patience(seconds=0.4, tries=2, pause=0.05)  # for those tests in which somebody does not let go
WAY_OUT = ["close", "export", "verify", "flip", "detach"]


def month(number: int, parent: str = "attempts") -> str:
    """The name of the month so many months ago."""
    return partitions.partition_name(parent, inside(number).date().replace(day=1))


def inside(number: int) -> datetime:
    """A moment early in that month; of the months 4 and older all are past 60 days, of 0 and 1 none."""
    count = NOW.year * 12 + NOW.month - 1 - number
    return datetime(count // 12, count % 12 + 1, 1, 0, 0, 1, tzinfo=UTC)


def records(number: int, count: int = 6) -> list[Any]:
    return [
        attempt(f"m{number}a{n}", time=inside(number) + timedelta(microseconds=n), event_data={"n": n, "t": "ü'\"\\"})
        for n in range(count)
    ]


def fill(store: LogStore, *numbers: int) -> list[Any]:
    """Attempts in those months, oldest first."""
    found = [record for number in sorted(numbers, reverse=True) for record in records(number)]
    store.insert_many(attempts=found)
    return found


def unlimited(store: LogStore) -> None:
    for policy in maintenance.policies(store):
        maintenance.set_policy(store, Policy(parent=policy.parent, tier=policy.tier))


def run(store: LogStore, **given: Any) -> maintenance.Run:
    return maintenance.apply(store, maintenance.plan(store, **given), actor="test")


def actions(plan: Plan) -> list[str]:
    """What a plan does about the past; months are made and roll-ups folded at any time."""
    return [step.action for step in plan if step.action not in ("premake", "fold")]


# Plans


def test_a_plan_goes_all_the_way_and_no_row_is_lost(any_store: LogStore) -> None:
    store = any_store
    given = fill(store, 5, 4, 1, 0)
    store.insert_many([event("old", time=inside(4)), event("new", time=inside(1))])
    plan = maintenance.plan(store)
    assert actions(plan) == WAY_OUT * 3, "two months of attempts, one of events"
    assert [step.action for step in plan][:2] == ["premake", "premake"], "months are made before any is removed"
    done = maintenance.apply(store, plan, actor="ann")
    assert [entry.what for entry in done.entries] == [step.what for step in plan]
    page = store.list_attempt(order="asc")
    assert list(page) == given
    assert page.tiers == ("cold",) * 12 + ("hot",) * 12
    assert maintenance.plan(store).steps == ()
    later = maintenance.plan(store, now=datetime.now(UTC) + WEEKS)
    assert actions(later) == ["purge"] * 3
    maintenance.apply(store, later, actor="ann")
    assert list(store.list_attempt(order="asc")) == given
    assert store.retrieve_event("old") is not None
    assert {p.name for p in partitions.inventory(store.database)}.isdisjoint({month(5), month(4), month(4, "events")})


def test_a_plan_says_everything_about_a_step(store: LogStore) -> None:
    fill(store, 4, 1, 0)
    with store.database.connection() as connection:
        connection.execute("ANALYZE attempts")
    step = next(step for step in maintenance.plan(store) if step.action == "detach")
    lower, upper = partitions.month_bounds(inside(4).date().replace(day=1))
    assert (step.table, step.partition, step.lower, step.upper, step.rows) == ("attempts", month(4), lower, upper, 6)
    assert step.sql == f'ALTER TABLE "attempts" DETACH PARTITION "{month(4)}" CONCURRENTLY'
    assert step.bytes > 0 and "days ago, hot keeps 60 days" in step.reason and "EXCLUSIVE" in step.lock
    document = maintenance.plan(store).to_dict()
    assert len(document["hash"]) == 64 and lower.isoformat() in {step["lower"] for step in document["steps"]}


def test_the_statements_that_a_plan_shows_are_the_ones_that_run(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 4, 1, 0)
    seen: set[str] = set()
    monkeypatch.setattr(psycopg.Cursor, "execute", _recorder(seen))
    for at in (None, datetime.now(UTC) + WEEKS):
        plan = maintenance.plan(store, now=at)
        maintenance.apply(store, plan, actor="test")
        for step in plan:
            if step.action not in ("export", "verify"):  # the one leaves by ADBC, the other reads files
                for text in step.sql.removeprefix("-- unless it is there:\n").split(";\n"):
                    assert text in seen, step.what


def _recorder(seen: set[str]) -> Callable[..., Any]:
    execute = psycopg.Cursor.execute

    def recorded(self: Any, query: Any, params: Any = None, **rest: Any) -> Any:
        text = query.as_string() if isinstance(query, sql.Composable) else str(query)
        seen.add(ddl.filled(text, params) if isinstance(params, dict) and "months" in text else text)
        return execute(self, query, params, **rest)

    return recorded


def test_the_number_of_queries_does_not_grow_with_the_months(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 4, 1, 0)
    counts = []
    for months in ((4, 1, 0), range(3, 30)):
        fill(store, *months)
        seen: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Cursor, "execute", _counter(seen))
            maintenance.plan(store)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 8


def _counter(seen: list[str]) -> Callable[..., Any]:
    execute = psycopg.Cursor.execute

    def counted(self: Any, query: Any, *rest: Any, **named: Any) -> Any:
        seen.append(str(query))
        return execute(self, query, *rest, **named)

    return counted


def test_a_stale_plan_is_refused_but_writers_do_not_make_it_stale(store: LogStore) -> None:
    fill(store, 5, 4, 1, 0)
    plan = maintenance.plan(store)
    store.insert_many(attempts=[attempt("more", time=inside(4) + timedelta(days=1))])
    assert maintenance.plan(store, now=plan.now).hash == plan.hash
    maintenance.set_policy(store, Policy(parent="attempts", tier="hot", max_count=99))
    with pytest.raises(MaintenanceError, match="stale"):
        maintenance.apply(store, plan, actor="test")
    plan = maintenance.plan(store)
    partitions.close(store.database, month(5))
    with pytest.raises(MaintenanceError, match="plan again"):
        maintenance.apply(store, plan, actor="test")
    assert maintenance.log(store) == []


def test_a_reader_may_plan_but_not_apply(store: LogStore, open_store: Any) -> None:
    fill(store, 4, 1, 0)
    reader = open_store(store.database.conninfo, "reader")
    plan = maintenance.plan(reader)
    assert actions(plan) == WAY_OUT
    with pytest.raises(Exception, match="operator"):
        maintenance.apply(reader, plan, actor="test")
    with pytest.raises(MaintenanceError, match="time zone"):
        maintenance.plan(store, now=datetime(2026, 1, 1))


def test_hostile_text_in_a_plan_stays_text() -> None:
    evil = "<script>alert(1)</script>"
    step = Step(action="close", table="attempts", partition=evil, sql=evil, lock="", reason=evil)
    assert "<script>" not in Plan.of((step,), now=NOW, catalogue=[])._repr_html_()
    assert Plan.of((), now=NOW, catalogue=[])._repr_html_() == "<p>Nothing to do.</p>"


# The run log


def test_every_step_is_in_the_log_and_nobody_can_rewrite_it(store: LogStore) -> None:
    fill(store, 4, 1, 0)
    plan = maintenance.plan(store)
    maintenance.apply(store, plan, actor="ann")
    entries = maintenance.log(store)[::-1]
    assert [(e.step, e.what, e.sql, e.result) for e in entries] == [
        (number, step.what, step.sql, "done") for number, step in enumerate(plan, 1)
    ]
    exported = next(entry for entry in entries if entry.action == "export")
    assert (exported.actor, exported.plan_hash, exported.rows) == ("ann", plan.hash, 6)
    assert exported.bytes and exported.milliseconds is not None
    for statement in (
        "UPDATE maintenance_runs SET actor = 'x'",
        "DELETE FROM maintenance_runs",
        "TRUNCATE maintenance_runs",
    ):
        with store.database.connection() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)
    with store.database.connection() as connection:
        granted = connection.execute(
            "SELECT privilege_type FROM information_schema.role_table_grants WHERE table_name = 'maintenance_runs'"
        ).fetchall()
    assert {name for (name,) in granted}.isdisjoint({"UPDATE", "DELETE", "TRUNCATE"})


def test_a_file_that_goes_bad_before_the_flip_stops_the_month_and_is_written_again(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = fill(store, 4, 1, 0)
    export = archive.export

    def damage(store: LogStore, partition: str) -> Any:
        sealed = export(store, partition)
        path = sealed[0].path(store.settings.archive)
        path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
        return sealed

    with monkeypatch.context() as patch:
        patch.setattr(archive, "export", damage)
        with pytest.raises(MaintenanceError, match="not safe in the archive"):
            run(store)
    last = maintenance.log(store)[0]
    assert (last.action, last.result) == ("verify", "failed") and last.error
    assert list(store.list_attempt(order="asc")) == given
    assert set(store.list_attempt().tiers) == {"hot"}
    run(store)
    page = store.list_attempt(order="asc")
    assert list(page) == given and page.warnings == () and page.tiers[0] == "cold"


# Locks


@contextlib.contextmanager
def busy(store: LogStore, statement: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody who asked something in a transaction and went for lunch."""
    with store.database.connection() as connection:
        connection.execute("SET application_name = 'a long report'")
        connection.execute(statement)
        yield connection


class Inserts:
    """Somebody who inserts all the time; `slowest` is the longest that one took."""

    def __init__(self, store: LogStore, number: int) -> None:
        self.slowest, self.count, self.failed = 0.0, 0, list[BaseException]()
        self._store, self._number, self._stop = store, number, threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        try:
            while not self._stop.wait(0.02):
                start = time.monotonic()
                when = inside(self._number) + timedelta(seconds=1 + self.count)
                self._store.insert_many(attempts=[attempt(f"w{self.count}", time=when)])
                self.slowest = max(self.slowest, time.monotonic() - start)
                self.count += 1
        except BaseException as error:
            self.failed.append(error)

    def __enter__(self) -> Inserts:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=60)
        assert not self.failed and self.count


def test_a_long_reader_is_waited_for_named_and_nothing_changes(any_store: LogStore) -> None:
    store = any_store
    given = fill(store, 4, 1, 0)
    unlimited(store)
    run(store)
    make_cold(store, month(4), depth="cold")
    plan = maintenance.plan(store)
    assert actions(plan) == ["detach"]
    with Inserts(store, 0) as inserts:
        with busy(store, "SELECT count(*) FROM attempts") as reader:
            start = time.monotonic()
            with pytest.raises(MaintenanceError) as refused:
                maintenance.apply(store, plan, actor="test", patience=QUICK)
            assert QUICK.seconds <= time.monotonic() - start < 30
            said = str(refused.value)
            assert f"process {reader.info.backend_pid} (a long report" in said and "SELECT count(*)" in said
            assert "changed nothing" in said
            assert maintenance.plan(store, now=plan.now).hash == plan.hash
        maintenance.apply(store, plan, actor="test", patience=Patience())
    assert inserts.slowest < 5, "the lock_timeout of partitions"
    assert [record for record in store.list_attempt(order="asc", limit=1000) if record.id[0] == "m"] == given
    assert [e.result for e in maintenance.log(store) if e.action == "detach"] == ["done", "failed"]


def test_who_comes_in_between_costs_writers_no_more_than_the_lock_timeout(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 4, 1, 0)
    unlimited(store)
    run(store)
    maintenance.set_policy(store, Policy(parent="attempts", tier="hot", max_age=timedelta(days=60), min_count=2))
    monkeypatch.setattr(partitions, "_LOCK_TIMEOUT", "300ms")
    monkeypatch.setattr(locks, "_wait", lambda *_: None)  # nobody was there when we looked
    plan = maintenance.plan(store)
    with Inserts(store, 4) as inserts, busy(store, f"DELETE FROM {month(4)} WHERE id = 'm4a0'") as writer:
        with pytest.raises(MaintenanceError, match=rf"close {month(4)} waits for process {writer.info.backend_pid}"):
            maintenance.apply(store, plan, actor="test", patience=QUICK)
        writer.rollback()
        time.sleep(0.1)
    assert inserts.slowest < 3, "300 ms, on a machine that has other things to do"
    assert maintenance.plan(store, now=plan.now).hash == plan.hash


def test_ten_press_apply_at_once_and_nine_are_told_who_works(store: LogStore, open_store: Any) -> None:
    given = fill(store, 4, 1, 0)
    plan = maintenance.plan(store)
    stores = [open_store(store.database.conninfo) for _ in range(10)]
    together, said, worked = threading.Barrier(10), list[str](), list[int]()
    told = threading.Semaphore(0)

    def wait_for_the_others(entry: maintenance.Entry) -> None:
        if (entry.step, entry.result) == (1, "started"):
            for _ in range(9):
                assert told.acquire(timeout=60)

    def press(number: int) -> None:
        together.wait()
        try:
            maintenance.apply(stores[number], plan, actor=f"p{number}", progress=wait_for_the_others)
            worked.append(number)
        except MaintenanceError as error:
            said.append(str(error))
            told.release()

    threads = [threading.Thread(target=press, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert len(worked) == 1 and len(said) == 9
    assert all("already at work: process " in text and f"logstore maintain (p{worked[0]})" in text for text in said)
    assert list(store.list_attempt(order="asc")) == given
    assert {entry.actor for entry in maintenance.log(store)} == {f"p{worked[0]}"}


# Half-done work


def interrupt_detach(store: LogStore, name: str) -> None:
    with busy(store, "SELECT count(*) FROM attempts"), store.database.connection(autocommit=True) as connection:
        connection.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            connection.execute(f"ALTER TABLE attempts DETACH PARTITION {name} CONCURRENTLY")


def test_a_half_done_detach_is_finalised_before_anything_else(any_store: LogStore) -> None:
    given = fill(any_store, 5, 4, 1, 0)
    make_cold(any_store, month(5), depth="cold")
    interrupt_detach(any_store, month(5))
    plan = maintenance.plan(any_store)
    assert (plan.steps[0].action, plan.steps[0].partition) == ("finalise", month(5))
    run(any_store)
    assert list(any_store.list_attempt(order="asc")) == given
    assert not any(partition.pending for partition in partitions.inventory(any_store.database))


@pytest.mark.parametrize("half", [True, False])
def test_a_month_that_somebody_detached_by_hand_is_put_back(any_store: LogStore, half: bool) -> None:
    given = fill(any_store, 4, 1, 0)
    if half:
        interrupt_detach(any_store, month(1))
    else:
        with any_store.database.connection() as connection:
            connection.execute(f"ALTER TABLE attempts DETACH PARTITION {month(1)}")
    assert len(any_store.list_attempt()) == 12
    plan = maintenance.plan(any_store)
    assert (plan.steps[0].action, plan.steps[0].partition) == ("attach", month(1))
    run(any_store)
    assert list(any_store.list_attempt(order="asc")) == given
    any_store.insert_many(attempts=[attempt("again", time=inside(1))])


def test_a_partition_that_logstore_did_not_make_is_left_alone(store: LogStore) -> None:
    fill(store, 4, 1, 0)
    with store.database.connection() as connection:
        connection.execute(
            "CREATE TABLE attempts_ancient PARTITION OF attempts FOR VALUES FROM ('2001-01-01') TO ('2002-01-01')"
        )
    assert actions(maintenance.plan(store)) == []
    assert "attempts_ancient" in str(maintenance.health(store))


KILLED = """
import os, sys
import logstore
from logstore import archive, maintenance
dsn, home = sys.argv[1:]
for line in sys.stdin:
    child = os.fork()  # a process of its own, without paying for the imports each time
    if child == 0:
        os.environ["LOGSTORE_FAULT"], *undo = line.split()
        with logstore.open(dsn, role="operator", home=home) as store:
            if undo:
                maintenance.undo(store, *undo, actor="killed")
            else:
                maintenance.apply(store, maintenance.plan(store), actor="killed")
        sys.exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@contextlib.contextmanager
def killer(store: LogStore) -> Iterator[Callable[..., int]]:
    """Runs `apply`, or `undo` of a month, in processes that die at a fault point; gives how they ended."""
    command = [sys.executable, "-c", KILLED, store.database.conninfo, str(store.settings.home)]
    environment = {**os.environ, "LOGSTORE_UNDO_DAYS": "0"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]

        def kill_at(point: str, undo: str = "") -> int:
            process.stdin.write(f"{point if '.' in point else f'maintain.{point}'} {undo}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, process.stderr.read()
            return os.waitstatus_to_exitcode(int(answer))

        yield kill_at
        process.stdin.close()


class Reads:
    """Somebody who walks through the old months all the time, both ways, and always finds the same."""

    def __init__(self, store: LogStore, expected: list[Any]) -> None:
        self.count, self.failed, self._stop = 0, list[BaseException](), threading.Event()
        time_filter = TimeFilter(gte=expected[0].time, lte=expected[-1].time)
        self._store, self._expected, self._selection = store, expected, Selection(time=time_filter)
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        try:
            while not self._stop.wait(0.05):
                forward, back = walk(self._store.list_attempt, self._selection, limit=7, order="asc")
                assert forward == back == self._expected
                self.count += 1
        except BaseException as error:
            self.failed.append(error)

    def __enter__(self) -> Reads:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=60)
        assert not self.failed and self.count


def test_killed_after_every_kind_of_step_with_writers_and_readers_it_is_made_good_by_running_again(
    store: LogStore,
) -> None:
    given = fill(store, 6, 5, 4, 1, 0)
    make_cold(store, month(6))
    upper = partitions.month_bounds(inside(6).date().replace(day=1))[1]
    limit = NOW - upper - timedelta(days=1)
    maintenance.set_policy(store, Policy(parent="attempts", tier="cold", max_age=limit, min_count=1))
    with store.database.connection() as connection:
        connection.execute(f"ALTER TABLE attempts DETACH PARTITION {month(1)}")
    kept = given[6:]
    with killer(store) as kill_at:
        assert kill_at("attach") == -signal.SIGKILL
        assert list(store.list_attempt(order="asc")) == given
        with Inserts(store, 0) as inserts, Reads(store, kept[:18]) as reads:
            for action in ("premake", "close", "export", "verify", "flip"):
                assert kill_at(action) == -signal.SIGKILL, action
            interrupt_detach(store, month(5))
            for action in ("finalise", "detach", "purge", "remove"):
                assert kill_at(action) == -signal.SIGKILL, action
            with store.database.connection() as connection:
                connection.execute("UPDATE segments SET changed = now() - interval '2 hours' WHERE state = 'retired'")
            assert kill_at("delete") == -signal.SIGKILL
            assert kill_at("fold") == -signal.SIGKILL
        assert kill_at("nothing") == 0
    assert maintenance.plan(store).steps == ()
    found = list(store.list_attempt(order="asc", limit=1000))
    assert [record for record in found if record.id[0] == "m"] == kept
    assert len(found) - len(kept) == inserts.count and reads.count
    assert archive.verify(store) == archive.reconcile(store) == []
    states = {p.name: p.state for p in partitions.inventory(store.database) if p.parent == "attempts"}
    assert {name for name, state in states.items() if state != "open"} == set()
    ended = {entry.what for entry in maintenance.log(store, limit=500) if entry.result == "started"}
    assert len(ended) == 12, "each killed step is in the log without an end"


@pytest.mark.parametrize("point", ["restore.attached", "undo"])
def test_an_undo_that_was_killed_is_made_good_by_running_again(store: LogStore, point: str) -> None:
    given = fill(store, 4, 1, 0)
    make_cold(store, month(4), depth="detached")
    with killer(store) as kill_at:
        assert kill_at(point, month(4)) == -signal.SIGKILL
        assert list(store.list_attempt(order="asc")) == given
        if point == "restore.attached":
            assert kill_at("nothing", month(4)) == 0
    assert store.insert_many(attempts=[attempt("late", time=inside(4))]).attempts_inserted == 1
    assert [record for record in store.list_attempt(order="asc") if record.id != "late"] == given


# Undo and purge


def scans(store: LogStore, name: str) -> tuple[int, ...]:
    """How often and how much of a table was read so far, once PostgreSQL has counted it all."""
    known: list[tuple[int, ...]] = []
    store.database.forget_connections()  # an idle connection tells what it read only when it ends
    for _ in range(50):
        with store.database.connection() as connection:
            row = connection.execute(
                "SELECT t.seq_scan, t.seq_tup_read, i.heap_blks_read + i.heap_blks_hit FROM pg_stat_user_tables t"
                " JOIN pg_statio_user_tables i USING (relid) WHERE t.relname = %s",
                [name],
            ).fetchone()
        known.append(tuple(row or ()))
        if known[-3:] == [known[-1]] * 3:
            break
        time.sleep(0.1)
    return known[-1]


def test_undo_takes_a_large_month_back_without_reading_it(any_store: LogStore) -> None:
    store = any_store
    fill(store, 4, 1, 0)
    with store.database.connection(autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {month(4)} SET (autovacuum_enabled = false)")  # it reads the table as well
        connection.execute(
            "INSERT INTO attempts SELECT 'b' || n, 'e', 't', 'd', 'x', 'success', %s + n * interval '1 ms', 1, false, NULL,"
            " NULL, now(), true, '{}', '{}' FROM generate_series(1, 20000) n",
            [inside(4)],
        )
        connection.execute(f"VACUUM (ANALYZE) {month(4)}")
    run(store)
    before = scans(store, month(4))
    maintenance.undo(store, month(4), actor="ann")
    assert scans(store, month(4)) == before
    assert set(store.list_attempt(limit=1000, order="asc").tiers) == {"hot"}
    assert store.insert_many(attempts=[attempt("late", time=inside(4))]).attempts_inserted == 1
    with store.database.connection() as connection:  # the same without the CHECK, to see that a scan would be seen
        connection.execute(f"ALTER TABLE attempts DETACH PARTITION {month(4)}")
        for (name,) in connection.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = to_regclass(%s)", [month(4)]
        ).fetchall():
            connection.execute(f"ALTER TABLE {month(4)} DROP CONSTRAINT {name}")
        connection.execute(ddl.attach("attempts", month(4), *partitions.month_bounds(inside(4).date().replace(day=1))))
    assert scans(store, month(4))[1] >= before[1] + 20_000


def test_undo_is_possible_at_every_step_after_the_flip_and_only_there(store: LogStore) -> None:
    given = fill(store, 4, 1, 0)
    with pytest.raises(MaintenanceError, match="is open: there is nothing to undo"):
        maintenance.undo(store, month(4), actor="test")
    with pytest.raises(MaintenanceError, match="no partition"):
        maintenance.undo(store, month(9), actor="test")
    for how in ("cold", "pending", "detached"):
        make_cold(store, month(4), depth="cold" if how == "pending" else how)
        if how == "pending":
            interrupt_detach(store, month(4))
        maintenance.undo(store, month(4), actor="test")
        assert list(store.list_attempt(order="asc")) == given
        store.insert_many(attempts=given[:1])
    make_cold(store, month(4), depth="purged")
    with pytest.raises(MaintenanceError, match=f"restore {month(4)}"):
        maintenance.undo(store, month(4), actor="test")
    assert list(store.list_attempt(order="asc")) == given


def test_a_month_that_is_over_can_leave_before_its_policy_says_so(store: LogStore) -> None:
    given = fill(store, 2, 1, 0)
    seen: list[list[str] | None] = []

    def watch(entry: maintenance.Entry) -> None:
        found = maintenance.working(store)
        seen.append(None if found is None else [step.what for step in found][::-1])

    maintenance.archive_now(store, month(1), actor="test", progress=watch)
    steps = [f"{action} {month(1)}" for action in WAY_OUT]
    assert seen[:-1:2] == [steps[: n + 1] for n in range(len(steps))], "who looks in sees the steps so far"
    assert maintenance.working(store) is None
    assert store.list_attempt(order="asc").tiers == ("hot",) * 6 + ("cold",) * 6 + ("hot",) * 6
    assert list(store.list_attempt(order="asc")) == given
    for name, why in ((month(0), "is not over"), (month(1), "serves it already")):
        with pytest.raises(MaintenanceError, match=why):
            maintenance.archive_now(store, name, actor="test")


def test_a_table_is_purged_after_its_window_or_when_told_to(store: LogStore) -> None:
    given = fill(store, 5, 4, 1, 0)
    with pytest.raises(MaintenanceError, match="only a detached month"):
        maintenance.purge(store, month(5), actor="test", override=True)
    make_cold(store, month(5), depth="detached")
    make_cold(store, month(4), depth="detached")
    with pytest.raises(MaintenanceError, match="window of 7 days is not over"):
        maintenance.purge(store, month(5), actor="test")
    maintenance.purge(store, month(5), actor="test", override=True)
    maintenance.purge(store, month(4), actor="test", now=datetime.now(UTC) + WEEKS)
    assert list(store.list_attempt(order="asc")) == given
    assert {p.name for p in partitions.inventory(store.database)}.isdisjoint({month(5), month(4)})


def test_a_table_is_never_purged_when_its_segments_are_bad(store: LogStore) -> None:
    given = fill(store, 4, 1, 0)
    make_cold(store, month(4), depth="detached")
    later = datetime.now(UTC) + WEEKS
    (path,) = store.settings.archive.rglob("*.parquet")
    path.write_bytes(b"rubbish")
    with pytest.raises(MaintenanceError, match="not safe in the archive"):  # nobody had noticed until the purge looks
        run(store, now=later)
    assert "purge" not in actions(maintenance.plan(store, now=later))
    with pytest.raises(MaintenanceError, match="only good copy"):
        maintenance.purge(store, month(4), actor="test", override=True)
    maintenance.undo(store, month(4), actor="test")
    assert list(store.list_attempt(order="asc")) == given


# The archive's own retention


def test_the_archive_lets_go_its_oldest_months_and_deletes_their_files_after_a_grace(store: LogStore) -> None:
    given = fill(store, 6, 5, 4, 1, 0)
    for number in (6, 5, 4):
        make_cold(store, month(number))
    maintenance.set_policy(store, Policy(parent="attempts", tier="cold", max_count=2, min_count=1))
    plan = maintenance.plan(store)
    assert [(s.partition, s.rows) for s in plan if s.action == "remove"] == [(month(6), 6)]
    assert actions(plan) == ["remove"]
    maintenance.apply(store, plan, actor="test")
    assert list(store.list_attempt(order="asc")) == given[6:]
    end = partitions.month_bounds(inside(0).date().replace(day=1))[1]
    counted = store.attempt_metrics(datetime(2000, 1, 1, tzinfo=UTC), end)
    assert (counted.source, [row["count"] for row in counted]) == ("roll-up", [len(given) - 6]), "nor counted"
    assert len(list(store.settings.archive.rglob("*.parquet"))) == 3, "somebody may still be reading it"
    assert maintenance.plan(store).steps == ()
    with store.database.connection() as connection:
        connection.execute("UPDATE segments SET changed = now() - interval '61 minutes' WHERE state = 'retired'")
    assert actions(maintenance.plan(store)) == ["delete"]
    run(store)
    assert len(list(store.settings.archive.rglob("*.parquet"))) == 2
    assert archive.reconcile(store) == []
    with pytest.raises(PartitionError, match="is purged"):
        store.insert_many(attempts=[attempt("late", time=inside(6))])


def test_a_purged_month_with_a_bad_segment_leaves_the_archive_in_its_turn(store: LogStore) -> None:
    given = fill(store, 6, 5, 4, 1, 0)
    for number in (6, 5, 4):
        make_cold(store, month(number))
    bad = next(store.settings.archive.rglob(f"attempts/{inside(6):%Y-%m}/*.parquet"))
    bad.write_bytes(b"rubbish")
    assert len(archive.verify(store)) == 1
    maintenance.set_policy(store, Policy(parent="attempts", tier="cold", max_count=1, min_count=1))
    plan = maintenance.plan(store)
    removed = [step for step in plan if step.action == "remove"]
    assert [step.partition for step in removed] == [month(6), month(5)]
    assert ["1 quarantined segment goes with it" in step.reason for step in removed] == [True, False]
    maintenance.apply(store, plan, actor="test")
    page = store.list_attempt(order="asc")
    assert list(page) == given[12:] and page.warnings == ()


def test_a_table_is_not_purged_when_the_catalog_lists_fewer_rows(store: LogStore) -> None:
    given = fill(store, 4, 1, 0)
    make_cold(store, month(4), depth="detached", segment_rows=2)
    with store.database.connection() as connection:
        connection.execute("DELETE FROM segments WHERE base_offset = 2")
    with pytest.raises(MaintenanceError, match="has 6 rows, its sealed segments have 4"):
        maintenance.purge(store, month(4), actor="test", override=True)
    maintenance.undo(store, month(4), actor="test")
    assert list(store.list_attempt(order="asc")) == given
