"""Destinations: tenant, destination, its attempts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import logstore
from logstore import Attempt, Selection, archive, partitions
from logstore.workbench.counts import measures
from logstore.workbench.destinations import health
from logstore.workbench.destinations.code_chart import code_bars
from logstore.workbench.times import Window
from tests.pages.conftest import Show, click, param, rows, said, small_log
from tests.records_of import event


def test_tenants_are_ranked_by_failed_attempts(show: Show) -> None:
    ranked = rows(show("Destinations"), 0)
    assert [(row["tenant_id"], row["failed"]) for row in ranked] == [("acme", 60), ("globex", 54)]


def test_a_tenants_destinations_are_ranked_with_rate_codes_and_last_success(show: Show) -> None:
    worst, best = rows(show("Destinations", tenant_ids="acme"), 0)
    assert (worst["destination_id"], worst["rate"], worst["codes"]) == ("d-bad", 1.0, "503 × 60")
    assert worst["last_success"] == "none in the range"
    assert (best["destination_id"], best["failed"]) == ("d-good", 0)
    assert best["last_success"] == "2.2 h ago"


def test_a_destination_lists_exactly_its_own_attempts(show: Show) -> None:
    app = show("Destinations", tenant_ids="acme", destination_ids="d-bad", limit="500")
    listed = rows(app)
    assert len(listed) == 60
    assert {row["code"] for row in listed} == {"503"}
    assert "never" in said(app)


def test_the_trail_leads_up_again(show: Show) -> None:
    app = show("Destinations", tenant_ids="acme", destination_ids="d-bad")
    app.button(key="up tenant").click().run()
    assert param(app, "tenant_ids") == ["acme"]
    assert not param(app, "destination_ids")
    app.button(key="up all").click().run()
    assert not param(app, "tenant_ids")


def test_an_id_in_a_ranking_leads_to_its_page(show: Show) -> None:
    app = click(show("Destinations"), 1, "tenant_id")
    assert (param(app, "tenant_ids"), param(app, "destination_ids")) == (["acme"], [])
    app = click(show("Destinations"), 1, "destination_id")
    assert (param(app, "tenant_ids"), param(app, "destination_ids")) == (["acme"], ["d-bad"])
    within = show("Destinations", tenant_ids="acme").dataframe[0].proto.button_click_widgets
    assert list(within) == ["destination_id"], "the tenant is the page that one is on"


def test_the_picture_of_codes_says_the_zone_of_its_axis_and_where_its_bars_are_cut(show: Show) -> None:
    app = show("Destinations", tenant_ids="acme", destination_ids="d-bad", range="24h", zone="browser")
    app.context["timezone"] = "Asia/Kolkata"
    words = said(app.run())
    assert "Failed attempts by code, 1 hour a bar, cut at UTC; times in Asia/Kolkata." in words


def test_a_destination_without_its_tenant_asks_whose(show: Show) -> None:
    app = show("Destinations", destination_ids="d-late")
    next(button for button in app.button if button.label == "globex").click().run()
    assert param(app, "tenant_ids") == ["globex"]
    assert "No attempt ever went to this destination" in said(show("Destinations", destination_ids="nowhere"))


def test_a_ranking_draws_the_error_rate_of_every_row_over_time(show: Show) -> None:
    for page in (show("Destinations", tenant_ids="acme"), show("Destinations", tenant_ids="acme", range="24h")):
        worst, best = rows(page, 0)
        assert max(worst["trend"]) == 1.0 and set(best["trend"]) == {0.0}
    assert len(rows(show("Destinations"), 0)[0]["trend"]) > 7, "tenants are counted by the hour"


def test_a_destination_says_how_soon_it_takes_events_and_how_it_fails(show: Show) -> None:
    app = show("Destinations", tenant_ids="globex", destination_ids="d-late")
    words = said(app)
    assert "time to success of 54 attempts" in words and "half within 2 s · 95% within 2 s · 99% within 2 s" in words
    assert "last failure" in words and "Failed attempts by code" in words
    assert "No failed attempts" in said(show("Destinations", tenant_ids="acme", destination_ids="d-good"))


def test_a_range_without_attempts_says_when_the_newest_was_and_leads_there(show: Show) -> None:
    for params in ({}, {"tenant_ids": "acme"}):
        app = show("Destinations", range="1h", **params)
        assert "No attempts match in the last 1 h; the newest that does is 2" in said(app)
        next(button for button in app.button if button.label == "Jump there").click().run()
        assert param(app, "range") == ["24h"] and rows(app, 0)


def test_too_many_successes_are_not_measured_unasked(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "READ_MOST", 50)
    words = said(show("Destinations", tenant_ids="globex", destination_ids="d-late"))
    assert "time to success of 54 attempts" in words and "too many to measure: narrow the range" in words


NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
WINDOW = Window(NOW - timedelta(days=30), NOW)


@pytest.fixture
def both_tiers(store: logstore.LogStore) -> logstore.LogStore:
    """The small log around the end of February, whose part of March stays in PostgreSQL."""
    store.insert_many(*small_log(datetime(2026, 3, 1, 10, tzinfo=UTC)))
    for table in ("attempts_2026_02", "events_2026_02"):
        archive.export(store, table)
        archive.flip(store, table)
        partitions.detach(store.database, table)
    return store


def test_health_and_codes_count_the_archive_too(both_tiers: logstore.LogStore) -> None:
    late = Selection(tenant_ids=("globex",), destination_ids=("d-late",))
    found = health.health(both_tiers, late, WINDOW)
    assert (found.successes, found.percentiles) == (54, (2.0, 2.0, 2.0))
    assert found.last_success is not None and found.last_success.month == 3
    nothing = health.health(both_tiers, late.but(destination_ids=("nobody",)), WINDOW)
    assert (nothing.row, nothing.successes, nothing.last_failure) == (None, 0, None)
    counted = health.codes(both_tiers, late, WINDOW)
    assert list(counted["code"].unique()) == ["timeout"] and counted["count"].sum() == 54
    assert counted.groupby("start")["count"].sum().gt(0).sum() == 2, "days of both tiers"
    lines, unread = health.rates(
        both_tiers, Selection(), WINDOW, ["tenant_id"], health.granularity(WINDOW.span, finest="1h")
    )
    assert {key: max(rate or 0 for rate in line) for key, line in lines.items()} == {("acme",): 0.5, ("globex",): 0.5}
    assert (unread, found.warnings, counted.attrs["warnings"]) == ((), (), ())


def test_rare_codes_are_drawn_together_and_hostile_ones_as_text(store: logstore.LogStore) -> None:
    codes = ["<b>x</b>"] * 9 + [None] * 8 + [str(500 + n) for n in range(7)]
    of = event(time=NOW - timedelta(days=1))
    store.insert_many(
        [of],
        [
            Attempt.of(
                of, id=f"a{n}", destination_id="d", status="failed", time=of.time + timedelta(seconds=n), code=code
            )
            for n, code in enumerate(codes)
        ],
    )
    where = Selection(tenant_ids=(of.tenant_id,), destination_ids=("d",))
    found = health.codes(store, where, Window(NOW - timedelta(days=2), NOW))
    assert list(found["code"].unique()[:2]) == ["<b>x</b>", "no code"]
    assert found.groupby("code", observed=True)["count"].sum()[health.OTHER] == 3
    figure = code_bars(found, zone=UTC)
    assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;" and figure.data[-1].name == "other codes"


@pytest.mark.parametrize(
    ("span", "finest", "expected"),
    [(1 / 24, "1m", "5m"), (1, "1m", "1h"), (7, "1h", "6h"), (7, "1d", "1d"), (90, "1d", "2d"), (4000, "1d", "3M")],
)
def test_a_line_has_few_points_and_no_finer_ones_than_roll_ups_have(span: float, finest: str, expected: str) -> None:
    width = health.granularity(timedelta(days=span), finest=finest)
    assert str(width) == expected
    window = health.whole(Window(NOW - timedelta(days=span), NOW), width)
    assert window.lower <= NOW - timedelta(days=span) and window.upper >= NOW
