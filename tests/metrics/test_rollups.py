"""The roll-ups equal the records, whatever was written, undone, killed, folded, archived or restored."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore import LogStore, Selection, TimeFilter, archive, metrics, partitions, postgres
from logstore.embedded import EmbeddedServer
from logstore.inserts import Batch
from logstore.metrics import Question, result, rollups
from logstore.metrics.measures import MEASURES
from logstore.metrics.scan import scan
from tests.metrics import records
from tests.metrics.plain import measured, same
from tests.metrics.test_agreement import empty
from tests.pipeline import files
from tests.records_of import attempt, event, unique
from tests.test_archive import make_cold
from tests.test_fields import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
WHOLE = (datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC))
DERIVED = tuple(name for name in MEASURES["attempt"] if not name.startswith("latency"))
HOURLY = {"measures": DERIVED, "dimensions": ("tenant_id", "status"), "granularity": "6h"}
DAILY = {"measures": DERIVED, "dimensions": rollups.DAILY.keys, "granularity": "1w"}
BY_DESTINATION = {"measures": DERIVED, "dimensions": ("tenant_id", "destination_id", "status", "code")}
BY_TOPIC = {"measures": DERIVED, "dimensions": ("topic", "status", "code"), "granularity": "1d"}
BY_HOUR = {"measures": DERIVED, "dimensions": ("status",), "granularity": "1h"}
MONTHLY = {"measures": ("count",), "granularity": "1M"}
TABLES = (*(r.name for kind in rollups.ROLLUPS.values() for r in kind), "attempts_deltas", "events_deltas")
EVENTS = (
    {"measures": ("count", "rate"), "dimensions": ("tenant_id",), "granularity": "6h"},
    {"dimensions": ("tenant_id", "topic"), "granularity": "1w", "measures": ("count",)},
    {"dimensions": ("topic",), "granularity": "1d", "measures": ("count",)},
    {"granularity": "12h", "measures": ("count",)},
)


def check(store: LogStore, expected: list[Any] | None = None) -> None:
    """All roll-ups give what the scan gives, and what plain Python gives for these records."""
    for asked in (HOURLY, DAILY, BY_DESTINATION, BY_TOPIC, BY_HOUR, MONTHLY):
        rolled = store.attempt_metrics(*WHOLE, **asked)
        assert (rolled.source, rolled.tiers) == ("roll-up", ())
        scanned = scan(store.tiers, Question.of("attempt", *WHOLE, **asked)).finish(source="scan", seconds=0)
        same(list(rolled), list(scanned))
        if expected is not None:
            same(list(rolled), measured(expected, *WHOLE, **asked))  # type: ignore[arg-type]


def check_events(store: LogStore, expected: list[Any]) -> None:
    for asked in EVENTS:
        rolled = store.event_metrics(*WHOLE, **asked)
        assert (rolled.source, rolled.tiers) == ("roll-up", ())
        same(list(rolled), measured(expected, *WHOLE, **asked))


def contents(store: LogStore) -> dict[str, list[Any]]:
    """What the roll-ups hold after folding, without what adds up to nothing."""
    metrics.fold(store)
    with store.database.connection() as connection:
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name} WHERE records <> 0").fetchall(), key=repr)
            for name in TABLES
        }


@settings(max_examples=10)
@given(st.data())
def test_they_equal_the_scan_after_anything(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    empty(store, "attempts")
    there: dict[Any, Any] = {}
    pool = unique(data.draw(st.lists(records.attempts, min_size=3, max_size=12)))
    for _ in range(data.draw(st.integers(2, 7))):
        step = data.draw(st.sampled_from(["insert", "insert", "update", "delete", "killed", "fold", "archive", "undo"]))
        names = [p.name for p in partitions.inventory(store.database) if p.parent == "attempts"]
        cold = [n for n, s in _states(store).items() if s != "open"]
        if step in ("insert", "update"):
            batch = [
                _turned(r) if step == "update" else r for r in data.draw(st.lists(st.sampled_from(pool), max_size=6))
            ]
            batch = [r for r in batch if _month(r) not in cold]
            store.insert_many(attempts=batch)
            for record in batch:
                was = there.get((record.time, record.id), record)
                there[record.time, record.id] = _updated(was, record)
        elif step == "delete":
            status = data.draw(st.sampled_from(["success", "failed"]))
            _delete(store, status, cold)
            there = {k: r for k, r in there.items() if r.status != status or _month(r) in cold}
        elif step == "killed":
            _write_and_die(store, [r for r in pool if _month(r) not in cold and _month(r) in names])
        elif step == "fold":
            metrics.fold(store)
        elif step == "archive" and set(names) - set(cold):
            name = data.draw(st.sampled_from(sorted(set(names) - set(cold))))
            make_cold(store, name, depth=data.draw(st.sampled_from(["closed", "cold", "detached", "purged"])))
        elif step == "undo" and cold:
            archive.restore(store, data.draw(st.sampled_from(cold)))
    check(store, unique(list(there.values())))
    before = contents(store)
    assert metrics.rebuild(store) == []
    assert contents(store) == before
    check(store, unique(list(there.values())))


@settings(max_examples=5)
@given(st.data())
def test_those_of_events_equal_plain_python_after_anything(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    empty(store, "attempts")
    empty(store, "events")
    there: dict[Any, Any] = {}
    pool = unique(data.draw(st.lists(records.events, min_size=3, max_size=12)))
    for step in data.draw(
        st.lists(st.sampled_from(["insert", "move", "delete", "fold", "archive", "undo"]), max_size=6)
    ):
        names = [p.name for p in partitions.inventory(store.database) if p.parent == "events"]
        states = {f"events_{month:%Y_%m}": s for (p, month), s in store.tiers.refresh().states.items() if p == "events"}
        cold = [name for name, state in states.items() if state != "open"]
        free = {key: r for key, r in there.items() if f"events_{r.time:%Y_%m}" not in cold}
        if step == "insert":
            batch = [r for r in data.draw(st.lists(st.sampled_from(pool))) if f"events_{r.time:%Y_%m}" not in cold]
            store.insert_many(batch)
            there = {(r.time, r.id): r for r in batch} | there
        elif step in ("move", "delete") and free:
            key = data.draw(st.sampled_from(sorted(free)))
            with store.database.connection() as connection:
                change = "UPDATE events SET topic = 'moved'" if step == "move" else "DELETE FROM events"
                connection.execute(f"{change} WHERE time = %s AND id = %s", key)
            record = there.pop(key)
            there |= {key: replace(record, topic="moved")} if step == "move" else {}
        elif step == "fold":
            metrics.fold(store)
        elif step == "archive" and set(names) - set(cold):
            make_cold(store, data.draw(st.sampled_from(sorted(set(names) - set(cold)))), depth="purged")
        elif step == "undo" and cold:
            archive.restore(store, data.draw(st.sampled_from(cold)))
    check_events(store, list(there.values()))
    before = contents(store)
    assert metrics.rebuild(store) == []
    assert contents(store) == before


def _states(store: LogStore) -> dict[str, str]:
    states = store.tiers.refresh().states
    return {partitions.partition_name(p, month): state for (p, month), state in states.items() if p == "attempts"}


def _month(record: Any) -> str:
    return partitions.partition_name("attempts", partitions.month_of(record.time))


def _turned(record: Any) -> Any:
    return replace(record, status="failed" if record.status == "success" else "success", code="turned")


def _updated(was: Any, now: Any) -> Any:
    return replace(was, status=now.status, code=now.code, response_data=now.response_data)


def _delete(store: LogStore, status: str, cold: list[str]) -> None:
    """As a person would, by SQL; the months that are not open refuse or are elsewhere."""
    spared = [partitions.month_bounds(partitions.parse_name(name)[1]) for name in cold]
    outside = " AND ".join(f"NOT (time >= '{lower}' AND time < '{upper}')" for lower, upper in spared) or "true"
    with store.database.connection() as connection:
        connection.execute(f"DELETE FROM attempts WHERE status = %s AND {outside}", [status])


def _write_and_die(store: LogStore, batch: list[Any]) -> None:
    """A writer whose process ends before its commit."""
    connection = store.database.connect()
    Batch.of([], [_turned(record) for record in batch]).write(connection)
    with store.database.connection(autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
    connection.close()


def test_a_statement_that_moves_a_row_to_another_month_moves_its_count(any_store: LogStore) -> None:
    any_store.insert_many(attempts=[attempt("a", time=MARCH), attempt("b", time=APRIL)])
    with any_store.database.connection() as connection:
        connection.execute("UPDATE attempts SET time = time + interval '31 days', tenant_id = 'moved' WHERE id = 'a'")
    check(any_store, [attempt("a", time=APRIL, tenant_id="moved"), attempt("b", time=APRIL)])


def test_an_update_that_changes_nothing_leaves_no_difference(store: LogStore) -> None:
    given_records = [attempt(f"a{n}", time=MARCH + timedelta(hours=n)) for n in range(50)]
    store.insert_many(attempts=given_records)
    assert metrics.fold(store) == 50 + 3
    store.insert_many(attempts=given_records)
    assert metrics.fold(store) == 0
    check(store, given_records)


def test_writers_and_folders_at_once_lose_and_double_nothing(store: LogStore) -> None:
    failures: list[BaseException] = []
    stop = threading.Event()

    def write(writer: int) -> None:
        for n in range(12):
            batch = [attempt(f"w{writer}-{n}-{i}", time=MARCH + timedelta(minutes=7 * i)) for i in range(20)]
            store.insert_many(attempts=batch)
            store.insert_many(attempts=[_turned(record) for record in batch[:9]])

    def fold() -> None:
        while not stop.is_set():
            metrics.fold(store)

    def read() -> None:
        while not stop.is_set():
            count = store.attempt_metrics(*WHOLE).rows
            assert not count or count[0][0] % 20 == 0, "a batch is seen whole or not at all"

    def guarded(work: Any, *given_: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*given_)
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run)

    store.insert_many(attempts=[attempt(f"first{n}") for n in range(20)])
    writers = [guarded(write, n) for n in range(3)]
    others = [guarded(fold), guarded(fold), guarded(read)]
    for thread in (*writers, *others):
        thread.start()
    for thread in writers:
        thread.join(timeout=60)
    stop.set()
    for thread in others:
        thread.join(timeout=60)
    assert not failures
    assert store.attempt_metrics(*WHOLE, measures=("count", "failed_count")).rows == ((740, 324),)
    check(store)


@pytest.mark.parametrize(
    ("change", "source"),
    [
        ({}, "roll-up"),
        ({"granularity": "60m"}, "roll-up"),
        ({"granularity": "30m"}, "scan"),
        ({"granularity": "5h", "start": MARCH + timedelta(hours=3)}, "roll-up"),
        ({"start": MARCH + timedelta(minutes=3)}, "roll-up and scan"),
        ({"end": APRIL - timedelta(microseconds=1)}, "roll-up and scan"),
        (
            {"start": MARCH + timedelta(hours=30, minutes=1), "end": MARCH + timedelta(hours=31), "granularity": "1h"},
            "scan",
        ),
        ({"dimensions": ("tenant_id", "status")}, "roll-up"),
        ({"dimensions": ("code",)}, "roll-up"),
        ({"dimensions": ("code",), "start": MARCH + timedelta(hours=3)}, "roll-up and scan"),
        ({"dimensions": ("code",), "start": MARCH + timedelta(hours=3), "end": MARCH + timedelta(hours=47)}, "scan"),
        ({"dimensions": ("code",), "granularity": "12h"}, "scan"),
        ({"dimensions": ("manual",)}, "scan"),
        ({"measures": ("latency_p50",)}, "scan"),
        ({"selection": Selection(tenant_ids=("acme",), status="failed")}, "roll-up"),
        ({"selection": Selection(destination_ids=("des_1",), topics=("order.created",))}, "roll-up"),
        ({"selection": Selection(event_ids=("e1",))}, "scan"),
        ({"selection": Selection(where='code = "500"')}, "scan"),
        ({"selection": Selection(time=TimeFilter(gte=MARCH))}, "scan"),
    ],
)
def test_a_question_uses_them_when_they_know_enough(store: LogStore, change: dict[str, Any], source: str) -> None:
    given_records = [
        attempt(
            f"a{n}",
            time=MARCH + timedelta(hours=n),
            code="500" if n % 3 else None,
            status="failed" if n % 3 else "success",
        )
        for n in range(40)
    ]
    store.insert_many(attempts=given_records)
    asked = {"start": MARCH, "end": APRIL, "granularity": "1d", "measures": ("count", "error_rate"), **change}
    start, end = asked.pop("start"), asked.pop("end")
    found = store.attempt_metrics(start, end, **asked)
    assert found.source == source
    selection = asked.pop("selection", Selection())
    if selection in (Selection(), Selection(where='code = "500"')):
        chosen = [r for r in given_records if selection.where is None or r.code == "500"]
        same(list(found), measured(chosen, start, end, **{"dimensions": (), **asked}))


@pytest.mark.parametrize(
    ("asked", "days", "names"),
    [
        ({}, 7, [None, "attempts_by_hour", None]),
        ({}, 60, [None, "attempts_by_hour", None]),
        ({"dimensions": ("tenant_id",)}, 7, [None, "attempts_hourly", None]),
        ({"dimensions": ("topic",)}, 60, [None, "attempts_by_topic", None]),
        (
            {"dimensions": ("tenant_id",)},
            60,
            [None, "attempts_hourly", "attempts_by_destination", "attempts_hourly", None],
        ),
        ({"dimensions": ("destination_id", "code")}, 7, [None, "attempts_by_destination", None]),
        ({"dimensions": ("tenant_id", "topic")}, 60, [None, "attempts_daily", None]),
        ({"selection": Selection(tenant_ids=("acme",)), "dimensions": ("topic",)}, 60, [None, "attempts_daily", None]),
        ({"granularity": "6h", "dimensions": ("status",)}, 60, [None, "attempts_by_hour", None]),
    ],
)
def test_days_come_from_the_smallest_roll_up_and_the_ends_from_finer_ones(
    asked: dict[str, Any], days: int, names: list[str | None]
) -> None:
    start = MARCH + timedelta(hours=3, minutes=5)
    pieces = rollups.serves(Question.of("attempt", start, start + timedelta(days=days), **asked))
    assert pieces is not None
    assert [piece.rollup.name if piece.rollup else None for piece in pieces] == names
    assert [piece.upper for piece in pieces[:-1]] == [piece.lower for piece in pieces[1:]], (
        "no moment twice, none left out"
    )
    assert (pieces[0].lower, pieces[-1].upper) == (start, start + timedelta(days=days))


def test_a_month_that_came_as_files_is_a_gap_until_somebody_rebuilds(store: LogStore) -> None:
    given_records = [attempt(f"a{n}", time=MARCH + timedelta(hours=n)) for n in range(30)]
    store.insert_many(attempts=[*given_records, attempt("april", time=APRIL)])
    make_cold(store, "attempts_2026_03")
    with store.database.connection() as connection:
        connection.execute("DELETE FROM segments")
        connection.execute("DELETE FROM months WHERE month = '2026-03-01'")
    archive.rebuild_catalog(store)
    assert store.attempt_metrics(*WHOLE).source == "scan"
    assert store.attempt_metrics(APRIL, WHOLE[1]).source == "roll-up"
    assert metrics.rebuild(store) == []
    assert store.attempt_metrics(*WHOLE).source == "roll-up"
    check(store, [*given_records, attempt("april", time=APRIL)])


def test_a_rebuild_over_a_broken_file_says_so_and_leaves_a_gap(store: LogStore) -> None:
    store.insert_many(attempts=[attempt("a"), attempt("b", time=APRIL)])
    make_cold(store, "attempts_2026_03")
    next(store.settings.archive.rglob("*.parquet")).unlink()
    assert store.attempt_metrics(*WHOLE).rows == ((2,),), "what was counted while it was written is still known"
    assert len(metrics.rebuild(store)) == 1
    found = store.attempt_metrics(*WHOLE)
    assert (found.source, found.rows, len(found.warnings)) == ("scan", ((1,),), 1)


def test_a_rebuild_waits_for_a_fold_so_that_nothing_is_counted_twice(store: LogStore) -> None:
    given_records = [attempt(f"a{n}", time=MARCH + timedelta(hours=n)) for n in range(30)]
    store.insert_many(attempts=given_records)
    with ThreadPoolExecutor(1) as pool, store.database.connection() as folding:
        assert rollups._fold(folding) > 0
        rebuilt = pool.submit(metrics.rebuild, store)
        wait_until(lambda: rebuilt.done() or _waiting(store))
        folding.commit()
        assert rebuilt.result(timeout=60) == []
    check(store, given_records)


def _waiting(store: LogStore) -> bool:
    with store.database.connection() as connection:
        asked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database"
        return connection.execute(f"{asked} WHERE datname = current_database())").fetchone() != (0,)


def test_groups_whose_records_are_gone_do_not_use_up_the_limit(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(attempts=[attempt(f"a{n}", destination_id=f"d{n:02}") for n in range(20)])
    with store.database.connection() as connection:
        connection.execute("DELETE FROM attempts WHERE destination_id >= 'd03'")
    metrics.fold(store)
    scanning = sys.modules[scan.__module__]  # its name in the package is the function's
    for module in (scanning, result):
        monkeypatch.setattr(module, "ROWS_MOST", 4)
    scanning._text.cache_clear()
    try:
        found = store.attempt_metrics(*WHOLE, dimensions=("destination_id",))
    finally:
        scanning._text.cache_clear()
    assert (found.source, found.rows) == ("roll-up", (("d00", 1), ("d01", 1), ("d02", 1)))


def test_a_month_that_is_given_up_can_be_forgotten(store: LogStore) -> None:
    store.insert_many([event("e"), event("f", time=APRIL)], [attempt("a"), attempt("b", time=APRIL)])
    with store.database.connection() as connection:
        metrics.forget(connection, "attempts", date(2026, 3, 1))
    assert (store.attempt_metrics(*WHOLE).rows, store.event_metrics(*WHOLE).rows) == (((1,),), ((2,),))
    with store.database.connection() as connection:
        metrics.forget(connection, "events", date(2026, 3, 1))
    assert store.event_metrics(*WHOLE).rows == ((1,),)


def test_events_that_came_as_files_are_a_gap_until_somebody_rebuilds(store: LogStore) -> None:
    given_events = [event("e"), event("f", time=APRIL)]
    store.insert_many(given_events)
    make_cold(store, "events_2026_03")
    with store.database.connection() as connection:
        connection.execute("DELETE FROM segments")
        connection.execute("DELETE FROM months WHERE month = '2026-03-01'")
    archive.rebuild_catalog(store)
    assert [store.event_metrics(*span).source for span in (WHOLE, (APRIL, WHOLE[1]))] == ["scan", "roll-up"]
    assert metrics.rebuild(store) == []
    check_events(store, given_events)


@pytest.mark.spark
def test_loads_count_months_that_they_attach_and_rows_that_they_merge(
    store: LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    from logstore import pipeline

    rows = [files.attempt(n, time=(MARCH + timedelta(hours=7 * n)).isoformat()) for n in range(200)]
    pipeline.load(store, [files.write(tmp_path / "new.jsonl", rows)], spark=spark)
    check(store)
    assert store.attempt_metrics(*WHOLE).rows == ((200,),)
    turned = [{**row, "status": "failed", "code": "418"} for row in rows[::3]]
    more = [files.attempt(n, time=(MARCH + timedelta(hours=n)).isoformat()) for n in range(300, 340)]
    pipeline.load(store, [files.write(tmp_path / "again.jsonl", [*turned, *more])], spark=spark)
    check(store)
    before = contents(store)
    metrics.rebuild(store)
    assert contents(store) == before
    assert store.attempt_metrics(*WHOLE, selection=Selection(status="failed")).rows[0][0] > 67


def test_a_month_that_is_retired_is_not_counted_any_more(store: LogStore) -> None:
    store.insert_many(attempts=[attempt("a"), attempt("b", time=APRIL)])
    make_cold(store, "attempts_2026_03")
    archive.retire(store, "attempts_2026_03", note="retention")
    check(store, [attempt("b", time=APRIL)])


def test_a_database_from_before_gets_its_roll_ups_with_the_migration(
    server: EmbeddedServer, open_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE before_rollups")
    files = postgres._migration_files()
    monkeypatch.setattr(
        postgres, "_migration_files", lambda: [f for f in files if f.name[:3] not in ("006", "009", "011", "012")]
    )
    store = open_store(server.dsn("before_rollups"))
    given_records = [attempt(f"a{n}", time=MARCH + timedelta(days=n)) for n in range(45)]
    store.insert_many([event("e"), event("f", time=APRIL)], given_records)
    make_cold(store, "attempts_2026_03", depth="detached")
    monkeypatch.undo()
    with psycopg.connect(server.dsn("before_rollups"), autocommit=True) as connection:
        assert postgres.migrate(connection) == ["006_rollups", "009_event_rollups", "011_days", "012_hours"]
    assert store.attempt_metrics(APRIL, WHOLE[1]).source == "roll-up"
    assert store.attempt_metrics(*WHOLE).source == "scan"
    check_events(store, [event("e"), event("f", time=APRIL)])
    metrics.rebuild(store)
    check(store, given_records)
