"""Months are made when needed without stopping anybody, and a closed one takes no writes."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import LogStore, PartitionError, partitions
from tests.records_of import START, attempt, event


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 1)))
def test_every_time_lies_inside_the_bounds_of_its_month(naive: datetime) -> None:
    time = naive.replace(tzinfo=UTC)
    lower, upper = partitions.month_bounds(partitions.month_of(time))
    assert lower <= time < upper


def test_the_month_is_the_one_in_utc() -> None:
    assert partitions.month_of(datetime(2026, 3, 1, 1, tzinfo=timezone(timedelta(hours=5)))) == date(2026, 2, 1)


@pytest.mark.parametrize(
    "name", ["events", "events_2026", "events_2026_13", "other_2026_01", "events_2026_01; DROP", ""]
)
def test_a_name_that_names_no_partition_is_refused(name: str) -> None:
    with pytest.raises(PartitionError, match="attempts_2026_08"):
        partitions.parse_name(name)


def test_rows_on_the_bounds_land_in_the_right_month(any_store: LogStore) -> None:
    instants = [START - timedelta(microseconds=1), START, datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC)]
    any_store.insert_many([event(f"e{i}", time=t) for i, t in enumerate(instants)])
    with any_store.database.connection() as connection:
        found = dict(connection.execute("SELECT id, tableoid::regclass::text FROM events").fetchall())
    assert found == {"e0": "events_2026_02", "e1": "events_2026_03", "e2": "events_2024_02"}


def test_the_months_that_are_needed_soon_are_made_as_well(store: LogStore) -> None:
    store.insert_many([event(time=START)])
    made = {p.name for p in partitions.inventory(store.database)}
    now = datetime.now(UTC)
    for parent in ("events", "attempts"):
        for time in (now, now + timedelta(days=store.settings.ahead)):
            assert partitions.partition_name(parent, partitions.month_of(time)) in made


def test_every_month_has_the_indexes_statistics_and_bounds_of_its_parent(any_store: LogStore) -> None:
    any_store.insert_many([event()], [attempt()])
    with any_store.database.connection() as connection:
        counted = dict(
            connection.execute(
                "SELECT c.relname, (SELECT count(*) FROM pg_index WHERE indrelid = c.oid) || '/' ||"
                " (SELECT count(*) FROM pg_statistic_ext WHERE stxrelid = c.oid) || '/' ||"
                " (SELECT count(*) FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c') FROM pg_class c"
                " WHERE relname IN ('events_2026_03', 'attempts_2026_03')"
            ).fetchall()
        )
    assert counted == {"events_2026_03": "4/1/1", "attempts_2026_03": "7/3/1"}


def test_making_a_month_waits_for_nobody_who_reads_or_writes_other_months(store: LogStore) -> None:
    store.insert_many([event()], [attempt()])
    with store.database.connection() as busy:
        busy.execute("SELECT count(*) FROM events, attempts")
        busy.execute("UPDATE events SET topic = topic")
        store.insert_many([event("new", time=START + timedelta(days=60))])  # would time out behind the open transaction
        with store.database.connection() as other:
            other.execute("SET LOCAL statement_timeout = '3s'")
            assert other.execute("SELECT count(*) FROM events").fetchone() == (2,)


def test_a_closed_month_refuses_every_kind_of_write_and_says_what_to_do(any_store: LogStore) -> None:
    any_store.insert_many([event()], [attempt()])
    partitions.close(any_store.database, "events_2026_03")
    partitions.close(any_store.database, "attempts_2026_03")
    for records in ([event()], [event("evt_2")]):
        with pytest.raises(PartitionError, match="restore events_2026_03"):
            any_store.insert_many(records)
    for statement in ("DELETE FROM attempts", "UPDATE attempts SET code = '1'"):
        with any_store.database.connection() as connection, pytest.raises(psycopg.Error) as refused:
            connection.execute(statement)
        assert refused.value.sqlstate == "LS001"
    assert len(any_store.list_event()) == len(any_store.list_attempt()) == 1
    partitions.reopen(any_store.database, "events_2026_03")
    any_store.insert_many([event("evt_2")])
    assert len(any_store.list_event()) == 2


def test_another_process_that_closed_the_month_is_noticed(store: LogStore, open_store: Any) -> None:
    store.insert_many([event()])
    other = open_store(store.database.conninfo)
    partitions.close(other.database, "events_2026_03")
    with pytest.raises(PartitionError, match="restore events_2026_03"):
        store.insert_many([event("late")])


def test_the_map_gets_a_new_epoch_with_every_change(store: LogStore) -> None:
    store.insert_many([event()])
    epochs = []
    for change in (partitions.close, partitions.reopen, partitions.close):
        change(store.database, "events_2026_03")
        with store.database.connection() as connection:
            epochs.append(partitions.read_map(connection).epoch)
            assert partitions.read_epoch(connection) == epochs[-1]
    assert epochs == sorted(set(epochs))


def test_the_inventory_says_state_bounds_and_size(store: LogStore) -> None:
    store.insert_many([event()])
    partitions.close(store.database, "events_2026_03")
    found = {p.name: p for p in partitions.inventory(store.database)}["events_2026_03"]
    assert (found.state, found.attached, found.pending, found.parent) == ("closed", True, False, "events")
    assert (found.lower, found.upper) == (START, START + timedelta(days=31))
    assert found.bytes > 0


def test_a_writer_that_waits_for_the_closing_is_refused_after_it(store: LogStore) -> None:
    store.insert_many([event()])
    outcome: list[BaseException | None] = []

    def write() -> None:
        try:
            store.insert_many([event("late")])
            outcome.append(None)
        except PartitionError as error:
            outcome.append(error)

    with store.database.connection() as closing:
        partitions._guard(closing, "events_2026_03", "ENABLE")
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(timeout=0.3)
        assert writer.is_alive(), "the writer should wait for the lock"
        closing.commit()
        writer.join(timeout=30)
    assert len(outcome) == 1 and isinstance(outcome[0], PartitionError)


def test_a_table_in_the_way_is_named(store: LogStore) -> None:
    with store.database.connection() as connection:
        connection.execute("CREATE TABLE events_2026_03 (x int)")
    with pytest.raises(PartitionError, match="events_2026_03 exists but is not part of events"):
        store.insert_many([event()])
