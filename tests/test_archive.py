"""A month leaves PostgreSQL as verified segments and is read with the same cursor; nothing is lost, doubled or trusted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore import (
    ArchiveError,
    LogStore,
    PartitionError,
    Selection,
    TimeFilter,
    archive,
    filters,
    partitions,
    segments,
)
from logstore.archive import catalog
from logstore.faults import VARIABLE
from tests import records_of
from tests.records_of import START, attempt, event, unique
from tests.test_paging import attempt_selections, check_walks, matches, some_sizes, walk

MONTH = "attempts_2026_03"


def records(count: int = 30) -> list[Any]:
    return [
        attempt(
            f"a{n}",
            time=START + timedelta(hours=n, microseconds=n % 3),
            destination_id=f"d{n % 3}",
            tenant_id="acme" if n % 2 else "bravo",
            event_id=f"e{n % 5}",
            event_data={"n": n, "text": "ü😀'\"\\", "nested": {"a": [1.5, None]}},
            response_data={"body": n} if n % 4 else None,
            code=None if n % 3 else "500",
        )
        for n in range(count)
    ]


def make_cold(store: LogStore, name: str, *, depth: str = "purged", segment_rows: int = 7) -> None:
    """Take a month as far as `depth` on its way out of PostgreSQL."""
    steps = ("closed", "exported", "cold", "detached", "purged")
    for step in steps[: steps.index(depth) + 1]:
        if step == "closed":
            partitions.close(store.database, name)
        elif step == "exported":
            archive.export(store, name, segment_rows=segment_rows)
        elif step == "cold":
            archive.flip(store, name)
        elif step == "detached":
            partitions.detach(store.database, name)
        else:
            partitions.drop(store.database, name)


@pytest.mark.parametrize("depth", ["closed", "exported", "cold", "detached", "purged"])
def test_a_month_reads_the_same_at_every_step_of_its_way(any_store: LogStore, depth: str) -> None:
    given_records = records()
    any_store.insert_many([event("e1")], given_records)
    make_cold(any_store, MONTH, depth=depth)
    check_walks(any_store.list_attempt, Selection(), given_records, {1, 4, 30, 31})
    page = any_store.list_attempt(limit=1000)
    assert set(page.tiers) == ({"hot"} if depth in ("closed", "exported") else {"cold"})
    assert page.warnings == ()
    assert any_store.retrieve_attempt("a7") == given_records[7]
    assert any_store.retrieve_event("e1", destination_id="d0") is not None
    assert any_store.retrieve_event("e1", destination_id="nowhere") is None


@settings(max_examples=25)
@given(st.data())
def test_random_months_archived_give_the_same_walks(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    _empty(store)
    given_records = unique(data.draw(st.lists(records_of.attempts, min_size=1, max_size=14)))
    store.insert_many(attempts=given_records)
    months = sorted({partitions.partition_name("attempts", partitions.month_of(r.time)) for r in given_records})
    for name in months:
        depth = data.draw(st.sampled_from(["", "closed", "exported", "cold", "detached", "purged"]))
        if depth:
            make_cold(store, name, depth=depth, segment_rows=data.draw(st.integers(1, 6)))
    for selection in [Selection(), *data.draw(st.lists(attempt_selections, min_size=1, max_size=2))]:
        expected = [record for record in given_records if matches(selection, record)]
        check_walks(store.list_attempt, selection, expected, some_sizes(len(expected)) - {2, 3})
    for record in given_records[:3]:
        newest = max((r for r in given_records if r.id == record.id), key=lambda r: r.time)
        assert store.retrieve_attempt(record.id) == newest


@pytest.mark.parametrize(
    "where", ['event_data.n >= 20 and not code = "500"', 'data.text contains "ü"', "data.n in [3, 4, 29]"]
)
def test_a_filter_gives_the_same_on_both_tiers_and_keeps_its_place(any_store: LogStore, where: str) -> None:
    given_records = records()
    any_store.insert_many(attempts=given_records)
    tree = filters.parse(where, "attempt")
    expected = [record for record in given_records if filters.matches(tree, record)]
    assert 0 < len(expected) <= 30
    check_walks(any_store.list_attempt, Selection(where=where), expected, {1, 3, 31})
    make_cold(any_store, MONTH)
    check_walks(any_store.list_attempt, Selection(where=where), expected, {1, 3, 31})
    some = Selection(where=where, tenant_ids=("acme",), destination_ids=("d0", "d1"))
    check_walks(any_store.list_attempt, some, [r for r in expected if matches(some.but(where=None), r)], {2})


def _empty(store: LogStore) -> None:
    for partition in partitions.inventory(store.database):
        if partition.parent == "attempts":
            with store.database.connection() as connection:
                connection.execute(f"DROP TABLE {partition.name}")
    with store.database.connection() as connection:
        connection.execute("DELETE FROM months WHERE parent = 'attempts'")
        connection.execute("DELETE FROM segments")


def test_walks_stay_whole_while_a_month_moves_out_and_back_with_writers_running(store: LogStore) -> None:
    old, new = records(60), START + timedelta(days=40)
    store.insert_many(attempts=[*old, attempt("now0", time=new)])
    stop, failures = threading.Event(), list[BaseException]()

    def guarded(work: Any) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)
                stop.set()

        return threading.Thread(target=run)

    def move() -> None:
        for _ in range(4):
            make_cold(store, MONTH, depth="detached", segment_rows=20)
            partitions.attach_again(store.database, MONTH)
            archive.flip(store, MONTH)
            partitions.detach(store.database, MONTH)
            partitions.drop(store.database, MONTH)
            archive.restore(store, MONTH)
        stop.set()

    def write() -> None:
        for n in range(1, 100_000):
            if stop.wait(0.002):
                return
            store.insert_many(attempts=[attempt(f"now{n}", time=new + timedelta(seconds=n))])

    def read() -> None:
        selection = Selection(time=records_of_march())
        while not stop.is_set():
            for order in ("asc", "desc"):
                forward, back = walk(store.list_attempt, selection, limit=9, order=order)
                listed = old if order == "asc" else old[::-1]
                assert forward == back == listed
            assert store.retrieve_attempt("a33") == old[33]

    threads = [guarded(move), guarded(write), guarded(read), guarded(read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures
    assert stop.is_set()


def records_of_march() -> Any:
    return TimeFilter(gte=START, lt=START + timedelta(days=31))


def test_a_write_to_a_cold_month_is_refused_and_goes_in_after_restore(any_store: LogStore) -> None:
    any_store.insert_many(attempts=records(5))
    for depth in ("cold", "detached", "purged"):
        make_cold(any_store, MONTH, depth=depth)
        with pytest.raises(PartitionError, match=f"restore {MONTH}"):
            any_store.insert_many(attempts=[attempt("late"), attempt("other", time=START + timedelta(days=40))])
        assert len(any_store.list_attempt()) == 5, "a refused batch is refused whole"
        archive.restore(any_store, MONTH)
        assert list(any_store.list_attempt(order="asc")) == records(5)
    assert any_store.insert_many(attempts=[attempt("late"), *records(5)]).attempts_inserted == 1
    assert len(any_store.list_attempt()) == 6
    assert set(any_store.list_attempt().tiers) == {"hot"}


def test_a_segment_is_what_the_catalog_says(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    sealed = archive.export(store, MONTH, segment_rows=12)
    assert [(s.base_offset, s.end_offset, s.rows) for s in sealed] == [(0, 12, 12), (12, 24, 12), (24, 30, 6)]
    for segment in sealed:
        path = segment.path(store.settings.archive)
        assert segment.location == f"attempts/2026-03/{segment.base_offset:020d}-{segment.segment_id}.parquet"
        assert path.stat().st_size == segment.bytes
    assert (sealed[0].min_id, sealed[0].min_time) == ("a0", START)
    assert archive.verify(store) == archive.reconcile(store) == []
    assert archive.export(store, MONTH) == [*_listed(store)], "exporting again changes nothing"


def _listed(store: LogStore) -> list[segments.Segment]:
    with store.database.connection() as connection:
        return segments.listed(connection)


def test_a_flipped_byte_is_found_and_the_page_says_what_is_missing(store: LogStore) -> None:
    given_records = [*records(30), attempt("april", time=START + timedelta(days=35))]
    store.insert_many(attempts=given_records)
    make_cold(store, MONTH, depth="detached", segment_rows=10)
    make_cold(store, "attempts_2026_04", depth="purged")
    broken = _listed(store)[1]
    path = broken.path(store.settings.archive)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    found = archive.verify(store)
    assert len(found) == 1 and "restore attempts_2026_03" in found[0].done
    page = store.list_attempt(limit=1000)
    assert [r.id for r in page][::-1] == [
        r.id for r in given_records if not 10 <= int(r.id[1:] if r.id != "april" else -1) < 20
    ]
    assert len(page.warnings) == 1
    assert "2026-03-01T10:00:00" in page.warnings[0] and broken.segment_id in page.warnings[0]
    assert store.list_attempt(Selection(time=_after(START + timedelta(days=31)))).warnings == ()
    with pytest.raises(ArchiveError, match="cannot be read"):
        store.retrieve_attempt("a15")
    path.write_bytes(whole)
    assert [f.done for f in archive.verify(store)] == ["sealed again"]
    assert len(store.list_attempt(limit=1000)) == 31


def _after(time: Any) -> Any:
    return TimeFilter(gte=time)


def test_an_archive_that_is_not_where_it_is_looked_for_is_left_alone(store: LogStore) -> None:
    store.insert_many(attempts=[*records(20), attempt("april", time=START + timedelta(days=40))])
    make_cold(store, MONTH)
    there, away = store.settings.archive, store.settings.archive.with_name("on-its-disk")
    there.rename(away)
    for empty in (False, True):  # the mount point of a disk that is not mounted is an empty folder
        if empty:
            there.mkdir()
        for work in (archive.verify, archive.reconcile, lambda store: archive.export(store, "attempts_2026_04")):
            with pytest.raises(ArchiveError, match="LOGSTORE_ARCHIVE"):
                work(store)
    assert not list(there.iterdir())
    there.rmdir()
    away.rename(there)
    assert archive.verify(store) == [] and len(store.list_attempt(limit=100)) == 21
    shutil.rmtree(there / "attempts")
    assert all("quarantined" in f.done for f in archive.verify(store, MONTH)), (
        "somebody says by name that they are lost"
    )
    assert archive.export(store, "attempts_2026_04"), "life goes on"


def test_a_missing_file_is_a_warning_and_reconcile_names_it(store: LogStore) -> None:
    store.insert_many(attempts=records(20))
    make_cold(store, MONTH, segment_rows=10)
    gone = _listed(store)[0]
    gone.path(store.settings.archive).unlink()
    page = store.list_attempt()
    assert len(page) == 10 and len(page.warnings) == 1
    stranger = store.settings.archive / "attempts" / "2026-03" / "stranger.parquet"
    stranger.write_bytes(b"not parquet")
    assert {f.what for f in archive.reconcile(store)} == {gone.location, "attempts/2026-03/stranger.parquet"}
    with pytest.raises(ArchiveError, match="missing"):
        archive.restore(store, MONTH)
    assert len(store.list_attempt()) == 10, "what can be read stays readable"


def test_compaction_keeps_every_row_and_retires_the_small_files(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH, segment_rows=4)
    before = _listed(store)
    new = archive.compact(store, MONTH)
    assert (len(before), len(new)) == (8, 1)
    assert sorted(new[0].replaces) == sorted(s.segment_id for s in before)
    check_walks(store.list_attempt, Selection(), records(30), {7, 31})
    assert all(s.path(store.settings.archive).exists() for s in before), "readers may still be using them"
    assert archive.verify(store) == archive.reconcile(store) == []


def test_the_catalog_can_be_rebuilt_from_the_footers_also_after_compaction(store: LogStore) -> None:
    store.insert_many([event("e1")], records(30))
    make_cold(store, MONTH, segment_rows=4)
    archive.compact(store, MONTH)
    expected = _listed(store)
    with store.database.connection() as connection:
        connection.execute("DELETE FROM segments")
        connection.execute("DELETE FROM months WHERE parent = 'attempts'")
    archive.rebuild_catalog(store)
    rebuilt = _listed(store)
    strip = [(s.segment_id, s.rows, s.sha256, s.checksum, s.min_time, s.max_id, s.location) for s in expected]
    assert [(s.segment_id, s.rows, s.sha256, s.checksum, s.min_time, s.max_id, s.location) for s in rebuilt] == strip
    check_walks(store.list_attempt, Selection(), records(30), {7})


def test_only_one_export_of_a_month_runs_at_a_time(store: LogStore) -> None:
    store.insert_many(attempts=records(3))
    with catalog.alone(store, MONTH), pytest.raises(ArchiveError, match="another process"):
        archive.export(store, MONTH)


def test_an_empty_month_can_go_all_the_way(store: LogStore) -> None:
    store.insert_many([event()])
    partitions.ensure(store.database, [("attempts", START.date())])
    make_cold(store, MONTH)
    assert store.list_attempt().data == ()
    archive.restore(store, MONTH)
    store.insert_many(attempts=[attempt()])


def test_a_month_is_not_flipped_before_it_is_exported(store: LogStore) -> None:
    store.insert_many(attempts=records(3))
    with pytest.raises(ArchiveError, match="close and export"):
        archive.flip(store, MONTH)
    partitions.close(store.database, MONTH)
    with pytest.raises(ArchiveError, match="export it first"):
        archive.flip(store, MONTH)
    with pytest.raises(PartitionError, match="not cold"):
        partitions.detach(store.database, MONTH)


EXPORT = """
import sys, logstore
from logstore import archive
with logstore.open(sys.argv[1], role="operator", home=sys.argv[2]) as store:
    getattr(archive, sys.argv[3])(store, "attempts_2026_03", **({"segment_rows": 12} if sys.argv[3] == "export" else {}))
"""


@pytest.mark.parametrize(
    ("action", "step"),
    [("export", s) for s in ("closed", "begun", "written", "renamed", "checked", "sealed")]
    + [
        ("compact", "export.begun"),
        ("compact", "export.renamed"),
        ("compact", "export.sealed"),
        ("compact", "compact.swapped"),
    ]
    + [("restore", "restore.filled")],
)
def test_a_process_killed_at_a_step_is_made_good_by_running_again(store: LogStore, action: str, step: str) -> None:
    store.insert_many(attempts=records(30))
    if action != "export":
        make_cold(store, MONTH, segment_rows=12)
    point = step if "." in step else f"{action}.{step}"
    command = [sys.executable, "-c", EXPORT, store.database.conninfo, str(store.settings.home), action]
    killed = subprocess.run(command, env={**os.environ, VARIABLE: point}, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    check_walks(store.list_attempt, Selection(), records(30), {7, 31})
    subprocess.run(command, env={**os.environ}, check=True, capture_output=True)
    assert archive.verify(store) == archive.reconcile(store) == []
    check_walks(store.list_attempt, Selection(), records(30), {7, 31})
    expected = {"export": 3, "compact": 1, "restore": 0}[action]
    assert len(_listed(store)) == expected
    files = {str(p.relative_to(store.settings.archive)) for p in store.settings.archive.rglob("*.parquet")}
    assert files >= {s.location for s in _listed(store)}
    assert not list(store.settings.archive.rglob("*.tmp"))


def test_a_detach_that_was_interrupted_is_finished_by_running_again(store: LogStore) -> None:
    store.insert_many(attempts=records(5))
    make_cold(store, MONTH, depth="cold")
    with store.database.connection() as reader:
        reader.execute("SELECT count(*) FROM attempts")
        with store.database.connection(autocommit=True) as connection:
            connection.execute("SET lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                connection.execute(f"ALTER TABLE attempts DETACH PARTITION {MONTH} CONCURRENTLY")
        assert len(store.list_attempt()) == 5
    assert {p.name: p.pending for p in partitions.inventory(store.database)}[MONTH]
    partitions.detach(store.database, MONTH)
    assert not {p.name: p.attached for p in partitions.inventory(store.database)}[MONTH]
    assert len(store.list_attempt()) == 5
