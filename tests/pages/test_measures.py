"""Counts over the whole range and both tiers agree with a plain count of the records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logstore
from logstore import Attempt, Event, Selection, archive, deadline, filters, metrics
from logstore.embedded import EmbeddedServer
from logstore.errors import TooBroad
from logstore.metrics import result
from logstore.workbench.counts import (
    archived_rows,
    last_times,
    lookups,
    measures,
    page_outcomes,
    range_outcomes,
    rankings,
)
from logstore.workbench.destinations import health
from logstore.workbench.overview import failure_groups
from logstore.workbench.times import Window
from tests.conftest import new_database
from tests.records_of import attempt, event
from tests.test_archive import make_cold

START, END = datetime(2026, 1, 25, 3, 7, tzinfo=UTC), datetime(2026, 3, 9, 17, 40, 3, tzinfo=UTC)
ZONES: tuple[tzinfo, ...] = (UTC, ZoneInfo("Asia/Kolkata"), ZoneInfo("America/New_York"))
Records = tuple[list[Event], list[Attempt]]


def records() -> Records:
    """300 events over six weeks; some are tried at two destinations, some a month after they happened, some never."""
    dice = Random(7)
    events, attempts = [], []
    for number in range(300):
        time = START + dice.random() * (END - START)
        event = Event(
            id=f"e{number}",
            tenant_id=dice.choice("ab"),
            time=time,
            topic=dice.choice(["t1", "t2"]),
            data={"n": number % 5},
        )
        events.append(event)
        for destination in dice.choice([[], ["d1"], ["d1", "d2"]]):
            for try_ in range(dice.choice([1, 1, 2])):
                status = dice.choice(["success", "failed"])
                attempts.append(
                    Attempt.of(
                        event,
                        id=f"a{len(attempts)}",
                        destination_id=destination,
                        status=status,
                        time=time + dice.choice([timedelta(seconds=2), timedelta(hours=3), timedelta(days=28)]),
                        attempt_number=try_ + 1,
                        code="200" if status == "success" else dice.choice(["500", "503", None]),
                        response_data=dice.choice([{"error": "no answer"}, {"body": "<h1>Oops</h1>"}, "text", None]),
                    )
                )
    return events, attempts


RECORDS = records()


@pytest.fixture(scope="module", params=["hot", "both", "purged"])
def filled(
    request: pytest.FixtureRequest, server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[logstore.LogStore]:
    """The records, all in PostgreSQL, or the older months in files."""
    home: Path = tmp_path_factory.mktemp("home")
    with logstore.open(new_database(server), role="operator", home=home) as store:
        store.insert_many(*RECORDS)
        cold = {"hot": [], "both": ["events_2026_01", "attempts_2026_01", "attempts_2026_02"]}
        names = cold.get(request.param, [f"{p}_2026_{m}" for p in ("events", "attempts") for m in ("01", "02")])
        for name in names:
            make_cold(store, name, depth="cold" if request.param == "both" else "purged", segment_rows=40)
        yield store


windows = st.builds(
    lambda lower, span: Window(lower, lower + span),
    st.datetimes(START.replace(tzinfo=None), END.replace(tzinfo=None)).map(lambda t: t.replace(tzinfo=UTC)),
    st.timedeltas(timedelta(microseconds=1), timedelta(days=45))
    | st.sampled_from([timedelta(days=7), timedelta(hours=1)]),
)
chosen = st.sampled_from(
    [
        Selection(),
        Selection(tenant_ids=("a",)),
        Selection(topics=("t1",), tenant_ids=("a", "b")),
        Selection(event_ids=("e1", "e2", "e3")),
        Selection(where="data.n < 2"),
    ]
)


@settings(max_examples=12)
@given(window=windows, selection=chosen, zone=st.sampled_from(ZONES))
def test_bars_equal_a_plain_count(
    filled: logstore.LogStore, window: Window, selection: Selection, zone: tzinfo
) -> None:
    for kind, listed in (("attempt", RECORDS[1]), ("event", RECORDS[0])):
        bars = measures.histogram(filled, kind, selection, window, zone)  # type: ignore[arg-type]
        width, starts = bars.attrs["width"], sorted(set(bars["start"]))
        assert starts[0] <= window.lower and starts[-1] < window.upper <= starts[-1] + width
        inside = _chosen(kind, listed, selection, window)
        expected = Counter((_bar(starts, r.time, width), getattr(r, "status", "published")) for r in inside)
        assert _counted(bars) == expected
    bars = range_outcomes.outcomes(filled, selection, window, zone)
    expected = Counter(
        (_bar(starts, e.time, width), _outcome(e)) for e in _chosen("event", RECORDS[0], selection, window)
    )
    assert _counted(bars) == expected
    assert bars.attrs["warnings"] == ()


def _chosen(kind: Any, listed: list[Any], selection: Selection, window: Window) -> list[Any]:
    tree = None if selection.where is None else filters.parse(selection.where, kind)
    found = [r for r in listed if window.lower <= r.time < window.upper]
    found = [r for r in found if not selection.tenant_ids or r.tenant_id in selection.tenant_ids]
    found = [r for r in found if not selection.topics or r.topic in selection.topics]
    found = [r for r in found if not selection.event_ids or getattr(r, "event_id", r.id) in selection.event_ids]
    return [r for r in found if tree is None or filters.matches(tree, r)]


def _bar(starts: list[datetime], time: datetime, width: timedelta) -> datetime:
    return next(start for start in starts if start <= time < start + width)


def _counted(bars: Any) -> dict[Any, int]:
    return {(start, outcome): n for start, outcome, n in bars.itertuples(index=False) if n}


def _outcome(event: Event) -> str:
    reached: dict[str, bool] = defaultdict(bool)
    for a in RECORDS[1]:
        if a.event_id == event.id:
            reached[a.destination_id] |= a.status == "success"
    return "never attempted" if not reached else "delivered" if all(reached.values()) else "not delivered"


@settings(max_examples=8)
@given(window=windows, selection=st.sampled_from([Selection(), Selection(tenant_ids=("b",))]))
def test_rankings_and_totals_equal_a_plain_count(
    filled: logstore.LogStore, window: Window, selection: Selection
) -> None:
    inside = _chosen("attempt", RECORDS[1], selection, window)
    failed = [a for a in inside if a.status == "failed"]
    found = rankings.totals(filled, selection, window)
    published = len(_chosen("event", RECORDS[0], selection, window))
    assert (found.events, found.attempts, found.failed) == (published, len(inside), len(failed))
    assert not found.warnings
    ranked = rankings.ranking(filled, selection, window, by="tenant_id,destination_id")
    tries = Counter((a.tenant_id, a.destination_id) for a in inside)
    assert {(r.tenant_id, r.destination_id): r.attempts for r in ranked.itertuples()} == tries
    newest: dict[Any, datetime] = {}
    for a in sorted(inside, key=lambda a: a.time):
        newest[a.tenant_id, a.destination_id, a.status] = a.time
    seen, unread = last_times.seen(filled, selection, window)
    assert {(s.tenant_id, s.destination_id, s.status): s.time for s in seen} == newest
    assert not unread and not any(ranked["unread"])
    if selection == Selection():
        tenants, destinations = rankings.tenants_and_destinations(filled, window)
        assert destinations.equals(ranked)
        assert tenants.equals(rankings.ranking(filled, selection, window, by="tenant_id"))
    topics = rankings.ranking(filled, selection, window, by="topic")
    assert dict(zip(topics["topic"], topics["failed"], strict=True)) == {
        topic: sum(a.topic == topic for a in failed) for topic in {a.topic for a in inside}
    }


def test_failures_are_grouped_by_destination_code_and_message(filled: logstore.LogStore) -> None:
    window = Window(START + timedelta(days=2), END)
    failed = [a for a in _chosen("attempt", RECORDS[1], Selection(), window) if a.status == "failed"]
    said = {"{'error': 'no answer'}": "no answer", "{'body': '<h1>Oops</h1>'}": "Oops", "text": "text", "None": ""}
    expected = defaultdict(list)
    for a in failed:
        expected[a.tenant_id, a.destination_id, a.code, said[str(a.response_data)]].append(a.time)
    found = failure_groups.groups(filled, window, most=1000)
    assert len(found) == len(expected) == found.attrs["groups"]
    for row in found.itertuples():
        times_ = expected[row.tenant_id, row.destination_id, row.code, row.message]
        assert (row.failed, row.first, row.last) == (len(times_), min(times_), max(times_))
        places = Counter(int((t - window.lower) / (window.span / failure_groups.POINTS)) for t in times_)
        assert [places[n] for n in range(failure_groups.POINTS)] == row.trend
    assert list(found["failed"]) == sorted(found["failed"], reverse=True)


def test_many_failing_destinations_keep_their_whole_totals_and_trends(
    store: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit cuts groups, and never the buckets of one."""
    store.insert_many([], [_failed(number, destination) for number in range(60) for destination in ("d1", "d2", "d3")])
    make_cold(store, "attempts_2026_01", segment_rows=500)
    monkeypatch.setattr(failure_groups, "MOST", 4)
    found = failure_groups.groups(store, Window(START, START + timedelta(hours=60)), most=10)
    assert list(found["failed"]) == [60, 60, 60]
    assert all(trend == [3] * failure_groups.POINTS for trend in found["trend"])
    assert set(found["last"]) == {START + timedelta(hours=59)} and not found.attrs["cut"]
    monkeypatch.setattr(failure_groups, "MOST", 2)
    assert failure_groups.groups(store, Window(START, START + timedelta(hours=60)), most=10).attrs["cut"]


def _failed(number: int, destination: str, **fields: Any) -> Attempt:
    time = START + timedelta(hours=number)
    given = {"status": "failed", "code": "500", "response_data": {"error": "no"}, "destination_id": destination}
    return attempt(f"{destination}-{number}", time=time, event_time=time, **{**given, **fields})


def test_the_filter_of_a_group_finds_exactly_its_attempts(filled: logstore.LogStore) -> None:
    window = Window(START + timedelta(days=2), END)
    found = failure_groups.groups(filled, window, most=1000)
    said = [row for row in found.itertuples() if row.message in ("no answer", "Oops")]
    assert said
    for row in said:
        chosen = Selection(tenant_ids=(row.tenant_id,), destination_ids=(row.destination_id,), status="failed")
        counted = measures.measured(filled, "attempt", chosen.but(where=row.where), window)
        assert counted.rows == ((row.failed,),)


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({("error", "no")}, 'code = "500" and response_data.error = "no"'),
        ({("body", 'say "a"'), ("body", "b")}, 'code = "500" and response_data.body in ["b", "say \\"a\\""]'),
        ({("error", "no"), ("body", "no")}, 'code = "500"'),  # two fields, which no comparison names
        ({(None, "17")}, 'code = "500"'),  # no text in JSON
        ({("error", "x" * 301)}, 'code = "500"'),
    ],
)
def test_a_group_names_its_message_where_an_expression_can_say_it(said: set[Any], where: str) -> None:
    assert failure_groups._where("500", said) == where
    filters.parse(where, "attempt")
    assert failure_groups._where(None, set()).startswith("not code exists")


# What cannot be read


@pytest.fixture
def with_a_hole(store: logstore.LogStore) -> logstore.LogStore:
    """An event and its attempt an hour, 60 of them, in six files, of which the third is gone."""
    events = [event(f"e{number}", time=START + timedelta(hours=number)) for number in range(60)]
    tries = [_failed(number, f"d{number % 3}", event_id=f"e{number}", status="success") for number in range(60)]
    store.insert_many(events, tries)
    make_cold(store, "attempts_2026_01", segment_rows=10)
    sorted(store.settings.archive.rglob("*.parquet"))[2].unlink()
    return store


def test_an_event_whose_attempts_may_be_in_a_lost_file_is_unknown_and_the_others_are_not(
    with_a_hole: logstore.LogStore,
) -> None:
    found = page_outcomes.outcomes(with_a_hole, with_a_hole.list_event(limit=100))
    lost = {("acme", f"e{number}") for number in range(20, 30)}
    assert set(found) == {("acme", f"e{number}") for number in range(60)} - lost
    assert all(reached == [True] for reached in found.values())
    # What was delivered the day before may have had another destination, tried for the first time in the lost hours.
    assert lost <= found.unknown <= {("acme", f"e{number}") for number in range(30)}
    assert len(found.warnings) == 1 and "10 attempts from 2026-01-25T23:07:00Z" in found.warnings[0]


def test_a_quarantined_file_is_a_hole_as_well(with_a_hole: logstore.LogStore) -> None:
    archive.verify(with_a_hole)
    found = page_outcomes.outcomes(with_a_hole, with_a_hole.list_event(limit=100))
    assert ("acme", "e25") in found.unknown and len(found.warnings) == 1


def test_outcomes_end_with_their_time(with_a_hole: logstore.LogStore) -> None:
    page = with_a_hole.list_event(limit=100)
    with pytest.raises(TooBroad), deadline.within(1e-9):
        page_outcomes.outcomes(with_a_hole, page)


def test_one_reading_of_a_file_tells_when_all_destinations_last_answered(
    store: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many([], [_failed(number, f"d{number % 15}") for number in range(60)])
    make_cold(store, "attempts_2026_01", segment_rows=20)
    read: list[str] = []
    rows = archived_rows.rows
    monkeypatch.setattr(archived_rows, "rows", lambda *given: read.append(given[1].segment_id) or rows(*given))
    seen, unread = last_times.seen(store, Selection(), Window(START, END))
    assert {s.destination_id: s.time for s in seen} == {f"d{n % 15}": START + timedelta(hours=n) for n in range(45, 60)}
    assert (len(read), unread) == (1, []), "all of them answered in the last file"


def test_a_last_answer_in_a_lost_file_is_unknown_and_not_never(with_a_hole: logstore.LogStore) -> None:
    lower = START + timedelta(hours=20)
    ranked = rankings.ranking(
        with_a_hole, Selection(), Window(lower, lower + timedelta(hours=10)), by="tenant_id,destination_id"
    )
    assert ranked.attrs["warnings"]
    assert all(unread == {"success"} for unread in ranked["unread"])
    assert not ranked["last_success"].any()


def test_totals_and_codes_say_what_they_lack(with_a_hole: logstore.LogStore) -> None:
    """At the edges of a range the records are read, and some of them cannot be."""
    window = Window(START + timedelta(hours=20, minutes=30), START + timedelta(hours=50))
    assert "cannot be read" in rankings.totals(with_a_hole, Selection(), window).warnings[0]
    of = Selection(tenant_ids=("acme",), destination_ids=("d0",))
    assert health.health(with_a_hole, of, window).warnings
    assert health.codes(with_a_hole, of, window).attrs["warnings"]
    assert health.everybody(with_a_hole, window)["tenant_id"].warnings
    assert health.ranked(with_a_hole, Selection(tenant_ids=("acme",)), window).warnings


def test_a_month_without_counts_leaves_the_last_answers_unknown(with_a_hole: logstore.LogStore) -> None:
    with with_a_hole.database.transaction() as connection:
        metrics.doubt(connection, "attempts", START.date().replace(day=1))
    ranked = rankings.ranking(with_a_hole, Selection(), Window(START, END), by="tenant_id")
    assert set(ranked["unread"][0]) == {"success"}


# Very many records


def test_what_reads_very_many_records_waits_until_somebody_asks(
    filled: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Window(START, END)
    monkeypatch.setattr(measures, "READ_MOST", 100)
    published = range_outcomes.outcomes(filled, Selection(), window, UTC)
    assert set(published["outcome"]) == {"published"} and published["count"].sum() == 300
    assert set(range_outcomes.outcomes(filled, Selection(), window, UTC, everything=True)["outcome"]) == set(
        range_outcomes.OUTCOMES
    )
    few = Window(START, START + timedelta(days=5))
    assert set(range_outcomes.outcomes(filled, Selection(), few, UTC)["outcome"]) == set(range_outcomes.OUTCOMES)


def test_quiet_times_are_bars_of_zero(filled: logstore.LogStore) -> None:
    bars = measures.histogram(filled, "attempt", Selection(), Window(START - timedelta(days=60), START), UTC)
    assert len(bars) > 100 and (bars["count"] == 0).all()


@pytest.mark.parametrize(
    ("selection", "zone", "quick"),
    [
        (Selection(), "UTC", True),
        (Selection(tenant_ids=("a",), status="failed"), "America/New_York", True),
        (Selection(), "Asia/Kolkata", False),  # half an hour off: no roll-up has its bars
        (Selection(topics=("t1",)), "UTC", False),
        (Selection(where="data.n = 1"), "UTC", False),
    ],
)
def test_a_week_needs_no_scan_where_the_roll_ups_know_enough(selection: Selection, zone: str, quick: bool) -> None:
    window = Window(END - timedelta(days=7), END)
    assert measures.quick("attempt", selection, window, ZoneInfo(zone)) is quick


def test_a_ranking_of_too_many_groups_goes_without_codes_and_says_so(
    filled: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tenants, two destinations and two outcomes are 8 groups; by code they are 16."""
    asked: dict[str, Any] = {"selection": Selection(), "window": Window(START, END)}
    whole = rankings.ranking(filled, **asked, by="tenant_id,destination_id")
    monkeypatch.setattr(result, "ROWS_MOST", 10)
    ranked = rankings.ranking(filled, **asked, by="tenant_id,destination_id")
    columns = ["tenant_id", "destination_id", "attempts", "failed", "last_failure"]
    assert ranked[columns].equals(whole[columns])
    assert all(whole["codes"]) and not any(ranked["codes"])
    assert "codes of failures" in ranked.attrs["warnings"][0] and not whole.attrs["warnings"]


def test_totals_do_not_depend_on_how_many_destinations_there_are(
    filled: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "ROWS_MOST", 3)
    with pytest.raises(TooBroad, match="Too many to rank: narrow the time or choose a tenant"):
        rankings.ranking(filled, Selection(), Window(START, END), by="tenant_id,destination_id")
    found = rankings.totals(filled, Selection(), Window(START, END))
    assert (found.events, found.attempts) == (len(RECORDS[0]), len([a for a in RECORDS[1] if a.time < END]))


def test_looking_up_survives_a_connection_that_was_cut(store: logstore.LogStore) -> None:
    assert lookups.extent(store, "event") is None
    with store.database.connection(autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert lookups.extent(store, "attempt") is None
