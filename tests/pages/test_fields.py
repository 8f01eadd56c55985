"""Fields: what a topic's payloads hold, what changed, how to filter on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

import logstore
from logstore import Event, filters
from tests.pages.conftest import Show, param, rows, run, said

Point = Callable[[str], None]


@pytest.fixture
def changing(workbench: Point, dsn: str, now: datetime) -> None:
    """A topic whose amount turned from a number into a text, and whose coupon went away."""
    with logstore.open(dsn, role="operator") as store:
        for number in range(20):
            old = number >= 10
            data = {"amount": 5 if old else "5.00", "it's": True, "mixed": 1 if number % 2 else "one"}
            if old:
                data["coupon"] = f"C-{number}"
            time = now - timedelta(days=10 if old else 1, minutes=number)
            store.insert_many([Event(id=f"e{number}", tenant_id="t", time=time, topic="paid", data=data)], [])
    workbench(dsn)


def test_the_fields_of_the_topic_in_the_link_are_listed(show: Show) -> None:
    app = show("Fields", topics="order.created")
    listed = {row["field"]: row for row in rows(app)}
    assert set(listed) == {"data.number", "metadata.region", "response_data.body"}
    assert (listed["data.number"]["types"], listed["metadata.region"]["distinct"]) == ("number", "1")
    assert "3 fields" in said(app)
    assert "all steady" in said(app)


def test_choosing_a_topic_writes_it_into_the_url(show: Show) -> None:
    app = show("Fields")
    app.selectbox(key="topic").select("user.updated").run()
    assert param(app, "topics") == ["user.updated"]


@pytest.mark.usefixtures("changing")
def test_a_changed_type_and_a_vanished_field_come_first_and_are_said_in_words() -> None:
    app = run("Fields", topics="paid")
    states = [(row["field"], row["state"]) for row in rows(app)]
    assert states == [
        ("data.amount", "▲ changed type"),
        ("data.coupon", "✘ vanished"),
        ("data.mixed", "▲ several types"),
        ("data.'it\\'s'", "✔ steady"),
    ]
    assert "1 changed its type" in said(app)
    assert "1 vanished" in said(app)


@pytest.mark.usefixtures("changing")
def test_a_field_that_changed_says_from_what_to_what_and_when() -> None:
    text = said(run("Fields", topics="paid", open="data.amount"))
    assert "now string, before number (string last seen 24 h ago; number last seen 10 days ago)" in text


@pytest.mark.usefixtures("changing")
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("data.amount", 'data.amount = "5.00"'),
        ("data.coupon", 'data.coupon = "C-10"'),
        ("data.'it\\'s'", "data.'it\\'s' = true"),
    ],
)
def test_an_open_field_shows_a_filter_that_finds_its_records_and_how_to_index_it(name: str, where: str) -> None:
    app = run("Fields", topics="paid", open=name)
    shown, command, _ = (code.value for code in app.code)  # the last is the notebook's cell
    assert shown == where
    filters.parse(shown, "event")
    assert command.startswith("python -m logstore index add paid ")


def test_an_indexed_field_says_so_and_offers_to_drop_the_index(workbench: Point, dsn: str, now: datetime) -> None:
    with logstore.open(dsn, role="operator") as store:
        event = Event(id="e", tenant_id="t", time=now, topic="paid", data={"kind": "a b"})
        store.insert_many([event], [])
        logstore.fields.add_index(store.database, "paid", "data", ("kind",), actor="test")
    workbench(dsn)
    app = run("Fields", topics="paid", open="data.kind")
    assert rows(app)[0]["index"] == "✔ indexed"
    assert app.code[-2].value == "python -m logstore index drop paid data.kind"


def test_an_index_that_is_being_built_says_which_months_are_to_do(workbench: Point, dsn: str, now: datetime) -> None:
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([Event(id="e", tenant_id="t", time=now, topic="paid", data={"kind": "a"})], [])
        logstore.fields.add_index(store.database, "paid", "data", ("kind",), actor="test")
        months = [p.name for p in logstore.partitions.inventory(store.database)]
        with store.database.connection(autocommit=True) as connection:  # as a run leaves it that was killed half-way
            connection.execute(f"DROP INDEX {logstore.fields.index_name('events', 'data', ('kind',))}")
    workbench(dsn)
    app = run("Fields", topics="paid", open="data.kind")
    events = [name for name in months if name.startswith("events")]
    assert rows(app)[0]["index"] == f"◌ {len(months) - len(events)} of {len(months)} months"
    assert events[0] in said(app) and "still to do" in said(app)
    assert app.code[-2].value == "python -m logstore index add paid data.kind"


def test_an_unknown_topic_or_field_is_a_sentence(show: Show) -> None:
    assert "No record has this topic" in said(show("Fields", topics="no.such"))
    assert "does not have" in said(show("Fields", topics="order.created", open="data.nothing"))


def test_an_empty_log_says_how_to_fill_it(workbench: Point, dsn: str) -> None:
    workbench(dsn)
    assert "python -m logstore demo" in run("Fields").code[0].value
