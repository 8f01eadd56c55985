"""Loads through Spark: the same table from every kind of file, bad rows kept, nothing twice."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import logstore
from logstore import LoadError, Selection, TimeFilter, loads, partitions, pipeline
from logstore.pipeline import Limits, prepare

from ..conftest import new_database
from ..test_lines import BAD
from .files import attempt, contents, event, left_behind, mixed, write

pytestmark = pytest.mark.spark
Open = Callable[..., logstore.LogStore]


def count(store: logstore.LogStore, table: str) -> int:
    with store.database.connection() as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    return int(row[0])


def load(store: logstore.LogStore, spark: SparkSession, *paths: Path, **options: Any) -> loads.Load:
    done = pipeline.load(store, paths, spark=spark, **options).load
    assert done is not None
    return done


def as_parquet(rows: list[dict[str, Any]], path: Path) -> Path:
    """Typed columns: moments with a zone, payloads once as JSON text and once as a struct."""
    table = pyarrow.Table.from_pylist(
        [
            {
                **row,
                "time": datetime.fromisoformat(row["time"]),
                **{k: json.dumps(row[k]) for k in ("data", "event_data") if k in row},
                **({"event_time": datetime.fromisoformat(row["event_time"])} if "event_time" in row else {}),
            }
            for row in rows
        ]
    )
    pyarrow.parquet.write_table(table, path, row_group_size=100)
    return path


def test_every_kind_of_file_gives_the_same_table(
    open_store: Open, server: Any, spark: SparkSession, tmp_path: Path
) -> None:
    rows = mixed(600)
    one = write(tmp_path / "one" / "all.jsonl", rows)
    for i in range(100):
        write(tmp_path / "hundred" / f"part-{i:03d}.json", rows[i::100])
    packed = tmp_path / "packed" / "all.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(one.read_bytes()))
    (tmp_path / "parquet").mkdir()
    as_parquet([row for row in rows if "event_id" not in row], tmp_path / "parquet" / "events.parquet")
    as_parquet([row for row in rows if "event_id" in row], tmp_path / "parquet" / "attempts.parquet")
    found = []
    for name, limits in (("one", Limits()), ("one", Limits(split_bytes=5000, chunk_bytes=900)), ("hundred", Limits()),
                         ("packed", Limits()), ("parquet", Limits(split_bytes=1))):  # fmt: skip
        store = open_store(new_database(server))
        done = load(store, spark, tmp_path / name, limits=limits)
        assert (done.state, done.rows_read, done.inserted, done.dead) == ("done", 600, 600, 0)
        assert left_behind(store) == []
        found.append(contents(store))
    expected = open_store(new_database(server))
    expected.insert_many(*_records(rows))
    assert found == [contents(expected)] * 5


def _records(rows: list[dict[str, Any]]) -> tuple[list[logstore.Event], list[logstore.Attempt]]:
    def record(kind: Any, row: dict[str, Any]) -> Any:
        times = {k: datetime.fromisoformat(row[k]) for k in ("time", "event_time") if k in row}
        return kind(**{**row, **times})

    events = [record(logstore.Event, row) for row in rows if "event_id" not in row]
    return events, [record(logstore.Attempt, row) for row in rows if "event_id" in row]


def test_one_of_each_kind_of_bad_row_among_a_thousand_good_ones(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    closed = date(2025, 1, 1)
    partitions.ensure(store.database, [("events", closed)])
    partitions.close(store.database, "events_2025_01")
    bad = [(line, reason) for what, line, reason in BAD if not what.startswith("too ")]
    bad += [(json.dumps(event(data={"n": 1})).replace('{"n": 1}', '{"n": 1e200000}'), "refused")]
    bad += [('{"id": "' + "x" * 300_000 + '"}', "oversize")]
    rows: list[Any] = mixed(1000)
    for i, (line, _) in enumerate(bad):
        rows.insert(i * 13, line)
    path = write(tmp_path / "a.jsonl", rows)
    done = load(store, spark, path, limits=Limits(row_bytes=250_000, split_bytes=50_000, chunk_bytes=20_000))
    assert (done.rows_read, done.inserted, done.dead) == (1000 + len(bad), 1000, len(bad))
    assert count(store, "events") + count(store, "attempts") == 1000
    letters = {x.line: x for x in loads.dead_letters(store, limit=1000)}
    assert {line: x.reason for line, x in letters.items()} == {i * 13 + 1: reason for i, (_, reason) in enumerate(bad)}
    content = path.read_bytes()
    for i, (line, reason) in enumerate(bad):
        letter = letters[i * 13 + 1]
        assert letter.file == str(path)
        assert letter.message
        assert content[letter.position :].startswith(line.encode()[:100])
        assert letter.raw == line if reason != "oversize" else letter.truncated


def test_a_letter_is_requeued_once_after_a_fix(store: logstore.LogStore, spark: SparkSession, tmp_path: Path) -> None:
    wrong = attempt(1, status="pending")
    load(store, spark, write(tmp_path / "a.jsonl", [attempt(2), wrong]))
    (letter,) = loads.dead_letters(store)
    assert (letter.reason, letter.line) == ("unknown_status", 2)
    loads.requeue(store, letter.id, json.dumps({**wrong, "status": "failed"}))
    found = store.retrieve_attempt(wrong["id"])
    assert found is not None
    assert found.status == "failed"
    with pytest.raises(LoadError, match="requeued already"):
        loads.requeue(store, letter.id, json.dumps({**wrong, "status": "success"}))


def test_a_file_that_was_loaded_is_recognised_by_its_content(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    first = write(tmp_path / "a.jsonl", mixed(50))
    number = load(store, spark, first).id
    before = contents(store)
    again = write(tmp_path / "other" / "name.jsonl", mixed(50))
    report = pipeline.load(store, [first, again], spark=spark)
    assert report.recognised
    assert report.known == {str(first): number, str(again): number}
    new = write(tmp_path / "new.jsonl", [event(999)])
    partly = pipeline.load(store, [tmp_path], spark=spark)
    assert partly.load is not None
    assert [source["path"] for source in partly.load.sources] == [str(new)]
    forced = load(store, spark, first, force=True)
    assert (forced.inserted, forced.updated, forced.skipped) == (0, 25, 25)
    new.unlink()
    with store.database.connection() as connection:
        connection.execute("DELETE FROM events WHERE id = %s", [event(999)["id"]])
    assert contents(store) == before


def test_the_greatest_path_and_position_win_among_rows_with_one_key(
    open_store: Open, server: Any, spark: SparkSession, tmp_path: Path
) -> None:
    def version(code: str, **fields: Any) -> dict[str, Any]:
        return attempt(1, code=code, **fields)

    write(tmp_path / "a.jsonl", [version("a1"), version("a2", status="failed"), attempt(2), event(1, topic="first")])
    write(tmp_path / "b.jsonl", [version("b1"), version("b2", event_metadata={"last": True}), event(1, topic="last")])
    for exists in (False, True):
        store = open_store(new_database(server))
        if exists:
            months = [(parent, date(2026, month, 1)) for parent in ("events", "attempts") for month in (1, 2)]
            partitions.ensure(store.database, months)
        done = load(store, spark, tmp_path)
        assert (done.rows_read, done.inserted, done.updated, done.skipped) == (7, 3, 0, 4)
        found = store.retrieve_attempt(attempt(1)["id"])
        assert found is not None
        assert (found.code, found.status, found.event_metadata) == ("b2", "success", {"last": True})
        assert [e.topic for e in store.list_event()] == ["last"]


def test_an_attempt_that_is_there_gets_its_new_outcome_and_nothing_else(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    store.insert_many(*_records([event(1), attempt(1), attempt(2)]))
    changed = attempt(1, status="failed", code="504", response_data=None, topic="other", event_data={"other": 1})
    done = load(store, spark, write(tmp_path / "a.jsonl", [event(1, data={"other": 1}), changed, attempt(3)]))
    assert (done.inserted, done.updated, done.skipped) == (1, 1, 1)
    found = store.retrieve_attempt(attempt(1)["id"])
    assert found is not None
    assert (found.status, found.code, found.response_data) == ("failed", "504", None)
    assert (found.topic, found.event_data) == (attempt(1)["topic"], attempt(1)["event_data"])
    same = store.retrieve_event(event(1)["id"])
    assert same is not None
    assert same.data == event(1)["data"]


def test_times_land_in_the_right_month(store: logstore.LogStore, spark: SparkSession, tmp_path: Path) -> None:
    times = {
        "2024-02-29T23:59:59.999999Z": date(2024, 2, 1),
        "2024-03-01T00:00:00Z": date(2024, 3, 1),
        "2024-03-01T00:30:00+01:00": date(2024, 2, 1),
        "2024-02-29T20:30:00-05:00": date(2024, 3, 1),
        "2025-12-31T23:59:59.9Z": date(2025, 12, 1),
        "2026-01-01T05:29:59.999999+05:30": date(2025, 12, 1),
    }
    rows = [event(i, time=time) for i, time in enumerate(times)]
    rows.append(event(9, time=int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)))
    rows.append(event(10, time="2026-01-01T00:00:00"))
    done = load(store, spark, write(tmp_path / "a.jsonl", rows))
    assert (done.inserted, done.dead) == (7, 1)
    with store.database.connection() as connection:
        found = dict(connection.execute("SELECT id, tableoid::regclass::text FROM events").fetchall())
        times_found = dict(connection.execute("SELECT id, time FROM events").fetchall())
    months = [*times.values(), date(2026, 1, 1)]
    assert [found[row["id"]] for row in rows[:7]] == [f"events_{month:%Y_%m}" for month in months]
    for row, time in zip(rows, times, strict=False):
        assert times_found[row["id"]] == datetime.fromisoformat(time)


def test_a_month_that_is_not_open_is_a_reason_and_opens_again(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    partitions.ensure(store.database, [("events", date(2026, 1, 1))])
    partitions.close(store.database, "events_2026_01")
    path = write(tmp_path / "a.jsonl", [event(0), event(200)])  # January and February
    done = load(store, spark, path)
    assert (done.inserted, done.dead) == (1, 1)
    (letter,) = loads.dead_letters(store, reason="month_not_open")
    assert "restore events_2026_01" in letter.message
    partitions.reopen(store.database, "events_2026_01")
    assert load(store, spark, path, force=True).inserted == 1
    assert loads.dead_letter(store, letter.id).state == "resolved"


def test_a_month_that_is_closed_while_the_load_runs_keeps_its_rows_as_letters(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions.ensure(store.database, [("events", date(2026, 1, 1))])
    prepared = prepare.prepare

    def close_first(*arguments: Any) -> None:
        partitions.close(store.database, "events_2026_01")
        prepared(*arguments)

    monkeypatch.setattr(prepare, "prepare", close_first)
    done = load(store, spark, write(tmp_path / "a.jsonl", [event(0), event(1), event(200)]))
    assert (done.inserted, done.dead, done.rows_read) == (1, 2, 3)
    letters = loads.dead_letters(store, reason="month_not_open")
    partitions.reopen(store.database, "events_2026_01")
    for letter in letters:
        loads.requeue(store, letter.id)
    expected = event(0)
    found = store.retrieve_event(expected["id"])
    assert found is not None
    assert (found.data, found.metadata) == (expected["data"], expected["metadata"])


def test_a_month_that_appears_while_the_load_fills_it_has_both_sets_of_rows(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = partitions.note_names

    def insert_first(*arguments: Any) -> None:
        store.insert_many(*_records([event(1, data={"mine": 1}), event(5000), attempt(1, code="418"), attempt(5000)]))
        names(*arguments)

    monkeypatch.setattr(partitions, "note_names", insert_first)
    done = load(store, spark, write(tmp_path / "a.jsonl", [event(1), event(2), attempt(1), attempt(2)]))
    assert (done.inserted, done.updated, done.skipped) == (2, 1, 1)
    assert (count(store, "events"), count(store, "attempts")) == (3, 3)
    kept, updated = store.retrieve_event(event(1)["id"]), store.retrieve_attempt(attempt(1)["id"])
    assert kept is not None
    assert updated is not None
    assert (kept.data, updated.code) == ({"mine": 1}, attempt(1)["code"])
    assert left_behind(store) == []


def test_inserts_go_on_while_a_load_fills_the_same_new_month(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", mixed(2000))
    done, inserted = threading.Event(), 0

    def insert() -> None:
        nonlocal inserted
        while not done.is_set():
            store.insert_many(*_records([event(10_000 + inserted, time="2026-02-01T00:00:00Z")]))
            inserted += 1

    writer = threading.Thread(target=insert)
    writer.start()
    try:
        load(store, spark, path)
    finally:
        done.set()
        writer.join()
    assert inserted > 0
    assert count(store, "events") == 1000 + inserted
    assert count(store, "attempts") == 1000


def test_a_loaded_month_is_like_any_other(store: logstore.LogStore, spark: SparkSession, tmp_path: Path) -> None:
    """Its indexes and statistics, pages, inserts of new and old rows."""
    load(store, spark, write(tmp_path / "a.jsonl", mixed(300)))
    partitions.ensure(store.database, [("attempts", date(2025, 6, 1))])
    with store.database.connection() as connection:
        shapes = {
            month: sorted(
                row[0].replace(month, "MONTH")
                for row in connection.execute(
                    "SELECT indexdef FROM pg_indexes WHERE tablename = %s", [month]
                ).fetchall()
            )
            for month in ("attempts_2026_02", "attempts_2025_06")
        }
        statistics = connection.execute(
            "SELECT count(*) FROM pg_statistic_ext WHERE stxrelid = 'attempts_2026_02'::regclass"
        ).fetchone()
    assert shapes["attempts_2026_02"] == shapes["attempts_2025_06"]
    assert statistics == (3,)
    report = store.insert_many(*_records([attempt(149, code="599"), attempt(9000, time="2026-02-01T00:00:00Z")]))
    assert (report.attempts_inserted, report.attempts_updated) == (1, 1)
    february = TimeFilter(gte=datetime(2026, 2, 1, tzinfo=UTC))
    page = store.list_attempt(Selection(tenant_ids=("tenant_3",), time=february), limit=1000)
    assert len(page) == sum(1 for n in range(150) if n % 7 == 3 and attempt(n)["time"] >= "2026-02-01")


def test_an_empty_file_is_a_load_of_nothing(store: logstore.LogStore, spark: SparkSession, tmp_path: Path) -> None:
    done = load(store, spark, write(tmp_path / "a.jsonl", []))
    assert (done.state, done.rows_read) == ("done", 0)


def test_too_many_bad_rows_fail_the_load(store: logstore.LogStore, spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["no"] * 50 + [event(1)])
    with pytest.raises(LoadError, match="too many to keep"):
        load(store, spark, path, limits=Limits(letters=20))
    (failed,) = loads.history(store)
    assert (failed.state, failed.inserted) == ("failed", 0)
    assert "too many to keep" in (failed.error or "")
    assert left_behind(store) == []
    assert count(store, "events") == 0


def test_a_gzip_bomb_fails_the_load_and_leaves_nothing(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(event(1)) + "\n").encode() * 20_000))
    with pytest.raises(LoadError, match="gzip bomb"):
        load(store, spark, path, limits=Limits(unpacked_bytes=2**20, unpacked_ratio=5, chunk_bytes=2**18))
    assert count(store, "events") == 0
    assert left_behind(store) == []


def test_a_reader_may_not_load(open_store: Open, dsn: str, tmp_path: Path) -> None:
    with pytest.raises(logstore.ServerError, match="LOGSTORE_ROLE"):
        pipeline.load(open_store(dsn, role="reader"), [tmp_path])


def test_the_figures_of_a_running_load_can_be_seen(
    store: logstore.LogStore, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[loads.Load] = []
    prepared = prepare.prepare

    def look(*arguments: Any) -> None:
        seen.extend(loads.history(store))
        prepared(*arguments)

    monkeypatch.setattr(prepare, "prepare", look)
    done = load(store, spark, write(tmp_path / "a.jsonl", mixed(100)))
    assert (seen[0].state, seen[0].stage, seen[0].rows_read, seen[0].bytes_read) == (
        "running",
        "indexing",
        100,
        done.bytes,
    )
    assert set(done.seconds) == {"reading", "indexing", "merging"}
    assert done.finished is not None
