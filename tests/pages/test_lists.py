"""Events and Attempts: filters, pages, empty states, links."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import Attempt, Event
from logstore.cursor import Position, encode
from logstore.records import rfc3339
from tests.pages.conftest import Show, param, rows, run, said


def press(app: AppTest, label: str) -> AppTest:
    button = next(button for button in app.button if button.label == label)
    assert not button.disabled, f"{label} is disabled"
    return button.click().run()


def can_press(app: AppTest, label: str) -> bool:
    return not next(button for button in app.button if button.label == label).disabled


def test_events_are_listed_newest_first_with_what_became_of_them(show: Show) -> None:
    listed = rows(show("Events"))
    assert [row["id"] for row in listed[:3]] == ["evt_000", "evt_001", "evt_002"]
    assert [row["outcome"] for row in listed[:3]] == [
        "⚪ never attempted",
        "❌ reached 1 of 2",
        "✅ delivered to 1 of 1",
    ]


def test_attempts_show_outcome_and_code_in_words(show: Show) -> None:
    first = rows(show("Attempts"))[0]
    assert (first["status"], first["code"], first["said"]) in (
        ("❌ failed", "503", "said 503"),
        ("✅ success", "200", "said 200"),
    )


@pytest.mark.parametrize(
    ("page", "params", "holds"),
    [
        ("Events", {"tenant_ids": "acme"}, lambda row: row["tenant"] == "acme"),
        ("Events", {"topics": "user.updated"}, lambda row: row["topic"] == "user.updated"),
        ("Events", {"event_ids": ["evt_004", "evt_007"]}, lambda row: row["id"] in ("evt_004", "evt_007")),
        ("Attempts", {"tenant_ids": "acme", "destination_ids": "d-bad"}, lambda row: row["destination"] == "d-bad"),
        ("Attempts", {"status": "failed"}, lambda row: row["status"] == "❌ failed"),
        ("Attempts", {"event_ids": "evt_002"}, lambda row: row["event"] == "evt_002"),
    ],
)
def test_a_link_with_filters_lists_only_what_they_let_through(show: Show, page: str, params: dict, holds) -> None:  # type: ignore[type-arg, no-untyped-def]
    listed = rows(show(page, **params))
    assert listed
    assert all(holds(row) for row in listed)


def test_a_link_with_filters_shows_them_in_its_menus(show: Show) -> None:
    app = show("Attempts", tenant_ids=["acme", "globex"], status="failed", topics="no.such.topic")
    chosen = {menu.label: menu.value for menu in app.multiselect}
    assert chosen["Tenant"] == ["acme", "globex"]
    assert chosen["Topic"] == ["no.such.topic"]


def test_choosing_a_filter_writes_it_into_the_url(show: Show) -> None:
    app = show("Events")
    tenant = next(menu for menu in app.multiselect if menu.label == "Tenant")
    tenant.select("globex").run()
    assert param(app, "tenant_ids") == ["globex"]
    assert {row["tenant"] for row in rows(app)} == {"globex"}


def test_older_and_newer_walk_all_rows_once_and_back(show: Show) -> None:
    app = show("Events", limit="25", range="all")
    pages = [[row["id"] for row in rows(app)]]
    while can_press(app, "Older"):
        press(app, "Older")
        pages.append([row["id"] for row in rows(app)])
    assert [row for page in pages for row in page] == [f"evt_{number:03d}" for number in range(120)]
    for page in reversed(pages[:-1]):
        press(app, "Newer")
        assert [row["id"] for row in rows(app)] == page
    assert not can_press(app, "Newer")


def test_oldest_and_newest_are_the_ends(show: Show) -> None:
    app = press(show("Events", limit="25", range="all"), "Oldest")
    assert rows(app)[-1]["id"] == "evt_119"
    assert not can_press(app, "Older")
    press(app, "Newest")
    assert rows(app)[0]["id"] == "evt_000"


def test_a_link_with_a_cursor_shows_that_page(show: Show, now: datetime) -> None:
    sixth = now - timedelta(hours=2) - 5 * timedelta(minutes=10)
    app = show("Events", next=encode("event", Position(sixth, "evt_005")), limit="25")
    assert rows(app)[0]["id"] == "evt_006"


def test_a_broken_cursor_is_a_sentence_and_a_way_on(show: Show) -> None:
    app = show("Attempts", next="broken!", tenant_ids="acme")
    assert "cannot be read" in said(app)
    press(app, "Go to the newest page")
    assert not param(app, "next")
    assert rows(app)


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", "lost"), ("range", "5y"), ("zone", "mars"), ("limit", "0"), ("time__gte", "yesterday")],
)
def test_an_unreadable_parameter_is_named_and_can_be_dropped(show: Show, name: str, value: str) -> None:
    app = show("Attempts", **{name: value})
    shown = name.replace("__", ".")
    assert shown in app.warning[0].value.replace("\\", "")
    press(app, f"Go on without “{shown}”")
    assert not param(app, shown)
    assert rows(app)


def test_nothing_in_the_range_offers_to_jump_to_the_newest(show: Show) -> None:
    app = show("Events", range="1h")
    assert "No events match in the last 1 h" in said(app)
    assert "2 h old" in said(app)
    press(app, "Jump there")
    assert rows(app)[0]["id"] == "evt_000"


def test_filters_that_match_nothing_can_be_cleared(show: Show) -> None:
    app = show("Attempts", tenant_ids="nobody")
    assert "at any time" in said(app)
    button = [button for button in app.button if button.label == "Clear the filters"][-1]
    button.click().run()
    assert rows(app)


def test_an_empty_log_says_how_to_fill_it(workbench, dsn: str) -> None:  # type: ignore[no-untyped-def]
    workbench(dsn)
    for page in ("Overview", "Events", "Attempts", "Destinations"):
        assert "python -m logstore demo" in "\n".join([said(run(page)), *(code.value for code in run(page).code)])


def test_exact_times_bound_the_list(show: Show, now: datetime) -> None:
    start = now - timedelta(hours=4)
    app = show("Events", time__gte=rfc3339(start), time__lt=rfc3339(start + timedelta(hours=1)))
    assert len(rows(app)) == 6


def test_columns_of_the_link_are_the_columns_of_the_table(show: Show) -> None:
    app = show("Attempts", columns="id,time")
    assert list(app.dataframe[-1].value.columns) == ["id", "time"]


def test_new_arrivals_do_not_move_the_page_that_is_read(workbench, dsn: str, now: datetime) -> None:  # type: ignore[no-untyped-def]
    def arrive(store: logstore.LogStore, number: int, time: datetime) -> None:
        event = Event(id=f"evt_{number}", tenant_id="acme", time=time, topic="t", data={})
        store.insert_many(
            [event], [Attempt.of(event, id=f"att_{number}", destination_id="d", status="success", time=time)]
        )

    with logstore.open(dsn, role="operator") as store:
        for number in range(3):
            arrive(store, number, now - timedelta(minutes=10 - number))
        workbench(dsn)
        app = run("Events")
        before = [row["id"] for row in rows(app)]
        arrive(store, 3, now)
        app.run()
        assert [row["id"] for row in rows(app)] == before
        assert "newer ones have arrived" in said(app)
        press(app, "Newest")
        assert [row["id"] for row in rows(app)] == ["evt_3", *before]


def test_the_zone_of_the_link_is_named_above_the_times(show: Show) -> None:
    app = show("Events", zone="browser")
    assert app.segmented_control(key="zone").value == "browser"
