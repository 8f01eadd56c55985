"""Files that nobody should write: each costs its own bad rows and nothing else. The tasks run here, without Spark."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow
import pyarrow.parquet
import pytest

import logstore
from logstore import LoadError, PartitionError, fields, loads, partitions, pipeline
from logstore.pipeline import Limits, merge, prepare, read, tasks
from logstore.pipeline.chunks import chunks
from logstore.pipeline.write import Stage

from .crash import stage_here
from .files import attempt, contents, event, left_behind, write
from .test_exactly_once import begun
from .test_load import _records, count

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "stage", stage_here)


def load(store: logstore.LogStore, path: Path, **options: Any) -> loads.Load:
    done = pipeline.load(store, [path], spark=object(), **options).load  # type: ignore[arg-type]
    assert done is not None
    assert left_behind(store) == []
    return done


def parquet(path: Path, rows: list[dict[str, Any]], **columns: pyarrow.Array) -> Path:
    table = pyarrow.Table.from_pylist(
        [{**row, "data": json.dumps(row["data"]), "metadata": json.dumps(row["metadata"])} for row in rows]
    )
    for name, column in columns.items():
        table = table.set_column(table.schema.names.index(name), name, column)
    pyarrow.parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.binary(), pyarrow.large_binary(), pyarrow.large_string()])
@pytest.mark.parametrize("name", ["tenant_id", "data"])
def test_a_parquet_row_that_is_not_utf8_is_a_letter_and_the_others_load(
    store: logstore.LogStore, tmp_path: Path, kind: pyarrow.DataType, name: str
) -> None:
    bytes_of = {"tenant_id": [b"acme", b"a\xffb", b"bravo"], "data": [b"{}", b'{"a": "\xff"}', b"[1]"]}[name]
    large = kind in (pyarrow.large_binary(), pyarrow.large_string())
    column = pyarrow.array(bytes_of, pyarrow.large_binary() if large else pyarrow.binary()).view(kind)
    done = load(store, parquet(tmp_path / "a.parquet", [event(n) for n in range(3)], **{name: column}))
    assert (done.rows_read, done.inserted, done.dead) == (3, 2, 1)
    (letter,) = loads.dead_letters(store)
    assert (letter.position, letter.line, letter.reason, letter.truncated) == (1, None, "malformed", True)
    assert event(1)["id"] in letter.raw and "\\xff" in letter.raw


def test_a_parquet_row_larger_than_the_limit_is_a_letter(store: logstore.LogStore, tmp_path: Path) -> None:
    rows = [event(0), event(1, data={"large": "x" * 3000}), event(2)]
    done = load(store, parquet(tmp_path / "a.parquet", rows), limits=Limits(row_bytes=2000, raw_bytes=50))
    assert (done.inserted, done.dead) == (2, 1)
    (letter,) = loads.dead_letters(store)
    assert (letter.position, letter.reason, len(letter.raw), letter.truncated) == (1, "oversize", 50, True)


def test_json_of_parquet_keeps_its_text_and_a_malformed_one_costs_its_own_row(
    store: logstore.LogStore, tmp_path: Path
) -> None:
    exact = '{"a": 123456789012345678.25, "b": 1.10, "c": 1e5}'
    column = pyarrow.ExtensionArray.from_storage(pyarrow.json_(), pyarrow.array([exact, '{"a": ', "[2]"]))
    done = load(store, parquet(tmp_path / "a.parquet", [event(n) for n in range(3)], data=column))
    assert (done.inserted, done.dead) == (2, 1)
    with store.database.connection() as connection:
        (kept,) = connection.execute("SELECT data::text FROM events WHERE id = %s", [event(0)["id"]]).fetchall()
    assert kept == ('{"a": 123456789012345678.25, "b": 1.10, "c": 100000}',), "as PostgreSQL writes numbers of any size"
    assert [(x.position, x.reason) for x in loads.dead_letters(store)] == [(1, "wrong_type")]


@pytest.mark.parametrize("name", ["r", "R", "row", "rows", "ID", ""])
def test_a_column_of_parquet_may_have_any_name(store: logstore.LogStore, tmp_path: Path, name: str) -> None:
    rows = [{name: 5, **event(n), "r ": "x"} for n in range(3)]
    assert load(store, parquet(tmp_path / "a.parquet", rows)).inserted == 3


FAR = pyarrow.array([10**18] * 2, pyarrow.timestamp("us", tz="UTC"))
ODD_COLUMNS = {
    "a moment beyond all years": FAR,
    "a moment beyond all years, inside": pyarrow.StructArray.from_arrays([FAR], names=["time"]),
    "an unknown zone": FAR.cast(pyarrow.timestamp("us", tz="No/Where")),
    "an unknown zone, inside": pyarrow.StructArray.from_arrays(
        [pyarrow.array([0, 0], pyarrow.timestamp("us", tz="No/Where"))], names=["time"]
    ),
    "a day beyond all years": pyarrow.array([10**8] * 2, pyarrow.int32()).view(pyarrow.date32()),
    "a text that is none, inside": pyarrow.StructArray.from_arrays(
        [pyarrow.array([b"\xff", b"a"]).view(pyarrow.string())], names=["text"]
    ),
}


@pytest.mark.parametrize("what", ODD_COLUMNS)
def test_a_row_of_parquet_that_nobody_can_write_is_one_letter(
    store: logstore.LogStore, tmp_path: Path, what: str
) -> None:
    tenants = pyarrow.array([b"\xff", b"acme"]).view(pyarrow.string())
    rows = [{**event(n), "odd": None} for n in range(2)]
    path = parquet(tmp_path / "a.parquet", rows, tenant_id=tenants, odd=ODD_COLUMNS[what])
    done = load(store, path)
    assert (done.inserted, done.dead) == (1, 1)
    (letter,) = loads.dead_letters(store)
    assert (letter.position, letter.reason) == (0, "malformed")
    assert event(0)["id"] in letter.raw and "\\xff" in letter.raw


def repeated(path: Path, rows: int, size: int, **changed: Any) -> Path:
    """Many rows of one long payload, which the file holds once."""
    row = {**event(1), "data": json.dumps({"text": "x" * size}), "metadata": "{}", **changed}
    index = pyarrow.array([0] * rows, pyarrow.int32())
    columns = {name: pyarrow.DictionaryArray.from_arrays(index, [value]) for name, value in row.items()}
    columns["id"] = pyarrow.array([f"evt_{n:06d}" for n in range(rows)])
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    return path


@pytest.mark.parametrize("kept", [True, False], ids=["read as dictionaries", "read as texts"])
def test_parquet_is_read_in_small_pieces_however_long_its_rows_unpack(tmp_path: Path, kept: bool) -> None:
    path = repeated(tmp_path / "a.parquet", 1000, 20_000)
    if not kept:
        table = pyarrow.parquet.read_table(path)
        plain = pyarrow.table({name: table[name].cast(pyarrow.string()) for name in table.column_names})
        pyarrow.parquet.write_table(plain, path, compression="zstd")
    assert path.stat().st_size < 50_000
    (split,) = read.plan(read.sources([path]), Limits())
    limits, before = Limits(chunk_bytes=2**20), pyarrow.default_memory_pool().bytes_allocated()
    rows, held = 0, 0
    for chunk in chunks(split, limits):
        rows += len(chunk.table)
        held = max(held, pyarrow.default_memory_pool().bytes_allocated() - before)
    assert rows == 1000
    assert held < 8 * 2**20, "all rows together are 20 MB"


def test_a_dictionary_counts_for_what_its_rows_use_of_it(tmp_path: Path) -> None:
    """A column of categories with many values is no bomb."""
    path, texts = tmp_path / "a.parquet", [f"{n:0100d}" for n in range(5000)]
    pyarrow.parquet.write_table(pyarrow.table({"id": pyarrow.array(texts).dictionary_encode()}), path)
    (split,) = read.plan(read.sources([path]), Limits())
    limits = Limits(unpacked_bytes=2**20, unpacked_ratio=2)
    assert sum(len(chunk.table) for chunk in chunks(split, limits)) == 5000


def test_a_parquet_bomb_fails_the_load_and_leaves_nothing(store: logstore.LogStore, tmp_path: Path) -> None:
    path = repeated(tmp_path / "a.parquet", 500, 20_000)
    with pytest.raises(LoadError, match=r"parquet bomb\. If it is not, write it as several files"):
        load(store, path, limits=Limits(unpacked_bytes=2**20, unpacked_ratio=10))
    assert count(store, "events") == 0
    assert left_behind(store) == []


def test_a_large_parquet_batch_is_read_in_pieces(store: logstore.LogStore, tmp_path: Path) -> None:
    rows = [event(n, data={"text": "x" * 1000}) for n in range(100)]
    assert load(store, parquet(tmp_path / "a.parquet", rows), limits=Limits(chunk_bytes=5000)).inserted == 100


def test_a_part_of_a_parquet_file_that_lost_a_row_is_not_staged(store: logstore.LogStore, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [event(n) for n in range(10)])
    connection, job, (split,) = begun(store, path, Limits())
    stage = Stage(job)
    with pytest.raises(LoadError, match="11 rows in a part of which 10 were read and 0 refused"):
        stage.run(replace(split, rows=split.rows + 1))
    stage.close()
    assert merge.staged(connection, job.load)[0].rows == 0
    connection.close()


def test_a_line_that_is_too_large_and_not_utf8_costs_no_other_row(store: logstore.LogStore, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(event(1)).encode() + b"\n" + b"\xff" * 5000 + b"\n" + json.dumps(event(2)).encode())
    done = load(store, path, limits=Limits(row_bytes=2000))
    assert (done.inserted, done.dead) == (2, 1)


def test_a_letter_that_was_staged_twice_is_kept_once(
    store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = merge.staged

    def twice(connection: psycopg.Connection[Any], load: int) -> Any:
        found = staged(connection, load)
        connection.execute("INSERT INTO load_letters SELECT * FROM load_letters")
        return found

    monkeypatch.setattr(merge, "staged", twice)
    done = load(store, write(tmp_path / "a.jsonl", ["no", event(1)]))
    assert (done.inserted, done.dead, len(loads.dead_letters(store))) == (1, 1, 1)


def test_times_and_numbers_that_no_reader_could_show_never_reach_the_log(
    store: logstore.LogStore, tmp_path: Path
) -> None:
    huge = json.dumps(event(1, data={"n": ["@"] * 9000})).replace('"@"', "1e131071")
    odd = [attempt(n, event_time=time) for n, time in enumerate(("0000-05-05T00:00:00Z", "9999-12-31T23:59:59-01:00"))]
    done = load(store, write(tmp_path / "a.jsonl", [huge, *odd, event(2), attempt(2)]))
    assert (done.inserted, done.dead) == (2, 3)
    assert {x.reason for x in loads.dead_letters(store)} == {"refused", "bad_time"}
    assert (len(store.list_event()), len(store.list_attempt())) == (1, 1)


@pytest.mark.parametrize("token", ["NaN", "-Infinity", "nan", "inf"])
def test_many_rows_that_postgres_would_refuse_cost_few_round_trips(
    store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    sent: list[int] = []
    send = Stage._send

    def counting(stage: Stage, split: Any, group: Any) -> Any:
        sent.append(len(group.rows))
        return send(stage, split, group)

    monkeypatch.setattr(Stage, "_send", counting)
    bad = [json.dumps(event(n, time="2026-02-01T00:00:00Z", data={"n": "@"})).replace('"@"', token) for n in range(500)]
    good = [event(1000 + n, time="2026-02-01T00:00:00Z") for n in range(500)]
    done = load(store, write(tmp_path / "a.jsonl", [row for pair in zip(bad, good, strict=True) for row in pair]))
    assert (done.inserted, done.dead) == (500, 500)
    assert {x.reason for x in loads.dead_letters(store)} == {"malformed"}
    assert len(sent) <= 2, sent


def test_the_limit_of_letters_is_looked_at_before_a_file_of_nothing_else_is_read(
    store: logstore.LogStore, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", ["{}"] * 5000)
    with pytest.raises(LoadError, match="has 300 bad rows and more to come"):
        load(store, path, limits=Limits(letters=250, chunk_lines=100))


ODD: list[dict[str, Any]] = [
    event(0, data=json.dumps("123"), metadata=json.dumps('{"a": 1}')),
    event(1, data=json.dumps(None), metadata=[1, "2", None]),
    event(2, data="5", metadata={"text": '"quoted"', "n": 1.5}),
    attempt(3, response_data=json.dumps("true"), event_data=json.dumps("[]"), event_metadata={}),
    attempt(4, response_data=None, code=None, event_time="0001-01-01T00:00:00Z"),
]


def test_letters_of_a_month_that_closed_under_the_load_give_the_same_rows_when_they_are_requeued(
    store: logstore.LogStore, open_store: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ..conftest import new_database

    path = write(tmp_path / "a.jsonl", ODD)
    expected = open_store(new_database(server))
    assert load(expected, path).inserted == len(ODD)
    names = ("events_2026_01", "attempts_2026_01")
    partitions.ensure(store.database, [(name.partition("_")[0], date(2026, 1, 1)) for name in names])
    prepared = prepare.prepare

    def close_first(*arguments: Any) -> None:
        for name in names:
            partitions.close(store.database, name)
        prepared(*arguments)

    monkeypatch.setattr(prepare, "prepare", close_first)
    assert load(store, path).dead == len(ODD)
    for name in names:
        partitions.reopen(store.database, name)
    for letter in loads.dead_letters(store):
        loads.requeue(store, letter.id)
    assert contents(store) == contents(expected)


def test_a_load_goes_on_when_its_fields_cannot_be_noted(
    store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise psycopg.errors.ProgramLimitExceeded("index row size 2800 exceeds btree version 4 maximum 2704")

    monkeypatch.setattr(fields, "note_table", fail)
    assert load(store, write(tmp_path / "a.jsonl", [event(1)])).inserted == 1
    assert "were not noted" in caplog.text


def test_nobody_waits_while_a_month_that_will_be_attached_is_counted(
    store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, counted = merge.take_counts, []

    def insert_first(*arguments: Any) -> None:
        if not counted:
            counted.append(True)
            writer = threading.Thread(
                target=store.insert_many, args=_records([event(5000, time="2026-01-31T12:00:00Z")])
            )
            writer.start()
            writer.join(4)  # before the lock would be given up
            assert not writer.is_alive()
            assert count(store, "events") == 1
        counting(*arguments)

    monkeypatch.setattr(merge, "take_counts", insert_first)
    done = load(store, write(tmp_path / "a.jsonl", [event(n) for n in range(10)]))
    assert (done.inserted, count(store, "events")) == (10, 11)
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    measured = store.event_metrics(start, end)
    assert (measured.source, [row["count"] for row in measured]) == ("roll-up", [11]), "and nothing is counted twice"


def test_a_sweep_leaves_a_load_alone_that_begins_meanwhile(
    store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", [event(1)])
    started: list[Any] = []
    fetch = loads.statements

    class Known(dict[str, str]):
        """The statements; a load begins and stages after the first of the two that must not disagree."""

        asked = 0

        def __getitem__(self, name: str) -> str:
            if name in ("staging_tables", "orphans", "running"):
                self.asked += 1
            if self.asked == 3 and not started:  # running, then the first and before the second look
                connection, job, (split,) = begun(store, path, Limits())
                stage = Stage(job)
                started.extend((connection, job.load))
                stage.run(split)
                stage.close()
            return super().__getitem__(name)

    known = Known(fetch("postgres", "loads"))
    monkeypatch.setattr(loads, "statements", lambda *_: known)
    loads.sweep(store.database)
    monkeypatch.setattr(loads, "statements", fetch)
    connection, number = started
    assert [table.rows for table in merge.staged(connection, number)] == [1]
    assert loads.get(store, number).alive
    connection.close()


def test_a_new_month_gets_all_indexes_of_fields_at_once(
    any_store: logstore.LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the same columns, and so the same name if PostgreSQL is left to choose it."""
    load(any_store, write(tmp_path / "a.jsonl", [event(1, time="2026-01-05T00:00:00Z")]))
    for name in ("a", "b"):
        fields.add_index(any_store.database, event(1)["topic"], "data", (name,), actor="test")
    make, gate = prepare._make_index, threading.Barrier(2, timeout=30)

    def at_once(*arguments: Any) -> None:
        if "->>" in arguments[-1]:
            gate.wait()
        make(*arguments)

    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(prepare, "_make_index", at_once)
    later = [event(n, time="2026-02-05T00:00:00Z", data={"a": "x", "b": "y"}) for n in range(10_000)]
    assert load(any_store, write(tmp_path / "b.jsonl", later)).inserted == 10_000
    partitions.ensure(any_store.database, [("events", date(2026, 3, 1))])
    loaded, made = (indexes(any_store, month) for month in ("events_2026_02", "events_2026_03"))
    assert loaded == made, "named like those of a month that was made by itself"
    assert sum("->>" in definition for definition in loaded) == 2


def indexes(store: logstore.LogStore, month: str) -> list[str]:
    with store.database.connection() as connection:
        rows = connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = %s ORDER BY 1", [month]).fetchall()
    return [definition.replace(month, "MONTH") for (definition,) in rows]


@pytest.mark.parametrize("error", [LoadError, KeyboardInterrupt])
def test_after_a_failure_no_other_step_begins(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    given_up, ran = threading.Event(), []

    class Pool(prepare.ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            if cancel_futures:
                super().shutdown(wait=False, cancel_futures=True)
                given_up.set()
            super().shutdown(wait)

    def fail() -> None:
        raise error

    def under_way() -> None:
        ran.append(1)
        given_up.wait(5)

    monkeypatch.setattr(prepare, "ThreadPoolExecutor", Pool)
    with pytest.raises(error):
        prepare._all([fail, *[under_way] * 8])
    assert len(ran) <= 4, "those that ran beside it"


def test_a_task_ends_with_the_first_part_that_cannot_be_loaded(store: logstore.LogStore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(b"no gzip")
    write(tmp_path / "b.jsonl", [event(n) for n in range(10)])
    connection, job, splits = begun(store, tmp_path, Limits())
    (said,) = tasks._task(job, splits)(range(2))
    assert said is not None and "a.jsonl.gz is damaged" in said
    assert merge.staged(connection, job.load) == []
    connection.close()


def test_a_table_in_the_way_of_a_new_month_is_said_before_its_rows_are_read(
    store: logstore.LogStore, tmp_path: Path
) -> None:
    with store.database.connection() as connection:
        connection.execute("CREATE TABLE events_2026_01 (LIKE events)")
    path = write(tmp_path / "a.jsonl", [event(1, time="2026-01-05T00:00:00Z")])
    connection, job, splits = begun(store, path, Limits())
    (said,) = tasks._task(job, splits)(range(1))
    assert said is not None and "events_2026_01 exists but is not part of events: attach it, rename it" in said
    connection.close()
    with pytest.raises(PartitionError, match="events_2026_01 exists but is not part of events"):
        load(store, path)
    assert left_behind(store) == []
    with store.database.connection() as connection:
        connection.execute("DROP TABLE events_2026_01")
    assert load(store, path).inserted == 1


def test_a_part_of_a_parquet_file_knows_its_rows(tmp_path: Path) -> None:
    path = parquet(tmp_path / "A.PARQUET", [event(n) for n in range(10)])
    (split,) = read.plan(read.sources([path]), Limits())
    assert (split.format, split.rows, split.first_row) == ("parquet", 10, 0)
