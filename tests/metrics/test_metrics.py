"""What a caller meets: series without holes, rates of whole and partial buckets, refusals that say what to change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from logstore import InvalidFilter, InvalidSelection, LogStore, Selection, TooBroad, deadline, metrics
from logstore.metrics.question import ROWS_MOST
from logstore.metrics.scan import scan
from logstore.records import to_micros
from tests.records_of import START, attempt, event
from tests.test_archive import MONTH, make_cold

DAY = timedelta(days=1)


def hours(store: LogStore, count: int = 6) -> None:
    store.insert_many(
        attempts=[
            attempt(
                f"a{n}",
                time=START + timedelta(hours=n, minutes=30),
                status="failed" if n % 3 == 0 else "success",
                destination_id=f"d{n % 2}",
                attempt_number=n,
                manual=n == 2,
            )
            for n in range(count)
        ]
    )


@pytest.mark.parametrize("granularity", ["5h", "7m", "45s", "3d", "2w", "5M"])
def test_a_series_has_every_slot_and_nothing_else(store: LogStore, granularity: str) -> None:
    hours(store)
    start, end = START + timedelta(hours=1), START + timedelta(hours=7)
    found = store.attempt_metrics(start, end, granularity=granularity, measures=("count", "error_rate"))
    width = metrics.Granularity.parse(granularity)
    times = [row["time"] for row in found]
    assert times == sorted(set(times))
    assert times[0] <= start and times[-1] < end
    assert len(times) == width.count(to_micros(start), to_micros(end))
    assert sum(row["count"] for row in found) == 5
    assert all((row["error_rate"] is None) == (row["count"] == 0) for row in found), "no traffic is not “no errors”"


def test_every_combination_that_occurs_has_a_whole_series(store: LogStore) -> None:
    hours(store)
    asked: dict[str, Any] = {
        "dimensions": ("destination_id", "status"),
        "granularity": "1h",
        "measures": ("count", "rate"),
    }
    found = store.attempt_metrics(START, START + 6 * timedelta(hours=1), **asked)
    series = [(row["destination_id"], row["status"]) for row in found]
    combinations = [("d0", "failed"), ("d0", "success"), ("d1", "failed"), ("d1", "success")]
    assert series == [combination for combination in combinations for _ in range(6)]
    assert [row["count"] for row in found][:6] == [1, 0, 0, 0, 0, 0]
    assert {row["rate"] for row in found} == {0.0, 1 / 3600}


def test_nothing_gives_an_empty_series_or_no_rows(store: LogStore) -> None:
    assert len(store.attempt_metrics(START, START + DAY, granularity="1h")) == 24
    assert len(store.attempt_metrics(START, START + DAY)) == 0
    assert len(store.attempt_metrics(START, START + DAY, granularity="1h", dimensions=("code",))) == 0
    assert len(store.event_metrics(START, START + DAY, granularity="1h", measures=("rate",))) == 24
    assert store.event_metrics(START, START + DAY).to_pandas().columns.tolist() == ["count"]


def test_rates_are_per_second_inside_the_range_and_partial_buckets_are_flagged(store: LogStore) -> None:
    hours(store, 3)
    start, end = START + timedelta(minutes=15), START + timedelta(hours=2, minutes=45)
    found = store.attempt_metrics(start, end, granularity="1h", measures=("rate", "successful_rate", "failed_rate"))
    assert [row["partial"] for row in found] == [True, False, True]
    assert [row["rate"] for row in found] == [1 / 2700, 1 / 3600, 1 / 2700]
    assert [row["failed_rate"] for row in found] == [1 / 2700, 0.0, 0.0]
    assert store.attempt_metrics(start, end, measures=("rate",)).rows == ((3 / 9000,),)


def test_measures_of_attempts_tell_first_tries_retries_and_manual_ones_apart(store: LogStore) -> None:
    hours(store)
    names = ("first_attempt_count", "retry_count", "manual_retry_count", "avg_attempt_number", "count")
    assert store.attempt_metrics(START, START + DAY, measures=names).rows == ((1, 4, 1, 2.5, 6),)


def test_the_selection_applies_also_as_a_filter(store: LogStore) -> None:
    hours(store)
    store.insert_many([event("e1", destination_id="d1", data={"amount": 5}), event("e2", data={"amount": 7})])
    chosen = Selection(status="failed", destination_ids=("d0",))
    assert store.attempt_metrics(START, START + DAY, selection=chosen).rows == ((1,),)
    assert store.attempt_metrics(START, START + DAY, selection=Selection(where="attempt_number > 3")).rows == ((2,),)
    assert store.event_metrics(START, START + DAY, selection=Selection(destination_ids=("d1",))).rows == ((1,),)
    assert store.event_metrics(START, START + DAY, selection=Selection(where="data.amount > 6")).rows == ((1,),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": START}, "must be before"),
        ({"start": datetime(2026, 3, 1)}, "time zone"),
        ({"end": None}, "time zone"),
        ({"granularity": "61m"}, "1m to 60m"),
        ({"granularity": 5}, "no granularity"),
        ({"measures": ("median",)}, "known are count"),
        ({"measures": ()}, "at least one measure"),
        ({"measures": "count"}, r"measures=\('count',\)"),
        ({"dimensions": ("event_id",)}, "known are tenant_id"),
        ({"granularity": "1s", "end": START + 2 * DAY}, "172800 slots of 1s.*wider buckets"),
        ({"granularity": "4w", "start": datetime(1, 1, 1, tzinfo=UTC)}, "before the year 1"),
        ({"selection": "acme"}, "Selection"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(store: LogStore, change: dict[str, Any], message: str) -> None:
    asked = {"start": START, "end": START + DAY, **change}
    with pytest.raises(InvalidSelection, match=message):
        store.attempt_metrics(asked.pop("start"), asked.pop("end"), **asked)


def test_events_have_no_status_and_a_filter_says_where_it_is_wrong(store: LogStore) -> None:
    with pytest.raises(InvalidSelection, match="attempt_metrics"):
        store.event_metrics(START, START + DAY, selection=Selection(status="failed"))
    with pytest.raises(InvalidSelection, match="status"):
        store.event_metrics(START, START + DAY, dimensions=("status",))
    with pytest.raises(InvalidFilter):
        store.event_metrics(START, START + DAY, selection=Selection(where="data.amount >"))


def test_an_answer_that_is_too_large_is_refused_and_never_cut(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    hours(store)
    end = START + timedelta(seconds=ROWS_MOST)
    assert len(store.attempt_metrics(START, end, granularity="1s")) == ROWS_MOST
    with pytest.raises(InvalidSelection, match=r"100000 time slots × 2 combinations by status.*fewer dimensions"):
        store.attempt_metrics(START, end, granularity="1s", dimensions=("status",))
    monkeypatch.setattr("logstore.metrics.result.ROWS_MOST", 3)
    with pytest.raises(InvalidSelection, match="groups by attempt_number"):
        store.attempt_metrics(START, START + DAY, dimensions=("attempt_number",))


def test_a_file_that_cannot_be_read_is_a_warning_and_no_silent_gap(store: LogStore) -> None:
    hours(store)
    make_cold(store, MONTH, segment_rows=3)
    asked: dict[str, Any] = {"measures": ("count", "latency_p50"), "dimensions": ("manual",)}
    assert store.attempt_metrics(START, START + DAY, **asked).warnings == ()
    min(store.settings.archive.rglob("*.parquet")).unlink()
    found = store.attempt_metrics(START, START + DAY, **asked)
    assert sum(row["count"] for row in found) == 3
    assert len(found.warnings) == 1 and "3 attempts from 2026-03-01T00:30:00Z" in found.warnings[0]
    assert "⚠" in found._repr_html_()


def test_latencies_are_kept_packed_and_too_many_are_refused_where_time_is_limited(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours(store)
    make_cold(store, MONTH, segment_rows=3)
    asked = metrics.Question.of("attempt", START, START + DAY, measures=("latency_p50",))
    (parts,) = scan(store.tiers, asked).found.values()
    assert [(bag.dtype.name, len(bag)) for bag in parts["latencies"]] == [("int64", 3), ("int64", 3)]
    monkeypatch.setattr("logstore.metrics.result.LATENCIES_MOST", 5)
    with pytest.raises(TooBroad, match="more than 5 attempts; narrow the time"), deadline.within(60):
        store.attempt_metrics(START, START + DAY, measures=("latency_p50",))
    assert store.attempt_metrics(START, START + DAY, measures=("latency_p50",)).rows[0][0] is not None


def test_a_latency_of_many_years_is_exact_to_the_microsecond(any_store: LogStore) -> None:
    long = timedelta(days=9 * 365, microseconds=1)
    any_store.insert_many(attempts=[attempt("a", time=START, event_time=START - long)])
    ((p50,),) = any_store.attempt_metrics(START, START + DAY, measures=("latency_p50",)).rows
    assert p50 == long / timedelta(seconds=1)


def test_a_result_knows_what_it_is_and_goes_to_pandas(store: LogStore) -> None:
    hours(store)
    store.insert_many(attempts=[attempt("x", time=START, tenant_id="<script>", code=None)])
    found = store.attempt_metrics(
        START.astimezone(timezone(timedelta(hours=5, minutes=30))),
        START + timedelta(hours=8),
        measures=("count", "error_rate", "latency_p95"),
        dimensions=("tenant_id", "manual"),
        granularity="4h",
    )
    assert (found.unit, found.source, found.tiers, found.granularity) == ("attempts", "scan", ("hot",), "4h")
    assert found.seconds > 0 and found.start == START
    frame = found.to_pandas()
    assert list(frame.columns) == ["time", "tenant_id", "manual", "count", "error_rate", "latency_p95", "partial"]
    assert str(frame.dtypes["time"]) == "datetime64[us, UTC]"
    assert [str(frame.dtypes[name]) for name in found.measures] == ["int64", "float64", "float64"]
    assert "<script>" not in found._repr_html_() and "&lt;script&gt;" in found._repr_html_()


def test_a_reader_may_measure(store: LogStore, open_store: Any) -> None:
    hours(store)
    reader = open_store(store.database.conninfo, role="reader")
    assert reader.attempt_metrics(START, START + DAY).rows == ((6,),)
    assert reader.attempt_metrics(START, START + DAY, dimensions=("manual",)).source == "scan"
