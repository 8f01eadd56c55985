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
from sqlalchemy import func, select, text

import logstore
from logstore import Attempt, Event, Selection, deadline, filters
from logstore.embedded import EmbeddedServer
from logstore.workbench import failures, fates, lasts, measures
from logstore.workbench.times import Window
from tests.conftest import new_database
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
    bars = fates.fates(filled, selection, window, zone)
    expected = Counter((_bar(starts, e.time, width), _fate(e)) for e in _chosen("event", RECORDS[0], selection, window))
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


def _fate(event: Event) -> str:
    reached: dict[str, bool] = defaultdict(bool)
    for attempt in RECORDS[1]:
        if attempt.event_id == event.id:
            reached[attempt.destination_id] |= attempt.status == "success"
    return "never attempted" if not reached else "delivered" if all(reached.values()) else "not delivered"


@settings(max_examples=8)
@given(window=windows, selection=st.sampled_from([Selection(), Selection(tenant_ids=("b",))]))
def test_rankings_and_totals_equal_a_plain_count(
    filled: logstore.LogStore, window: Window, selection: Selection
) -> None:
    inside = _chosen("attempt", RECORDS[1], selection, window)
    failed = [a for a in inside if a.status == "failed"]
    published = len(_chosen("event", RECORDS[0], selection, window))
    expected = measures.Totals(attempts=len(inside), failed=len(failed), events=published)
    assert measures.totals(filled, selection, window) == expected
    ranked = measures.ranking(filled, selection, window, by="tenant_id,destination_id")
    tries = Counter((a.tenant_id, a.destination_id) for a in inside)
    assert {(r.tenant_id, r.destination_id): r.attempts for r in ranked.itertuples()} == tries
    newest: dict[Any, datetime] = {}
    for a in sorted(inside, key=lambda a: a.time):
        newest[a.tenant_id, a.destination_id, a.status] = a.time
    seen, unread = lasts.seen(filled, selection, window)
    assert {(s.tenant_id, s.destination_id, s.status): s.time for s in seen} == newest
    assert not unread and not any(ranked["unread"])
    topics = measures.ranking(filled, selection, window, by="topic")
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
    found = failures.groups(filled, window, most=1000)
    assert len(found) == len(expected) == found.attrs["groups"]
    for row in found.itertuples():
        times_ = expected[row.tenant_id, row.destination_id, row.code, row.message]
        assert (row.failed, row.first, row.last) == (len(times_), min(times_), max(times_))
        places = Counter(int((t - window.lower) / (window.span / failures.POINTS)) for t in times_)
        assert [places[n] for n in range(failures.POINTS)] == row.trend
    assert list(found["failed"]) == sorted(found["failed"], reverse=True)


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


def test_a_count_that_takes_too_long_says_that_it_is_too_broad(store: logstore.LogStore) -> None:
    with pytest.raises(measures.TooBroad, match="narrow the time"), deadline.within(0.3):
        measures.count(store, select(func.pg_sleep(5)))


def test_counting_survives_a_connection_that_was_cut(store: logstore.LogStore) -> None:
    assert measures.extent(store, "event") is None
    with store.database.connection(autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert measures.count(store, select(text("1"))) == [(1,)]
