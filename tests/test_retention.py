"""Retention is strict, goes from the oldest, leaves no gap, keeps the minimum, and touches nothing that is not over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import retention
from logstore.partitions import month_bounds, partition_name
from logstore.retention import Month, Policy

NOW = datetime(2026, 11, 18, tzinfo=UTC)
WEEK = timedelta(days=7)
TICK = timedelta(microseconds=1)


def month(number: int, *, parent: str = "attempts", **fields: Any) -> Month:
    """The month that lies `number` months before NOW's; negative ones are ahead."""
    first = _first(number)
    lower, upper = month_bounds(first)
    given: dict[str, Any] = {"state": "open", "bytes": 100, "cold_bytes": 10}
    if fields.get("state") in ("cold", "purged"):
        given |= {"attached": False, "exists": fields["state"] == "cold", "segments": 1, "changed": NOW - 10 * WEEK}
    return Month(
        **{"parent": parent, "name": partition_name(parent, first), "lower": lower, "upper": upper, **given, **fields}
    )


def _first(number: int) -> date:
    count = NOW.year * 12 + NOW.month - 1 - number
    return date(count // 12, count % 12 + 1, 1)


def hot(**knobs: Any) -> Policy:
    return Policy(parent="attempts", tier="hot", **{"min_count": 0, **knobs})


def cold(**knobs: Any) -> Policy:
    return Policy(parent="attempts", tier="cold", **{"min_count": 0, **knobs})


def archived(months: list[Month], *policies: Policy, now: datetime = NOW) -> list[str]:
    return [leaving.month.name for leaving in retention.plan(months, policies, now=now, undo=WEEK).archive]


def removed(months: list[Month], *policies: Policy, now: datetime = NOW) -> list[str]:
    return [leaving.month.name for leaving in retention.plan(months, policies, now=now, undo=WEEK).remove]


@pytest.mark.parametrize(("over", "leaves"), [(timedelta(0), 0), (-TICK, 0), (TICK, 1)])
def test_a_month_exactly_as_old_as_the_limit_is_kept(over: timedelta, leaves: int) -> None:
    months = [month(3), month(0)]
    age = NOW - months[0].upper
    assert len(archived(months, hot(max_age=age - over))) == leaves


def test_age_counts_from_the_end_of_a_month_not_from_its_beginning() -> None:
    months = [month(2), month(1), month(0)]  # September ended 48 days ago and began 78 days ago
    assert archived(months, hot(max_age=timedelta(days=60))) == []
    assert archived(months, hot(max_age=timedelta(days=47))) == ["attempts_2026_09"]


@pytest.mark.parametrize(("most", "leaves"), [(301, 0), (300, 0), (299, 1), (200, 1), (199, 2)])
def test_a_tier_exactly_as_large_as_the_limit_is_kept(most: int, leaves: int) -> None:
    assert len(archived([month(3), month(2), month(1)], hot(max_bytes=most))) == leaves


@pytest.mark.parametrize(("most", "leaves"), [(4, 0), (3, 0), (2, 1), (1, 2)])
def test_a_tier_exactly_as_long_as_the_limit_is_kept(most: int, leaves: int) -> None:
    assert len(archived([month(3), month(2), month(1)], hot(max_count=most))) == leaves


@pytest.mark.parametrize(("least", "leaves"), [(0, 3), (1, 2), (2, 1), (3, 0), (4, 0)])
def test_the_minimum_always_stays(least: int, leaves: int) -> None:
    greedy = hot(max_age=timedelta(0), max_bytes=0, max_count=0, min_count=least)
    assert len(archived([month(3), month(2), month(1)], greedy)) == leaves


def test_months_that_are_made_ahead_do_not_stand_for_the_minimum_and_push_nobody_out() -> None:
    ahead = [month(-1), month(-2)]
    months = [month(2), month(1), month(0), *ahead]
    assert archived(months, hot(max_age=timedelta(0), min_count=2)) == ["attempts_2026_09"]
    assert archived(months, hot(max_count=3)) == []


@pytest.mark.parametrize(("now", "leaves"), [(-TICK, 0), (timedelta(0), 0), (TICK, 1)])
def test_a_month_that_is_not_over_is_never_touched(now: timedelta, leaves: int) -> None:
    only = month(1)
    greedy = hot(max_age=timedelta(days=-100), max_bytes=0, max_count=0)
    assert len(archived([only], greedy, now=only.upper + now)) == leaves


def test_no_knob_means_no_limit() -> None:
    assert archived([month(n) for n in range(100)], hot()) == []
    assert archived([month(n) for n in range(100)]) == [], "no policy at all, no removal"


def test_the_reason_names_the_knob() -> None:
    reasons = [
        retention.plan([month(3), month(2)], [policy], now=NOW, undo=WEEK).archive[0].reason
        for policy in (hot(max_age=WEEK), hot(max_bytes=150), hot(max_count=1))
    ]
    assert reasons == [
        "it ended 78 days ago, hot keeps 7 days",
        "hot holds 200 bytes and keeps 150",
        "hot holds 2 months and keeps 1",
    ]


def test_the_first_month_that_is_kept_ends_it() -> None:
    foreign = replace(month(2), ours=False)
    assert archived([month(3), foreign, month(1)], hot(max_age=timedelta(0))) == ["attempts_2026_08"]


def test_a_month_whose_table_was_dropped_by_hand_holds_nobody_up() -> None:
    dropped = replace(month(4), exists=False, attached=False)
    assert archived([dropped, month(3), month(1)], hot(max_age=WEEK, min_count=1)) == ["attempts_2026_08"]
    assert removed([dropped, month(3, state="purged")], cold(max_age=WEEK)) == ["attempts_2026_08"]


def test_a_table_is_purged_only_out_of_the_log_sealed_and_after_its_window() -> None:
    ready = month(5, state="cold", changed=NOW - WEEK - TICK)
    others = [
        replace(ready, changed=NOW - WEEK),
        replace(ready, attached=True),
        replace(ready, quarantined=1),
        replace(ready, state="closed"),
        replace(ready, changed=None),
    ]
    for given_month, purged in [(ready, True), *((other, False) for other in others)]:
        decision = retention.plan([given_month], [], now=NOW, undo=WEEK)
        assert [leaving.month for leaving in decision.purge] == ([given_month] if purged else [])


def test_the_archive_lets_go_only_months_of_which_nothing_but_segments_is_left() -> None:
    oldest, waiting, newest = month(9, state="purged"), month(8, state="cold"), month(7, state="purged")
    greedy = cold(max_age=timedelta(0))
    assert removed([oldest, waiting, newest], greedy) == [oldest.name]
    assert removed([month(10), oldest, newest], greedy) == [], "an older month is still in PostgreSQL"
    assert removed([replace(oldest, segments=0), newest], greedy) == [newest.name], "one that is gone is no gap"
    assert removed([oldest, newest], cold(max_age=timedelta(0), min_count=1)) == [oldest.name]
    assert removed([oldest, newest], cold(max_bytes=20)) == []
    assert removed([oldest, newest], cold(max_bytes=19)) == [oldest.name]


def test_a_bad_segment_that_nothing_can_write_again_holds_up_nobody_and_its_loss_is_named() -> None:
    oldest, newest = month(9, state="purged", quarantined=1), month(7, state="purged")
    leaving = retention.plan([oldest, newest], [cold(max_count=0)], now=NOW, undo=WEEK).remove
    assert [one.reason for one in leaving] == [
        "cold holds 2 months and keeps 0; 1 quarantined segment goes with it, and the rows that could not be read",
        "cold holds 1 months and keeps 0",
    ]
    waiting = replace(oldest, state="cold", exists=True)
    assert removed([waiting, newest], cold(max_count=0)) == [], "its table is the only good copy"


def test_tables_do_not_count_for_each_other() -> None:
    months = [month(3), month(2), month(3, parent="events"), month(2, parent="events")]
    assert archived(months, hot(max_count=2)) == []
    assert archived(months, hot(max_count=1)) == ["attempts_2026_08"]


knobs = st.fixed_dictionaries(
    {
        "max_age": st.none() | st.integers(0, 400).map(lambda days: timedelta(days=days)),
        "max_bytes": st.none() | st.integers(0, 900),
        "max_count": st.none() | st.integers(0, 12),
        "min_count": st.integers(0, 5),
    }
)
policies = st.builds(
    lambda first, second: [hot(**first), cold(**second)],
    knobs,
    knobs,
)


@st.composite
def many_months(draw: st.DrawFn) -> list[Month]:
    """Months without a hole, some ahead; in any state, large or small, sealed or not."""
    return [
        month(
            number,
            state=draw(st.sampled_from(["open", "open", "closed", "cold", "purged", "purged"])),
            bytes=draw(st.integers(0, 200)),
            quarantined=draw(st.sampled_from([0, 0, 0, 1])),
            changed=NOW - draw(st.integers(0, 20)) * timedelta(days=1),
            attached=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 12)), -draw(st.integers(1, 3)), -1)
    ]


@given(many_months(), policies)
def test_whatever_months_and_policies_nothing_goes_that_must_stay(months: list[Month], given: list[Policy]) -> None:
    decision = retention.plan(months, given, now=NOW, undo=WEEK)
    leaving = [one.month for one in decision.archive]
    gone = [one.month for one in decision.remove]
    assert all(one.upper < NOW for one in leaving + gone), "the open month was touched"
    hot_before = [one for one in months if one.state in ("open", "closed") and one.lower <= NOW]
    assert leaving == hot_before[: len(leaving)], "not a prefix"
    assert not leaving or len(hot_before) - len(leaving) >= given[0].min_count
    cold_before = [one for one in months if one.state in ("cold", "purged")]
    assert not gone or len(cold_before) - len(gone) >= given[1].min_count
    assert gone == months[: len(gone)], "a gap opens behind a month that stays"
    assert all(one.state == "purged" for one in gone)
    assert all(one.month.sealed and not one.month.attached for one in decision.purge)


@given(many_months(), policies)
def test_what_stays_is_within_the_limits_or_must_stay(months: list[Month], given: list[Policy]) -> None:
    """The other half: it does not stop early."""
    policy = given[0]
    leaving = {one.month for one in retention.plan(months, given, now=NOW, undo=WEEK).archive}
    left = [m for m in months if m.state in ("open", "closed") and m.lower <= NOW and m not in leaving]
    if not left or len(left) <= policy.min_count or left[0].upper >= NOW or not left[0].attached:
        return
    assert policy.max_count is None or len(left) <= policy.max_count
    assert policy.max_bytes is None or sum(m.bytes for m in left) <= policy.max_bytes
    assert policy.max_age is None or NOW - left[0].upper <= policy.max_age
