"""What goes wrong around the archive: others at work at the same moment, a lost catalog, files that nobody can read."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore import (
    ArchiveError,
    LogStore,
    PartitionError,
    Selection,
    TooBroad,
    archive,
    deadline,
    partitions,
    postgres,
    sealing,
    segments,
)
from logstore.archive import catalog, compaction, exporting, restoring
from logstore.embedded import EmbeddedServer
from logstore.segments import Segment
from tests.conftest import new_database
from tests.records_of import START, attempt, event
from tests.test_archive import MONTH, make_cold, records
from tests.test_paging import check_walks

Step = Callable[[], Any]


class Killed(BaseException):
    """As if the process had died here: no handler of ours catches it, and nothing is cleaned up."""


def kill_at(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def fault(name: str) -> None:
        if name == point:
            raise Killed

    for module in (compaction, exporting, restoring):
        monkeypatch.setattr(module, "fault", fault)


def listed(store: LogStore) -> list[Segment]:
    with store.database.connection() as connection:
        return segments.listed(connection)


def states(store: LogStore) -> dict[str, str]:
    with store.database.connection() as connection:
        return {segment.segment_id: segment.state for segment in segments.fetch(connection, "all")}


def run(store: LogStore, statement: str) -> None:
    with store.database.connection() as connection:
        connection.execute(statement)


def lose_catalog(store: LogStore) -> None:
    run(store, "DELETE FROM segments")
    run(store, "DELETE FROM months WHERE parent = 'attempts'")


def forget_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write footers as an older version did: they say neither when they were made, nor of how many rows."""
    known = sealing._to_footer
    monkeypatch.setattr(
        sealing, "_to_footer", lambda s: {n: v for n, v in known(s).items() if n not in ("created", "total")}
    )


# Others at work


def test_reconcile_spares_what_was_sealed_while_it_waited(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH, segment_rows=10)
    run(store, "UPDATE segments SET state = 'writing'")  # as a compaction that is about to swap has them
    alone = catalog.alone

    @contextlib.contextmanager
    def swapped_meanwhile(store: LogStore, name: str) -> Iterator[Any]:
        run(store, "UPDATE segments SET state = 'sealed'")
        with alone(store, name) as connection:
            yield connection

    monkeypatch.setattr(catalog, "alone", swapped_meanwhile)
    assert archive.reconcile(store) == []
    check_walks(store.list_attempt, Selection(), records(30), {31})


@pytest.mark.parametrize("before", ["sealed", "quarantined"])
@pytest.mark.parametrize("good", [True, False])
def test_what_is_retired_while_it_is_verified_stays_retired(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, before: str, good: bool
) -> None:
    store.insert_many(attempts=records(5))
    make_cold(store, MONTH, depth="exported")
    run(store, f"UPDATE segments SET state = '{before}'")

    def check(*_: Any) -> None:
        run(store, "UPDATE segments SET state = 'retired'")
        if not good:
            raise ArchiveError("its file is missing")

    monkeypatch.setattr(sealing, "check", check)
    assert archive.verify(store) == []
    assert set(states(store).values()) == {"retired"}


def test_a_restore_that_comes_during_a_detach_waits_for_it_and_no_row_disappears(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(attempts=records(5))
    make_cold(store, MONTH, depth="cold")
    restoring = threading.Thread(target=archive.restore, args=(store, MONTH))
    check = partitions.add_bounds_check

    def restore_now(*given: Any) -> None:  # between the look at the month's state and the detach
        monkeypatch.setattr(partitions, "add_bounds_check", check)
        restoring.start()
        restoring.join(timeout=1)
        check(*given)

    monkeypatch.setattr(partitions, "add_bounds_check", restore_now)
    partitions.detach(store.database, MONTH)
    restoring.join(timeout=30)
    found = {p.name: (p.state, p.attached) for p in partitions.inventory(store.database)}[MONTH]
    assert found == ("open", True)
    assert len(store.list_attempt()) == 5


def test_a_write_to_a_month_that_is_being_detached_is_refused_at_once(any_store: LogStore) -> None:
    any_store.insert_many(attempts=records(5))
    make_cold(any_store, MONTH, depth="cold")
    detaching = threading.Thread(target=partitions.detach, args=(any_store.database, MONTH))
    with any_store.database.connection() as reader:
        reader.execute("SELECT count(*) FROM attempts")  # the detach waits for it
        detaching.start()
        _until(lambda: {p.name: p.pending for p in partitions.inventory(any_store.database)}[MONTH])
        began = time.monotonic()
        with pytest.raises(PartitionError, match=f"restore {MONTH}"):
            any_store.insert_many(attempts=[attempt("late")])
        assert time.monotonic() - began < 2
    detaching.join(timeout=30)
    assert not {p.name: p.attached for p in partitions.inventory(any_store.database)}[MONTH]


def test_a_detach_that_is_interrupted_while_a_restore_waits_hides_no_row(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(attempts=records(5))
    make_cold(store, MONTH, depth="cold")
    finish = partitions._finish_detach

    def interrupted_after(*given: Any) -> None:
        finish(*given)
        monkeypatch.setattr(partitions, "_finish_detach", finish)
        with store.database.connection() as reader, store.database.connection(autocommit=True) as other:
            reader.execute("SELECT count(*) FROM attempts")
            other.execute("SET lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(f"ALTER TABLE attempts DETACH PARTITION {MONTH} CONCURRENTLY")

    monkeypatch.setattr(partitions, "_finish_detach", interrupted_after)
    with pytest.raises(PartitionError, match="try again"):
        archive.restore(store, MONTH)
    archive.restore(store, MONTH)
    assert len(store.list_attempt()) == 5 and set(store.list_attempt().tiers) == {"hot"}


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


# A lost catalog


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "live"])
@pytest.mark.parametrize("old_footers", [False, True], ids=["", "old"])
def test_a_compaction_that_was_killed_half_way_loses_nothing_when_the_catalog_is_rebuilt(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, lost: bool, old_footers: bool
) -> None:
    if old_footers:
        forget_age(monkeypatch)
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH, segment_rows=10)
    kill_at(monkeypatch, "export.sealed")
    with pytest.raises(Killed):
        archive.compact(store, MONTH, segment_rows=20)
    if lost:
        lose_catalog(store)
    found = archive.rebuild_catalog(store)
    check_walks(store.list_attempt, Selection(), records(30), {31})
    assert [finding.done for finding in found] == (["retired"] if lost else [])
    monkeypatch.undo()
    assert len(archive.compact(store, MONTH)) == 1
    lose_catalog(store)
    archive.rebuild_catalog(store)
    check_walks(store.list_attempt, Selection(), records(30), {31})


@pytest.mark.parametrize("old_footers", [False, True], ids=["", "old"])
def test_of_two_exports_of_a_month_the_newer_one_is_listed(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, old_footers: bool
) -> None:
    if old_footers:
        forget_age(monkeypatch)
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH)
    archive.restore(store, MONTH)
    changed = [*records(29), replace(records(30)[29], status="failed"), attempt("late", time=START + timedelta(days=9))]
    store.insert_many(attempts=changed)
    time.sleep(0.01)  # files of the older version are told apart by their clock
    make_cold(store, MONTH)
    lose_catalog(store)
    archive.rebuild_catalog(store)
    check_walks(store.list_attempt, Selection(), changed, {7, 40})


def test_a_file_that_is_broken_foreign_or_misplaced_is_reported_and_the_others_are_listed(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH)
    folder = store.settings.archive / "attempts" / "2026-03"
    (folder / "broken.parquet").write_bytes(b"not parquet")
    pq.write_table(pa.table({"a": [1]}), folder / "foreign.parquet")
    pq.write_table(
        pa.table({"a": [1]}).replace_schema_metadata({"logstore.segment": '{"what": "is this"}'}),
        folder / "odd.parquet",
    )
    shutil.copy(listed(store)[0].path(store.settings.archive), folder / "copy.parquet")
    expected = listed(store)
    lose_catalog(store)
    found = archive.rebuild_catalog(store)
    strangers = ("broken", "copy", "foreign", "odd")
    assert sorted(f.what for f in found) == [f"attempts/2026-03/{name}.parquet" for name in strangers]
    assert {f.done for f in found} == {"left alone"}
    assert [s.segment_id for s in listed(store)] == [s.segment_id for s in expected]
    check_walks(store.list_attempt, Selection(), records(30), {31})


def test_a_rebuild_changes_nothing_that_the_catalog_knows(store: LogStore) -> None:
    store.insert_many([event("e1")], records(30))
    make_cold(store, MONTH)
    make_cold(store, "events_2026_03")
    archive.compact(store, MONTH)
    run(store, "UPDATE segments SET state = 'quarantined' WHERE parent = 'events'")
    before = states(store)
    assert archive.rebuild_catalog(store) == []
    assert states(store) == before
    archive.retire(store, MONTH, note="retention")
    archive.rebuild_catalog(store)
    assert len(store.list_attempt()) == 0, "what was let go does not come back"


def test_files_of_a_month_that_postgres_serves_are_neither_listed_nor_given_up(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH)
    lose_catalog(store)
    store.insert_many(attempts=[attempt("new")])
    found = archive.rebuild_catalog(store)
    assert len(found) == 5 and {f.done for f in found} == {"left alone"}
    assert states(store) == {}
    assert [r.id for r in store.list_attempt()] == ["new"]


def segment(
    name: str, base: int, end: int, *, age: int | None = 0, total: int = 0, replaces: tuple[str, ...] = ()
) -> Any:
    """A file that was made `age` hours ago."""
    created = None if age is None else datetime(2026, 5, 1, tzinfo=UTC) - timedelta(hours=age)
    draft = sealing.new_draft("attempts", date(2026, 3, 1), base, name, replaces, created=START, total=total)
    return replace(draft, end_offset=end, rows=end - base, created=created)


def taken(listed: list[Any], *loose: Any) -> tuple[str, bool]:
    chosen, whole = segments.standing([*listed, *loose], {one.segment_id for one in listed})
    return "".join(one.segment_id for one in chosen), whole


def test_a_generation_takes_over_only_if_it_is_whole_and_newer() -> None:
    a, b = segment("a", 0, 10, age=5, total=20), segment("b", 10, 20, age=5, total=20)
    h, r = (segment(n, *ends, age=1, total=20, replaces=("a", "b")) for n, ends in (("h", (0, 15)), ("r", (15, 20))))
    assert taken([], a, b) == taken([], a, b, h) == ("ab", True)
    assert taken([], a, b, h, r) == taken([], h, r) == taken([a, b], h, r) == ("hr", True)
    assert taken([a, b], h) == taken([a, b], r) == taken([a, b]) == ("ab", True)
    assert taken([h, r], a, b) == ("hr", True), "older files stay out"
    assert taken([a], b) == ("ab", True), "a row of the catalog was lost, not the file"
    assert taken([h], a, b) == ("h", False), "nothing that is newer is whole: nobody is asked to give up what is listed"
    assert taken([], a, h) == ("h", False), "nothing at all is whole: the most rows"
    assert taken([], b) == taken([b]) == ("b", False)
    assert taken([]) == ("", True)


def test_files_that_do_not_say_their_age_are_measured_by_what_they_replace() -> None:
    a, b = segment("a", 0, 10, age=None), segment("b", 10, 20, age=None)
    h, r = (segment(n, *ends, age=None, replaces=("a", "b")) for n, ends in (("h", (0, 15)), ("r", (15, 20))))
    assert taken([], a, b, h) == taken([a, b], h) == ("ab", True)
    assert taken([], a, b, h, r) == taken([a, b], h, r) == ("hr", True)
    assert taken([], h, r) == ("hr", True), "what they replaced is deleted by now"
    assert taken([], segment("n", 0, 10, age=None), a, b) == ("nb", False), "of two for the same rows the first"


def test_a_file_whose_row_was_lost_is_listed_again_beside_the_others(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH)
    gone = listed(store)[2]
    run(store, f"DELETE FROM segments WHERE segment_id = '{gone.segment_id}'")
    assert archive.rebuild_catalog(store) == []
    check_walks(store.list_attempt, Selection(), records(30), {31})
    gone.path(store.settings.archive).unlink()
    assert archive.rebuild_catalog(store) == []
    assert len(store.list_attempt().warnings) == 1, "a hole keeps its name"


def test_a_table_is_not_dropped_while_its_segments_hold_fewer_rows(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH, depth="detached", segment_rows=10)
    run(store, "UPDATE segments SET state = 'retired' WHERE base_offset = 10")
    with pytest.raises(PartitionError, match="has 30 rows, its sealed segments have 20"):
        partitions.drop(store.database, MONTH)
    archive.restore(store, MONTH)
    check_walks(store.list_attempt, Selection(), records(30), {31})


def test_a_month_with_a_bad_segment_is_not_compacted(store: LogStore) -> None:
    store.insert_many(attempts=records(30))
    make_cold(store, MONTH, segment_rows=10)
    bad = listed(store)[1].path(store.settings.archive)
    whole = bad.read_bytes()
    bad.write_bytes(b"rubbish")
    archive.verify(store)
    with pytest.raises(ArchiveError, match=r"quarantined segments.*from a backup, then verify again"):
        archive.compact(store, MONTH)
    bad.write_bytes(whole)
    archive.verify(store)
    assert len(archive.compact(store, MONTH)) == 1
    check_walks(store.list_attempt, Selection(), records(30), {31})


def test_a_month_restored_into_a_new_database_is_found_by_its_names(
    store: LogStore, open_store: Any, server: EmbeddedServer
) -> None:
    store.insert_many([event("e1", topic="t1")], records(9))
    for name in (MONTH, "events_2026_03"):
        make_cold(store, name)
    fresh = open_store(new_database(server))
    assert fresh.settings.archive == store.settings.archive
    archive.rebuild_catalog(fresh)
    for name in (MONTH, "events_2026_03"):
        archive.restore(fresh, name)
    assert len(fresh.list_attempt(Selection(topics=("order.created",)))) == 9
    assert len(fresh.list_attempt(Selection(destination_ids=("d0",)))) == 3
    assert len(fresh.list_attempt(Selection(status="success"))) == 9
    assert len(fresh.list_event(Selection(topics=("t1",)))) == 1


def test_a_record_in_a_file_is_found_behind_a_newer_one_of_another_tenant(any_store: LogStore) -> None:
    may = START + timedelta(days=61)
    mine, other = event("x", tenant_id="a"), event("x", tenant_id="b", time=may)
    sent, theirs = attempt("y", tenant_id="a", event_id="x"), attempt("y", tenant_id="b", event_id="x", time=may)
    any_store.insert_many([mine, other], [sent, theirs])
    for name in (MONTH, "events_2026_03"):
        make_cold(any_store, name)
    assert any_store.retrieve_event("x") == other
    assert any_store.retrieve_event("x", tenant_id="a") == mine
    assert any_store.retrieve_event("x", tenant_id="nobody") is None
    assert any_store.retrieve_attempt("y", tenant_id="a") == sent
    assert any_store.retrieve_attempt("y") == theirs
    any_store.insert_many(attempts=[attempt("z", tenant_id="a", event_id="x", destination_id="only", time=may)])
    found = any_store.retrieve_event("x", destination_id="only")
    assert found is not None and (found.tenant_id, found.time) == ("a", START)


# Durable, and bounded


def test_every_folder_that_is_made_is_made_durable_in_the_one_above(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(attempts=records(3))
    synced: list[Path] = []
    fsync, rename = os.fsync, Path.rename
    before: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(Path(os.readlink(f"/proc/self/fd/{fd}"))), fsync(fd)))
    monkeypatch.setattr(Path, "rename", lambda path, to: (before.extend(synced), rename(path, to)))
    root = store.settings.archive
    assert not root.exists()
    archive.export(store, MONTH)
    assert {root.parent, root, root / "attempts"} <= set(before)
    assert synced[-1] == root / "attempts" / "2026-03"


def large(count: int, size: int) -> list[Any]:
    return [
        attempt(f"a{n:03}", time=START + timedelta(minutes=n), event_data={"text": f"{n}" + "x" * size})
        for n in range(count)
    ]


def test_large_records_make_small_row_groups_and_are_read_back_a_few_at_a_time(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = large(60, 10_000)
    store.insert_many(attempts=given)
    (one,) = archive.export(store, MONTH)
    path = one.path(store.settings.archive)
    assert pq.read_metadata(path).num_row_groups == 1
    monkeypatch.setattr(sealing, "ROW_GROUP_BYTES", 50_000)
    parts = [table.nbytes for table in sealing.read_rows(store.settings.archive, [one])]
    assert len(parts) > 10 and max(parts) <= 60_000, "also of a file that was written before"
    groups = list(sealing.row_groups(sealing.read_rows(store.settings.archive, [one])))
    assert max(group.nbytes for group in groups) <= 60_000
    assert pa.concat_tables(groups).column("id").to_pylist() == [record.id for record in given]
    make_cold(store, MONTH, segment_rows=25)
    archive.compact(store, MONTH)
    check_walks(store.list_attempt, Selection(), given, {7, 61})
    archive.restore(store, MONTH)
    check_walks(store.list_attempt, Selection(), given, {61})


def test_an_export_closes_a_row_group_before_it_grows_large(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "ROW_GROUP_BYTES", 20_000_000)
    given = large(60, 1_000_000)
    store.insert_many(attempts=given)
    (one,) = archive.export(store, MONTH)
    found = pq.read_metadata(one.path(store.settings.archive))
    sizes = [found.row_group(n).total_byte_size for n in range(found.num_row_groups)]
    assert sum(sizes) > 60_000_000 and max(sizes) < 36_000_000


def test_a_list_ends_with_its_time_limit_on_the_hot_tier(store: LogStore) -> None:
    store.insert_many(attempts=records(3))
    store.list_attempt()
    with store.database.connection() as other:
        other.execute("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE")
        for question in (store.list_attempt, lambda: store.retrieve_attempt("a1")):
            with pytest.raises(TooBroad, match=r"within 0\.3 s"), deadline.within(0.3):
                question()
    assert len(store.list_attempt()) == 3


def test_a_list_ends_with_its_time_limit_on_the_cold_tier(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.insert_many(attempts=records(3))
    make_cold(store, MONTH)
    engine = segments.engine

    class Slow:
        """A DuckDB that takes minutes for everything."""

        def __init__(self) -> None:
            self.cursor = engine()

        def execute(self, *_: Any) -> Any:
            return self.cursor.execute("SELECT sum(hash(a.range + b.range)) FROM range(1000000) a, range(1000000) b")

        def interrupt(self) -> None:
            self.cursor.interrupt()

    monkeypatch.setattr(segments, "engine", Slow)
    for question in (store.list_attempt, lambda: store.retrieve_attempt("a1")):
        with pytest.raises(TooBroad, match=r"within 0\.3 s"), deadline.within(0.3):
            question()


def test_an_interrupt_that_comes_between_two_statements_comes_again() -> None:
    cursor = segments.engine()

    def ask() -> None:
        with deadline.interrupted(cursor):
            time.sleep(0.3)
            cursor.execute("SELECT sum(hash(a.range + b.range)) FROM range(1000000) a, range(10000) b").fetchall()

    began = time.monotonic()
    with pytest.raises(TooBroad), deadline.within(0.1):
        ask()
    assert time.monotonic() - began < 3


def test_the_time_limit_of_the_readers_role_is_an_error_of_the_tree(
    store: LogStore, open_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(attempts=records(3))
    monkeypatch.setattr(postgres, "_READER_SECONDS", 0.3)
    reader = open_store(store.database.conninfo, "reader")
    assert len(reader.list_attempt()) == 3
    with store.database.connection() as other:
        other.execute("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE")
        for question in (reader.list_attempt, lambda: reader.retrieve_attempt("a1")):
            with pytest.raises(TooBroad, match="narrow the time") as refused:
                question()
            assert isinstance(refused.value.__cause__, psycopg.errors.QueryCanceled)


def test_a_page_without_a_time_limit_asks_postgres_nothing_more(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(attempts=records(3))
    store.list_attempt()
    seen: list[str] = []
    execute = psycopg.Connection.execute
    monkeypatch.setattr(
        psycopg.Connection,
        "execute",
        lambda self, query, *rest, **named: (seen.append(str(query)), execute(self, query, *rest, **named))[1],
    )
    store.list_attempt()
    assert len(seen) == 2, "the page, and the epoch"
    seen.clear()
    with deadline.within(60):
        store.list_attempt()
    assert len(seen) == 4, "set and reset"


# The epoch


def test_the_epoch_changes_with_what_readers_see_and_with_nothing_else(any_store: LogStore) -> None:
    store = any_store
    store.insert_many(attempts=records(5))
    make_cold(store, MONTH, depth="cold")
    ids = [segment.segment_id for segment in listed(store)]

    def moved(step: Step) -> bool:
        with store.database.connection(autocommit=True) as connection:
            before = partitions.read_epoch(connection)
            step()
            return partitions.read_epoch(connection) != before

    def set_state(state: str) -> Step:
        return lambda: run(store, f"UPDATE segments SET state = '{state}' WHERE segment_id = '{ids[0]}'")

    def note(state: str) -> Step:
        return lambda: run(
            store,
            f"INSERT INTO months (parent, month, state) VALUES ('events', '2026-03-01', '{state}')"
            " ON CONFLICT (parent, month) DO UPDATE SET state = EXCLUDED.state",
        )

    def insert(state: str) -> Step:
        return lambda: run(
            store,
            "INSERT INTO segments SELECT segment_id || 'x', parent, month, base_offset, end_offset, rows, bytes, sha256,"
            f" checksum, min_time, max_time, min_id, max_id, location, schema_version, replaces, '{state}' FROM segments",
        )

    def delete(state: str) -> Step:
        return lambda: run(store, f"DELETE FROM segments WHERE state = '{state}' AND segment_id LIKE '%x'")

    assert not moved(lambda: archive.verify(store)), "verify only looks"
    assert [moved(note(s)) for s in ("open", "open", "closed", "closed", "open")] == [True, False, True, False, True]
    assert [moved(set_state(s)) for s in ("sealed", "quarantined", "quarantined", "sealed")] == [
        False,
        True,
        False,
        True,
    ]
    assert [moved(set_state(s)) for s in ("retired", "writing", "retired", "sealed")] == [True, False, False, True]
    assert [moved(insert("writing")), moved(delete("writing"))] == [False, False]
    assert [moved(insert("sealed")), moved(delete("sealed"))] == [True, True]
    assert moved(lambda: run(store, "DELETE FROM months WHERE parent = 'events'"))
    assert moved(lambda: run(store, "TRUNCATE segments")) and moved(lambda: run(store, "TRUNCATE months"))


def test_a_reading_is_not_begun_again_because_files_are_verified(store: LogStore) -> None:
    store.insert_many(attempts=records(5))
    make_cold(store, MONTH)
    store.tiers.refresh()
    readings = []

    def read(*_: Any) -> int:
        readings.append(archive.verify(store))
        return len(readings)

    assert store.tiers.steadily(read) == 1
