"""The catalog of fields, indexed fields and explanations: what payloads hold, and what a filter on them costs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from logstore import (
    InvalidFilter,
    InvalidSelection,
    LogStore,
    Selection,
    TimeFilter,
    archive,
    fields,
    filters,
    partitions,
)
from logstore.cold import Wanted
from logstore.cursor import Position, encode
from tests.records_of import START, attempt, event
from tests.test_plans import _indexes

TOPIC = "order.created"


def known(store: LogStore, topic: str | None = TOPIC) -> dict[str, fields.Field]:
    return {f.name: f for f in fields.catalogue(store.database, topic)}


def test_fields_are_noted_with_types_nulls_lengths_and_times(any_store: LogStore) -> None:
    later = START + timedelta(hours=1)
    any_store.insert_many(
        [
            event("e1", data={"amount": 5, "who": {"name": "Ann"}, "request-id": "r"}, metadata={"region": "eu"}),
            event("e2", data={"amount": "7", "who": None}, time=later),
        ],
        [attempt(response_data={"status": 500})],
    )
    found = known(any_store)
    assert found.keys() == {
        "data.amount",
        "data.who",
        "data.who.name",
        "data.'request-id'",
        "metadata.region",
        "response_data.status",
    }
    amount = found["data.amount"]
    assert set(amount.types) == {"number", "string"} and (amount.rows, amount.nulls) == (2, 0)
    assert (amount.first_seen, amount.last_seen, amount.longest, amount.distinct) == (START, later, 1, 2)
    assert found["data.who"].nulls == 1


def test_batches_add_up_and_distinct_values_are_about_right(store: LogStore) -> None:
    for batch in range(10):
        store.insert_many([event(f"e{batch}_{n}", data={"id": f"{batch}-{n}", "same": 1}) for n in range(100)])
    found = known(store)
    assert found["data.id"].rows == 1000
    assert 600 <= found["data.id"].distinct <= 1600
    assert found["data.same"].distinct == 1


def test_a_field_that_newer_records_do_not_have_is_called_vanished(store: LogStore) -> None:
    store.insert_many([event("e1", data={"old": 1, "kept": 1})])
    store.insert_many([event("e2", data={"kept": 1}, time=START + timedelta(days=3))])
    found = known(store)
    assert (found["data.old"].vanished, found["data.kept"].vanished) == (True, False)


def test_a_topic_gets_its_row_from_writing_and_never_from_reading(store: LogStore) -> None:
    store.list_event(Selection(topics=("only.asked",)))
    assert fields.topics(store.database) == []
    store.insert_many([event()])
    assert [t["name"] for t in fields.topics(store.database)] == [TOPIC]


def test_a_hostile_payload_does_not_flood_the_catalog(store: LogStore) -> None:
    deep: Any = 1
    for _ in range(50):
        deep = {"d": deep}
    store.insert_many([event(data={"deep": deep, **{f"k{n}": n for n in range(5000)}})])
    assert len(known(store)) < 300


def test_paths_are_bounded_per_payload_and_per_topic(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {f"k{n}": {f"i{m}": 1 for m in range(200)} for n in range(200)}
    store.insert_many([event(data={"deep": {"deeper": wide}, **{f"top{n}": n for n in range(100)}})])
    assert len(known(store)) == 200
    assert "data.top99" in known(store), "the outer ones first"
    monkeypatch.setattr(fields, "_TOPIC_PATHS", 250)
    for batch in range(5):
        store.insert_many([event(f"e{batch}", data={"top0": 1, **{f"new{batch}_{n}": 1 for n in range(30)}})])
    found = known(store)
    assert len(found) == 250
    assert found["data.top0"].rows == 6, "what is known is still counted"
    store.insert_many([event("other", topic="other.topic", data={"fits": 1})])
    assert known(store, "other.topic").keys() == {"data.fits"}


def test_long_keys_are_left_out_and_fail_nothing(any_store: LogStore) -> None:
    deep: Any = 1
    for number in range(6):
        deep = {chr(0x1F600 + number) * 200: deep}
    any_store.insert_many([event("e1", topic="t" * 512, data={"short": 1, "deep": deep})])
    assert len(any_store.list_event()) == 1
    found = known(any_store, "t" * 512)
    assert "data.short" in found
    assert max(len("".join(field.path).encode()) for field in found.values()) <= 1000


def test_a_batch_is_written_even_if_its_fields_cannot_be_noted(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise psycopg.errors.ProgramLimitExceeded("index row size 2800 exceeds btree version 4 maximum 2704")

    monkeypatch.setattr(fields, "note", fail)
    assert store.insert_many([event()]).events_inserted == 1
    assert len(store.list_event()) == 1
    assert "were not noted" in caplog.text


@pytest.fixture
def filled(any_store: LogStore) -> LogStore:
    """Two months of a topic, one customer in a thousand, some values too long for any index."""
    any_store.insert_many([event("first"), event("second", time=START + timedelta(days=31))])
    fill(any_store, 20_000)
    return any_store


def fill(store: LogStore, rows: int) -> None:
    with store.database.connection(autocommit=True) as connection:
        connection.execute(
            "INSERT INTO events SELECT 'evt_' || n, 'tenant_' || n %% 5, '', %s::timestamptz + n * %s, 'order.created',"
            " true, jsonb_build_object('customer', 'c' || n %% 1000, 'we\"ird', 'x' || n %% 10), '{}'"
            " FROM generate_series(1, %s) n",
            [START, timedelta(days=55) / rows, rows],
        )
        connection.execute("VACUUM ANALYZE events")


WHERE = 'data.customer = "c77"'


def ids(store: LogStore, where: str, **more: Any) -> list[str]:
    return [e.id for e in store.list_event(Selection(topics=(TOPIC,), where=where, **more), limit=1000)]


def test_an_index_changes_the_cost_and_not_the_answer(filled: LogStore) -> None:
    before = {
        where: ids(filled, where)
        for where in (WHERE, f"not {WHERE}", 'data.\'we"ird\' = "x3" and data.customer = "c3"')
    }
    assert len(before[WHERE]) == 20
    fields.add_index(filled.database, TOPIC, "data", ("customer",), actor="test")
    fields.add_index(filled.database, TOPIC, "data", ('we"ird',), actor="test")
    assert {where: ids(filled, where) for where in before} == before
    assert known(filled).get("data.n") is not None
    assert "served by its field index" in filled.explain(Selection(topics=(TOPIC,), where=WHERE), "event").index


def test_a_value_too_long_for_the_index_still_inserts_and_is_found(filled: LogStore) -> None:
    fields.add_index(filled.database, TOPIC, "data", ("customer",), actor="test")
    long = "x" * 5000
    filled.insert_many([event("long", data={"customer": long})])
    assert ids(filled, f'data.customer = "{long[:3000]}"') == []
    assert ids(filled, 'data.customer startswith "xxx"') == ["long"]
    assert ids(filled, f'data.customer = "{"x" * 1025}" or id = "long"') == ["long"]


def test_new_and_restored_months_get_the_index_too(filled: LogStore) -> None:
    fields.add_index(filled.database, TOPIC, "data", ("customer",), actor="test")
    filled.insert_many([event("may", time=START + timedelta(days=70), data={"customer": "c77"})])
    archive.export(filled, "events_2026_03")
    archive.flip(filled, "events_2026_03")
    partitions.detach(filled.database, "events_2026_03")
    partitions.drop(filled.database, "events_2026_03")
    assert len(ids(filled, WHERE)) == 21
    archive.restore(filled, "events_2026_03")
    assert len(ids(filled, WHERE)) == 21
    name = fields.index_name("events", "data", ("customer",))
    with filled.database.connection() as connection:
        months, parts, valid = connection.execute(
            "SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass),"
            " (SELECT count(*) FROM pg_inherits WHERE inhparent = %s::regclass),"
            " (SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass)",
            [name, name],
        ).fetchone() or (0, 0, False)
    assert (months, valid) == (parts, True)


def test_a_page_on_an_indexed_field_costs_the_same_at_two_million_rows(store: LogStore) -> None:
    store.insert_many([event("first"), event("second", time=START + timedelta(days=31))])
    fields.add_index(store.database, TOPIC, "data", ("customer",), actor="test")
    buffers = []
    for rows in (20_000, 2_000_000):
        with _without_indexes(store) as connection:
            connection.execute("TRUNCATE events")
            fill(store, rows)
        buffers.append(_buffers(store))
    with store.database.connection() as connection:
        connection.execute("TRUNCATE events")  # half a gigabyte that no later test needs
    assert buffers[1] <= buffers[0] * 1.5 + 10, buffers


@contextlib.contextmanager
def _without_indexes(store: LogStore) -> Iterator[psycopg.Connection[Any]]:
    """Fill the table without what slows it down; afterwards it has all its indexes and triggers again."""
    with store.database.connection(autocommit=True) as connection:
        indexes = connection.execute(
            "SELECT c.relname, replace(pg_get_indexdef(c.oid), ' ON ONLY ', ' ON ') FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'events'::regclass AND NOT i.indisprimary"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        connection.execute("ALTER TABLE events DISABLE TRIGGER USER")
        yield connection
        connection.execute("ALTER TABLE events ENABLE TRIGGER USER")
        connection.execute("SET maintenance_work_mem = '256MB'")
        for _, definition in indexes:
            connection.execute(definition)
        connection.execute("ANALYZE events")


def _buffers(store: LogStore) -> int:
    tree = filters.parse(WHERE, "event")
    with store.database.connection(autocommit=True) as connection:
        asked = store.tiers.ask(connection, Wanted("event", Selection(topics=(TOPIC,)), tree), 11)
        text, values = asked.sql()
        row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", values).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    assert not any(name.startswith(("tenant", "id_", "pkey")) for name in _indexes(plan)), plan
    assert plan["Actual Rows"] == 11
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


BUILD = """
import sys, logstore
from logstore import fields
with logstore.open(sys.argv[1], role="operator") as store:
    tell = lambda done, total: print(done, flush=True)
    fields.add_index(store.database, "order.created", "data", ("customer",), actor="t", progress=tell)
"""


def test_a_build_that_was_killed_goes_on_where_it_was(filled: LogStore) -> None:
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILD, filled.database.conninfo], stdout=subprocess.PIPE, text=True
    )
    assert builder.stdout is not None
    builder.stdout.readline()
    builder.kill()
    builder.communicate(timeout=30)
    assert len(ids(filled, WHERE)) == 20, "a half-made index never changes an answer"
    wait_until(lambda: _backends(filled) == 0)
    fields.add_index(filled.database, TOPIC, "data", ("customer",), actor="test")
    assert len(ids(filled, WHERE)) == 20
    with filled.database.connection() as connection:
        assert connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() == (0,)


def _backends(store: LogStore) -> int:
    with store.database.connection() as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND datname = current_database()"
            " AND state <> 'idle'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within ten seconds")


def test_writers_go_on_while_an_index_is_built(filled: LogStore) -> None:
    done = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        n = 0
        while not done.is_set():
            n += 1
            try:
                filled.insert_many(
                    [event(f"during{n}", time=START + timedelta(days=1, seconds=n), data={"customer": "c77"})]
                )
            except psycopg.Error as error:
                failures.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    fields.add_index(filled.database, TOPIC, "data", ("customer",), actor="test")
    done.set()
    writer.join(timeout=30)
    assert not failures
    written = len(
        [i for i in (e.id for e in filled.list_event(Selection(where=WHERE), limit=1000)) if i.startswith("during")]
    )
    assert written == len([i for i in ids(filled, WHERE) if i.startswith("during")]) > 0


def test_dropping_is_audited_and_keeps_an_index_that_another_topic_wants(filled: LogStore) -> None:
    filled.insert_many([event("other", topic="other.topic", data={"customer": "c77"})])
    for topic in (TOPIC, "other.topic"):
        fields.add_index(filled.database, topic, "data", ("customer",), actor="ann")
    name = fields.index_name("events", "data", ("customer",))

    def exists() -> bool:
        with filled.database.connection() as connection:
            return connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone() == (True,)

    fields.drop_index(filled.database, TOPIC, "data", ("customer",), actor="bob")
    assert exists()
    fields.drop_index(filled.database, "other.topic", "data", ("customer",), actor="bob")
    assert not exists()
    with filled.database.connection() as connection:
        changes = connection.execute("SELECT topic, actor FROM topic_changes ORDER BY id").fetchall()
        assert changes == [(TOPIC, "ann"), ("other.topic", "ann"), (TOPIC, "bob"), ("other.topic", "bob")]
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            connection.execute("DELETE FROM topic_changes")


def test_an_unknown_topic_or_a_whole_column_cannot_be_indexed(store: LogStore) -> None:
    with pytest.raises(InvalidSelection, match="no topic"):
        fields.add_index(store.database, "nothing", "data", ("x",), actor="t")
    with pytest.raises(InvalidSelection, match="inside data"):
        fields.add_index(store.database, "nothing", "data", (), actor="t")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ('not data.customer = "c1"', "negated"),
        ("data.customer = 5", "in quotes"),
        ('data.customer startswith "c"', "serve ="),
        (f'data.customer = "{"x" * 2000}"', "longer than 1024"),
        ('data.other = "x"', "not indexed"),
    ],
)
def test_an_explanation_says_why_no_index_serves(store: LogStore, where: str, reason: str) -> None:
    store.insert_many([event()])
    fields.add_index(store.database, TOPIC, "data", ("customer",), actor="t")
    assert reason in store.explain(Selection(topics=(TOPIC,), where=where), "event").index


def test_an_explanation_counts_what_is_pruned(store: LogStore) -> None:
    store.insert_many(attempts=[attempt(f"a{n}", time=START + timedelta(days=28 * n)) for n in range(6)])
    for name in ("attempts_2026_03", "attempts_2026_04"):
        archive.export(store, name)
        archive.flip(store, name)
    found = store.explain(Selection(time=TimeFilter(gte=START + timedelta(days=40)), where="manual = true"))
    assert (found.segments_read, found.segments_pruned) == (1, 1)
    assert found.tree == "manual = true"
    assert "LIMIT 101" in found.postgres and "?" in found.duckdb
    assert "<script>" not in store.explain(Selection(where='topic = "<script>"'))._repr_html_()


def test_a_filter_with_a_mistake_names_its_column(store: LogStore) -> None:
    with pytest.raises(InvalidFilter) as mistake:
        store.list_event(Selection(where="topic = bar"))
    assert mistake.value.column == 9
    token = encode("event", Position(START, "x"))
    with pytest.raises(InvalidFilter):
        store.list_event(Selection(where="(topic = "), next=token)
