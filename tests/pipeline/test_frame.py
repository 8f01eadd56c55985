"""The log as a data frame: the same records that pages show, in pieces, with predicates where the rows are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo
from pyspark.sql import SparkSession

import logstore
from logstore import InvalidSelection, Selection, TimeFilter, Unimplemented, archive, partitions, pipeline
from logstore.cold import Wanted
from logstore.pipeline import frame

from ..conftest import new_database
from .files import attempt, event
from .test_load import _records

pytestmark = pytest.mark.spark

FEBRUARY = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def filled(server: Any) -> Iterator[logstore.LogStore]:
    hostile = {"id": 'a"b,c\nd', "tenant_id": "", "topic": "\\N", "data": {"é": None, "t": "line\nbreak"}}
    with logstore.open(new_database(server), role="operator") as store:
        rows = [event(n) for n in range(200)] + [attempt(n) for n in range(200)]
        rows.append({**event(900), **hostile, "tenant_id": "NULL"})
        rows.append(attempt(901, code="", destination_id="", response_data={"a": '"'}))
        store.insert_many(*_records(rows))
        yield store


def expected(store: logstore.LogStore, kind: str, selection: Selection) -> list[dict[str, Any]]:
    ask: Any = store.list_event if kind == "event" else store.list_attempt
    return sorted((record.to_dict() for record in ask(selection, limit=1000)), key=lambda row: row["id"])


def found(rows: list[Any]) -> list[dict[str, Any]]:
    """Rows as records write themselves."""
    plain = []
    for row in rows:
        values = row.asDict()
        for name, value in values.items():
            if isinstance(value, datetime):
                values[name] = value.replace(tzinfo=UTC).isoformat() if value.tzinfo is None else value.isoformat()
            elif name.endswith("data") and value is not None:
                values[name] = json.loads(value)
        plain.append(values)
    return sorted(plain, key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("kind", "selection"),
    [
        ("event", Selection()),
        ("attempt", Selection()),
        ("event", Selection(topics=("order.paid", "\\N"))),
        ("event", Selection(event_ids=('a"b,c\nd',))),
        ("attempt", Selection(tenant_ids=("tenant_1", "tenant_2"), status="failed")),
        ("attempt", Selection(destination_ids=("",))),
        ("attempt", Selection(time=TimeFilter(gte=FEBRUARY))),
        ("attempt", Selection(time=TimeFilter(lt=FEBRUARY), topics=("order.paid",))),
        ("attempt", Selection(where='data.n >= 150 and metadata.region = "eu"')),
        ("attempt", Selection(tenant_ids=("nobody",))),
        ("event", Selection(time=TimeFilter(gt=datetime(2030, 1, 1, tzinfo=UTC)))),
    ],
)  # fmt: skip
def test_a_frame_holds_what_a_page_shows(
    filled: logstore.LogStore, spark: SparkSession, kind: Any, selection: Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    rows = pipeline.records(spark, filled, selection, kind=kind).collect()
    assert found(rows) == expected(filled, kind, selection)


def test_a_month_is_read_in_pieces_and_only_months_that_matter(
    filled: logstore.LogStore, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled.database.connection(autocommit=True) as connection:
        connection.execute("ANALYZE attempts")
    monkeypatch.setattr(frame, "_PIECE_ROWS", 40)
    known = filled.tiers.refresh()
    whole = list(frame._hot(filled, Wanted("attempt", Selection()), known))
    february = list(frame._hot(filled, Wanted("attempt", Selection(time=TimeFilter(gte=FEBRUARY))), known))
    assert len(february) >= 2
    assert len(whole) > len(february)
    assert pipeline.records(spark, filled).count() == 201


def test_what_makes_no_sense_is_refused(filled: logstore.LogStore, spark: SparkSession) -> None:
    with pytest.raises(InvalidSelection, match="no status"):
        pipeline.records(spark, filled, Selection(status="failed"), kind="event")
    with pytest.raises(Unimplemented, match="destination-agnostic"):
        pipeline.records(spark, filled, Selection(destination_ids=("d",)), kind="event")


def test_a_month_that_has_left_by_the_time_it_is_read_fails_the_job(
    store: logstore.LogStore, spark: SparkSession
) -> None:
    store.insert_many(*_records([event(1)]))
    planned = pipeline.records(spark, store, kind="event")
    with store.database.connection() as connection:
        connection.execute("ALTER TABLE events DETACH PARTITION events_2026_01")
        partitions.note(connection, "events", partitions.parse_name("events_2026_01")[1], "cold")
    with pytest.raises(Exception, match="moved while it was read"):
        planned.collect()


def to_cold(store: logstore.LogStore, name: str) -> None:
    archive.export(store, name)
    archive.flip(store, name)
    partitions.detach(store.database, name)


@pytest.mark.parametrize("kind", ["event", "attempt"])
def test_a_frame_reads_cold_months_and_ranges_over_both_tiers(
    store: logstore.LogStore, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    store.insert_many(*_records([event(n) for n in range(200)] + [attempt(n) for n in range(200)]))
    asked = [
        Selection(),
        Selection(time=TimeFilter(lt=FEBRUARY)),
        Selection(time=TimeFilter(gte=datetime(2026, 1, 31, 20, tzinfo=UTC)), tenant_ids=("tenant_1", "tenant_5")),
        Selection(where='data.n >= 50 and metadata.region = "eu"'),
    ]
    before = [expected(store, kind, selection) for selection in asked]
    assert all(before)
    for parent in ("events", "attempts"):
        to_cold(store, f"{parent}_2026_01")
    # A sealed copy of a month that PostgreSQL still serves must not be read beside it.
    archive.export(store, "attempts_2026_02")
    tiers = {type(piece) for piece in pieces(store, kind)}
    assert tiers == {frame.Hot, frame.Cold}
    for selection, rows in zip(asked, before, strict=True):
        assert found(pipeline.records(spark, store, selection, kind=kind).collect()) == rows


def pieces(store: logstore.LogStore, kind: Any) -> list[Any]:
    known, wanted = store.tiers.refresh(), Wanted(kind, Selection())
    return [*frame._hot(store, wanted, known), *frame._cold(store, wanted, known)]


@pytest.mark.parametrize("back", [True, False], ids=["restored", "archived"])
def test_a_month_that_moves_between_the_two_looks_is_read_once(
    store: logstore.LogStore, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    store.insert_many(*_records([event(n) for n in range(200)]))
    if back:
        to_cold(store, "events_2026_01")
    hot, moved = frame._hot, []

    def move_after(*arguments: Any) -> list[Any]:
        planned = list(hot(*arguments))
        if not moved:
            moved.append(True)
            if back:
                archive.restore(store, "events_2026_01")
            else:
                to_cold(store, "events_2026_01")
        return planned

    monkeypatch.setattr(frame, "_hot", move_after)
    assert pipeline.records(spark, store, kind="event").count() == 200


def test_options_of_the_address_are_kept(
    store: logstore.LogStore, open_store: Any, spark: SparkSession, dsn: str
) -> None:
    store.insert_many(*_records([event(1)]))
    with store.database.connection(autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute("ALTER TABLE events SET SCHEMA other")
    other = open_store(make_conninfo(dsn, options="-c search_path=public,other"))
    assert pipeline.records(spark, other, kind="event").count() == 1
