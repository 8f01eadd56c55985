"""Counts over the whole range agree with the records."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, text

import logstore
from logstore import Selection
from logstore.workbench import measures, times
from tests.pages.conftest import small_log


@pytest.fixture
def filled(store: logstore.LogStore) -> logstore.LogStore:
    store.insert_many(*small_log(datetime.now(UTC)))
    return store


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(tenant_ids=("acme",)),
        Selection(tenant_ids=("acme", "globex"), topics=("user.updated",)),
        Selection(event_ids=("evt_001", "evt_002")),
    ],
)
@pytest.mark.parametrize("kind", ["event", "attempt"])
def test_the_bars_add_up_to_the_records_of_the_window(
    filled: logstore.LogStore, kind: str, selection: Selection
) -> None:
    now = datetime.now(UTC)
    window = times.Window(now - timedelta(hours=9), now - timedelta(hours=3))
    bars = measures.histogram(filled, kind, selection, window, UTC)  # type: ignore[arg-type]
    bounds = logstore.TimeFilter(gte=window.lower, lt=window.upper)
    lister = filled.list_event if kind == "event" else filled.list_attempt
    listed = lister(selection.but(time=bounds), limit=1000)  # type: ignore[operator]
    assert bars["count"].sum() == len(listed)
    if kind == "attempt":
        by_status = Counter(attempt.status for attempt in listed)
        assert dict(bars.groupby("outcome")["count"].sum()) == {
            status: by_status[status] for status in ("failed", "success")
        }


def test_quiet_times_are_bars_of_zero(filled: logstore.LogStore) -> None:
    now = datetime.now(UTC)
    bars = measures.histogram(filled, "attempt", Selection(), times.Window(now - timedelta(days=30), now), UTC)
    assert (bars["count"] == 0).sum() > 100


def test_a_count_that_takes_too_long_says_that_it_is_too_broad(
    filled: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "SECONDS", 1)
    with pytest.raises(measures.TooBroad, match="narrow the time"):
        measures.count(filled, select(func.pg_sleep(3)))


def test_counting_survives_a_connection_that_was_cut(filled: logstore.LogStore) -> None:
    assert measures.extent(filled, "event") is not None
    with filled.database.connection(autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert measures.count(filled, select(text("1"))) == [(1,)]
