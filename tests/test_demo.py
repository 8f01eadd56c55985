"""The sample data: the same for the same arguments, true to the rules of delivery, and with its incidents in sight."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from pathlib import Path

import pytest

from logstore import demo
from logstore.errors import InvalidSelection
from logstore.records import Attempt, Event

END = datetime(2026, 8, 20, 15, 30, tzinfo=UTC)
SPECIAL = demo.incidents(end=END)
Stream = list[tuple[Event, list[Attempt]]]


@pytest.fixture(scope="module")
def stream() -> Stream:
    return list(demo.events_and_attempts(end=END))


@pytest.fixture(scope="module")
def attempts(stream: Stream) -> list[Attempt]:
    return [attempt for _, made in stream for attempt in made]


@pytest.fixture(scope="module")
def deliveries(attempts: list[Attempt]) -> dict[tuple[str, str], list[Attempt]]:
    """The attempts of every (event, destination), by their number."""
    found: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in sorted(attempts, key=lambda attempt: attempt.attempt_number):
        found[attempt.event_id, attempt.destination_id].append(attempt)
    return found


def lines(paths: Iterable[Path]) -> list[str]:
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def failed_share(attempts: list[Attempt]) -> float:
    return sum(attempt.status == "failed" for attempt in attempts) / len(attempts)


def test_the_same_arguments_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    program = "import sys; from datetime import *; from logstore import demo; "
    program += "demo.write(sys.argv[1], events=300, end=datetime(2026, 8, 20, 15, 30, tzinfo=UTC))"
    for hash_seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(demo.__file__).parents[1])}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / hash_seed)], env=env, check=True)
    here = demo.write(tmp_path / "here", events=300, end=END)
    for path in here:
        assert (
            path.read_bytes() == (tmp_path / "1" / path.name).read_bytes() == (tmp_path / "2" / path.name).read_bytes()
        )


def test_the_zone_that_the_end_is_written_in_changes_nothing() -> None:
    elsewhere = END.astimezone(timezone(timedelta(hours=-7)))
    assert list(demo.events_and_attempts(events=200, end=elsewhere)) == list(
        demo.events_and_attempts(events=200, end=END)
    )


@pytest.mark.parametrize("change", [{"seed": 8}, {"end": END + timedelta(hours=1)}, {"events": 301}, {"days": 30}])
def test_another_argument_gives_other_data(change: dict[str, object]) -> None:
    base: dict[str, object] = {"events": 300, "end": END}
    changed = list(demo.events_and_attempts(**base | change))  # type: ignore[arg-type]
    assert changed != list(demo.events_and_attempts(**base))  # type: ignore[arg-type]


def test_tenants_and_destinations_do_not_depend_on_the_seed() -> None:
    known = {(tenant.id, destination.id) for tenant in demo.tenants() for destination in tenant.destinations}
    for seed in (1, 2):
        made = demo.events_and_attempts(events=500, end=END, seed=seed)
        assert {(a.tenant_id, a.destination_id) for _, attempts in made for a in attempts} <= known


def test_a_topic_goes_to_a_destination_once_and_the_first_destination_takes_them_all() -> None:
    for tenant in demo.tenants():
        first, *others = tenant.destinations
        assert all(len(set(route)) == len(route) for route in tenant.routes.values())
        assert all(first in route for route in tenant.routes.values())
        assert all(sum(other in route for route in tenant.routes.values()) == 2 for other in others)


@pytest.mark.parametrize(("events", "days"), [(0, 90), (1, 90), (7, 1), (1234, 3), (999, 400)])
def test_there_are_exactly_as_many_events_as_asked_for(events: int, days: int) -> None:
    made = [event for event, _ in demo.events_and_attempts(events=events, end=END, days=days)]
    assert len(made) == events
    assert all(END - timedelta(days=days) <= event.time < END for event in made)


def test_a_naive_end_and_impossible_sizes_are_refused_at_once() -> None:
    with pytest.raises(InvalidSelection, match="time zone"):
        demo.events_and_attempts(end=END.replace(tzinfo=None))
    with pytest.raises(InvalidSelection, match="events=-1"):
        demo.events_and_attempts(events=-1, end=END)
    with pytest.raises(InvalidSelection, match="days=0"):
        demo.events_and_attempts(end=END, days=0)


def test_events_come_in_the_order_of_their_time_and_nothing_is_later_than_the_end(stream: Stream) -> None:
    times = [event.time for event, _ in stream]
    assert times == sorted(times)
    assert times[0] < END - timedelta(days=89)
    assert times[-1] > END - timedelta(days=1)
    assert all(event.time < attempt.time <= END for event, made in stream for attempt in made)


def test_times_are_utc_and_carry_microseconds(stream: Stream, attempts: list[Attempt]) -> None:
    times = [event.time for event, _ in stream] + [attempt.time for attempt in attempts]
    assert {time.tzinfo for time in times} == {UTC}
    assert sum(time.microsecond % 1000 != 0 for time in times) > 0.99 * len(times)


def test_the_default_size_has_thirty_odd_thousand_attempts(stream: Stream, attempts: list[Attempt]) -> None:
    assert len(stream) == 20_000
    assert 30_000 <= len(attempts) <= 35_000


def test_ids_are_unique_and_look_like_ids(stream: Stream, attempts: list[Attempt]) -> None:
    ids = [event.id for event, _ in stream] + [attempt.id for attempt in attempts]
    destinations = [destination.id for tenant in demo.tenants() for destination in tenant.destinations]
    ids += destinations
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"(evt|att|des)_[0-9A-Za-z]{22}", one) for one in ids)
    assert {attempt.destination_id for attempt in attempts} == set(destinations)


def test_an_attempt_carries_its_event(stream: Stream) -> None:
    for event, made in stream:
        for attempt in made:
            inside = attempt.event
            assert (inside.id, inside.tenant_id, inside.topic, inside.time) == (
                event.id,
                event.tenant_id,
                event.topic,
                event.time,
            )
            assert (inside.data, inside.metadata) == (event.data, event.metadata)
            assert event.destination_id in ("", attempt.destination_id)


def test_days_and_weeks_have_a_rhythm(stream: Stream) -> None:
    times = [event.time for event, _ in stream]
    hours = Counter(time.hour for time in times)
    weekend = sum(time.weekday() >= 5 for time in times) / 2
    workdays = sum(time.weekday() < 5 for time in times) / 5
    assert hours[10] > 5 * hours[3]
    assert weekend < 0.6 * workdays


def test_tenants_differ_much_in_size(stream: Stream) -> None:
    sizes = Counter(event.tenant_id for event, _ in stream).most_common()
    assert len(sizes) == 25
    assert sizes[0][1] > 30 * sizes[-1][1] > 30 * 50
    assert all(2 <= len(tenant.destinations) <= 5 for tenant in demo.tenants())


def test_payloads_have_the_size_of_real_ones(stream: Stream) -> None:
    sizes = [len(json.dumps(event.data, ensure_ascii=False).encode()) for event, _ in stream]
    assert min(sizes) >= 200
    assert 450 <= statistics.median(sizes) <= 700
    assert 2000 < max(sizes) <= 4096


def test_payloads_differ_by_topic_and_are_as_untidy_as_real_ones(stream: Stream) -> None:
    shapes = defaultdict(set)
    for event, _ in stream:
        shapes[event.topic].add(frozenset(event.data))
    assert set(shapes) == set(demo.TOPICS)
    amounts = Counter(type(event.data["amount"]) for event, _ in stream if "amount" in event.data)
    assert 0 < amounts[str] < 0.03 * amounts[float]
    orders = [event.data for event, _ in stream if event.topic == "order.created"]
    assert len(shapes["order.created"]) > 1, "some fields are optional"
    assert 0 < sum(order.get("note", "") is None for order in orders) < len(orders) / 10
    assert any(not order["customer"]["name"].isascii() for order in orders)
    assert all(order["customer"]["email"].endswith("@example.com") for order in orders)


def test_an_order_costs_what_its_items_cost(stream: Stream) -> None:
    for event, _ in stream:
        if event.topic == "order.created":
            total = sum(item["quantity"] * item["price"] for item in event.data["items"])
            assert float(event.data["amount"]) == pytest.approx(total)


def test_attempt_numbers_count_from_one_without_a_gap(deliveries: dict[tuple[str, str], list[Attempt]]) -> None:
    for made in deliveries.values():
        assert [attempt.attempt_number for attempt in made] == list(range(1, len(made) + 1))
        assert all(one.time < two.time for one, two in pairwise(made))


def test_automatic_retries_follow_failures_only_with_growing_gaps(
    deliveries: dict[tuple[str, str], list[Attempt]],
) -> None:
    lengths: Counter[int] = Counter()
    for made in deliveries.values():
        automatic = [attempt for attempt in made if not attempt.manual]
        assert made[: len(automatic)] == automatic, "a retry by hand comes after the automatic ones"
        assert all(attempt.status == "failed" for attempt in automatic[:-1])
        gaps = [two.time - one.time for one, two in pairwise(automatic)]
        assert all(one < two for one, two in pairwise(gaps))
        assert all(wait <= gap <= 1.2 * wait for gap, wait in zip(gaps, demo.RETRY_AFTER, strict=False))
        lengths[len(automatic)] += 1
    assert max(lengths) == len(demo.RETRY_AFTER) + 1
    assert lengths[1] > 0.9 * len(deliveries)


def test_a_failed_delivery_is_exhausted_or_not_to_be_retried_or_still_waiting_at_the_end(
    deliveries: dict[tuple[str, str], list[Attempt]],
) -> None:
    waiting = 0
    for made in deliveries.values():
        last = [attempt for attempt in made if not attempt.manual][-1]
        if last.status == "failed" and last.eligible_for_retry and last.attempt_number <= len(demo.RETRY_AFTER):
            assert last.time + 1.2 * demo.RETRY_AFTER[last.attempt_number - 1] > END
            waiting += 1
    assert waiting > 0


def test_an_event_that_is_not_eligible_for_retry_gets_no_automatic_one(attempts: list[Attempt]) -> None:
    barred = [attempt for attempt in attempts if not attempt.eligible_for_retry]
    assert 0.01 < len(barred) / len(attempts) < 0.05
    assert all(attempt.attempt_number == 1 or attempt.manual for attempt in barred)


def test_a_few_retries_are_made_by_hand(attempts: list[Attempt]) -> None:
    by_hand = [attempt for attempt in attempts if attempt.manual]
    assert 0 < len(by_hand) < 0.01 * len(attempts)
    assert {attempt.status for attempt in by_hand} == {"success", "failed"}
    assert min(attempt.attempt_number for attempt in by_hand) > 1


def test_codes_statuses_and_responses_agree(attempts: list[Attempt]) -> None:
    for attempt in attempts:
        assert attempt.code is not None
        assert (attempt.status == "success") == attempt.code.startswith("2")
        response = attempt.response_data
        assert response["duration_ms"] >= 1
        if attempt.code.isdigit():
            assert response["status"] == int(attempt.code)
            assert {"body", "headers"} <= set(response)
        else:
            assert "error" in response
            assert "status" not in response
    assert {"200", "202", "500", "503", "429", "404", "410", "timeout", "connection_refused"} <= {
        attempt.code for attempt in attempts
    }


def test_about_one_event_in_a_hundred_has_no_attempt(stream: Stream) -> None:
    without = sum(not made for _, made in stream)
    assert 0.005 * len(stream) < without < 0.02 * len(stream)


def test_the_outage_is_in_sight_and_retries_succeed_after_it(
    attempts: list[Attempt], deliveries: dict[tuple[str, str], list[Attempt]]
) -> None:
    outage = SPECIAL.outage
    there = [attempt for attempt in attempts if attempt.destination_id == outage.destination_id]
    during = [attempt for attempt in there if outage.start <= attempt.time < outage.end]
    assert len(during) > 100
    assert failed_share(during) > 0.9
    assert sum(attempt.code in ("503", "timeout") for attempt in during) > 0.9 * len(during)
    assert failed_share([a for a in there if not outage.start <= a.time < outage.end]) < 0.05
    hit = [deliveries[attempt.event_id, attempt.destination_id] for attempt in during if attempt.attempt_number == 1]
    recovered = [made for made in hit if made[0].status == "failed" and made[-1].status == "success"]
    assert len(recovered) > 0.5 * len(hit)


def test_the_slow_week_is_in_sight(stream: Stream) -> None:
    waits: dict[bool, list[float]] = {True: [], False: []}
    for event, made in stream:
        if event.tenant_id == SPECIAL.slow_week.tenant_id:
            slow = SPECIAL.slow_week.start <= event.time < SPECIAL.slow_week.end
            waits[slow] += [(a.time - event.time).total_seconds() for a in made if a.attempt_number == 1]
    assert len(waits[True]) > 100
    assert statistics.median(waits[True]) > 300
    assert statistics.median(waits[False]) < 2


def test_the_burst_is_in_sight(stream: Stream) -> None:
    burst = SPECIAL.burst
    hours = Counter(
        event.time.replace(minute=0, second=0, microsecond=0)
        for event, _ in stream
        if event.tenant_id == burst.tenant_id and event.topic == burst.topic
    )
    (busiest, count), (_, second) = hours.most_common(2)
    assert busiest == burst.start
    assert count > 50 * second


def test_one_destination_never_takes_anything(stream: Stream, deliveries: dict[tuple[str, str], list[Attempt]]) -> None:
    dead = SPECIAL.dead_endpoint
    there = [made for (_, destination), made in deliveries.items() if destination == dead.destination_id]
    assert len(there) > 100
    assert {attempt.code for made in there for attempt in made} == {"404", "410"}
    exhausted = [made for made in there if len(made) > len(demo.RETRY_AFTER)]
    assert len(exhausted) > 0.9 * len(there)


def test_some_destinations_fail_now_and_then(attempts: list[Attempt]) -> None:
    rates = {destination.id: destination.failure_rate for t in demo.tenants() for destination in t.destinations}
    by_rate = defaultdict(list)
    for attempt in attempts:
        if attempt.attempt_number == 1 and attempt.tenant_id == SPECIAL.slow_week.tenant_id:
            by_rate[rates[attempt.destination_id]].append(attempt)
    for rate, made in by_rate.items():
        assert failed_share(made) == pytest.approx(rate, abs=0.03)
    assert max(by_rate) > 4 * min(by_rate)


def test_the_files_hold_what_the_stream_holds(tmp_path: Path) -> None:
    stream = list(demo.events_and_attempts(events=5_000, end=END))
    paths = demo.write(tmp_path / "new" / "folder", events=5_000, end=END)
    kinds = {kind: [path for path in paths if path.name.startswith(kind)] for kind in ("events", "attempts")}
    assert [path.name for path in kinds["events"]] == [f"events-{part:03d}.jsonl" for part in range(4)]
    assert [path.name for path in kinds["attempts"]] == [f"attempts-{part:03d}.jsonl" for part in range(4)]
    assert [record(Event, line) for line in lines(kinds["events"])] == [event for event, _ in stream]
    assert [record(Attempt, line) for line in lines(kinds["attempts"])] == [a for _, made in stream for a in made]
    sizes = [path.stat().st_size for path in kinds["events"]]
    assert max(sizes) < 1.2 * min(sizes)


def record(kind: type, line: str) -> object:
    row = json.loads(line)
    assert list(row) == list(kind.columns)  # type: ignore[attr-defined]
    times = {name: datetime.fromisoformat(row[name]) for name in ("time", "event_time") if name in row}
    assert all(time.utcoffset() == timedelta(0) for time in times.values())
    return kind(**row | times)


@pytest.mark.parametrize(("events", "parts"), [(0, 0), (1, 1), (5, 3), (100, 4)])
def test_few_events_make_no_empty_event_files(events: int, parts: int, tmp_path: Path) -> None:
    paths = demo.write(tmp_path, events=events, end=END)
    made = [path for path in paths if path.name.startswith("events")]
    assert len(paths) == 2 * parts
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert all(path.stat().st_size > 0 for path in made)
    assert len(lines(made)) == events


def test_a_million_events_are_not_held_in_memory() -> None:
    tracemalloc.start()
    try:
        assert sum(1 for _ in islice(demo.events_and_attempts(events=1_000_000, end=END), 2_000)) == 2_000
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
