"""Events and Attempts: filters, pages, empty states, links."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

import logstore
from logstore import Attempt, Event
from logstore.cursor import Position, encode
from logstore.errors import TooBroad
from logstore.records import rfc3339
from logstore.settings import ROOT
from logstore.workbench import empty_lists
from logstore.workbench.lists import listing
from tests.pages.conftest import PAGES, Show, param, rows, run, said
from tests.pages.test_facets import click


def press(app: AppTest, label: str) -> AppTest:
    button = next(button for button in app.button if button.label == label)
    assert not button.disabled, f"{label} is disabled"
    return button.click().run()


def can_press(app: AppTest, label: str) -> bool:
    return not next(button for button in app.button if button.label == label).disabled


def choose(app: AppTest, *chosen: int) -> AppTest:
    """Choose rows of the last table, which AppTest has no words for: send what the browser would send."""
    states = app._tree.get_widget_states()
    selection = {"selection": {"rows": list(chosen), "columns": [], "cells": []}}
    states.widgets.append(WidgetState(id=app.dataframe[-1].proto.id, string_value=json.dumps(selection)))
    app._run(states)
    assert not app.exception, app.exception
    return app


def test_events_are_listed_newest_first_with_what_became_of_them(show: Show) -> None:
    listed = rows(show("Events"))
    assert [row["id"] for row in listed[:3]] == ["evt_000", "evt_001", "evt_002"]
    assert [row["outcome"] for row in listed[:3]] == [
        "○ never attempted",
        "✘ reached 1 of 2",
        "✔ delivered to 1 of 1",
    ]


def test_attempts_show_outcome_and_code_in_words(show: Show) -> None:
    first = rows(show("Attempts"))[0]
    assert (first["status"], first["code"], first["said"]) in (
        ("✘ failed", "503", "said 503"),
        ("✔ success", "200", "said 200"),
    )


@pytest.mark.parametrize(
    ("page", "params", "holds"),
    [
        ("Events", {"tenant_ids": "acme"}, lambda row: row["tenant"] == "acme"),
        ("Events", {"topics": "user.updated"}, lambda row: row["topic"] == "user.updated"),
        ("Events", {"event_ids": ["evt_004", "evt_007"]}, lambda row: row["id"] in ("evt_004", "evt_007")),
        ("Attempts", {"tenant_ids": "acme", "destination_ids": "d-bad"}, lambda row: row["destination"] == "d-bad"),
        ("Attempts", {"status": "failed"}, lambda row: row["status"] == "✘ failed"),
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
    [
        ("status", "lost"),
        ("range", "5y"),
        ("zone", "mars"),
        ("limit", "0"),
        ("limit", "0010000"),
        ("time__gte", "yesterday"),
    ],
)
def test_an_unreadable_parameter_is_named_and_can_be_dropped(show: Show, name: str, value: str) -> None:
    app = show("Attempts", **{name: value})
    shown = name.replace("__", ".")
    assert shown in app.warning[0].value.replace("\\", "")
    press(app, f"Go on without “{shown}”")
    assert not param(app, shown)
    assert rows(app)


@pytest.mark.parametrize(("name", "value"), [("status", "failed"), ("destination_ids", "d-bad")])
def test_what_events_do_not_have_is_named_and_can_be_dropped(show: Show, name: str, value: str) -> None:
    app = show("Events", **{name: value, "tenant_ids": "acme"})
    assert "which only attempts have" in app.warning[0].value
    press(app, f"Go on without “{name}”")
    assert {row["tenant"] for row in rows(app)} == {"acme"}


def test_two_places_in_one_list_are_refused_and_one_can_be_dropped(show: Show, now: datetime) -> None:
    place = encode("event", Position(now - timedelta(hours=3), ""))
    app = show("Events", next=place, prev=place)
    press(app, "Go on without “prev”")
    assert rows(app)[0]["id"] == "evt_007"


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
        assert "Load files" in [link.proto.label for link in run(page).get("page_link")]


def test_exact_times_bound_the_list(show: Show, now: datetime) -> None:
    start = now - timedelta(hours=4)
    app = show("Events", time__gte=rfc3339(start), time__lt=rfc3339(start + timedelta(hours=1)))
    assert len(rows(app)) == 6


def test_exact_times_are_those_that_were_typed_also_when_a_named_range_went_before(show: Show, now: datetime) -> None:
    app = show("Events")
    first = (now - timedelta(hours=4)).replace(second=0, microsecond=0)
    for label, time in (("From", first), ("To", first + timedelta(hours=1))):
        next(box for box in app.datetime_input if box.label == label).set_value(time.replace(tzinfo=None))
    press(app, "Show these times")
    assert (param(app, "time.gte"), param(app, "time.lt")) == ([rfc3339(first)], [rfc3339(first + timedelta(hours=1))])
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


def test_a_list_whose_range_moved_on_begins_anew(show: Show, now: datetime) -> None:
    app = show("Events")
    key, _ = app.session_state["pin"]
    app.session_state["pin"] = (key, encode("event", Position(now - timedelta(days=8), "")))
    assert rows(app.run())[0]["id"] == "evt_000"


def test_a_second_click_on_the_chosen_range_shows_what_is_newest(
    workbench: Callable[[str], None], dsn: str, now: datetime
) -> None:
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([Event(id="old", tenant_id="acme", time=now - timedelta(minutes=1), topic="t", data={})])
        workbench(dsn)
        app = run("Events")
        store.insert_many([Event(id="new", tenant_id="acme", time=now, topic="t", data={})])
    assert [row["id"] for row in rows(app.run())] == ["old"]
    app.segmented_control(key="range").set_value(None).run()
    assert [row["id"] for row in rows(app)] == ["new", "old"]
    assert app.segmented_control(key="range").value == "7d"


def test_the_zone_of_the_link_is_named_above_the_times(show: Show) -> None:
    app = show("Events", zone="browser")
    assert app.segmented_control(key="zone").value == "browser"


def test_a_jump_shows_what_came_just_before_a_time(show: Show, now: datetime) -> None:
    app = show("Events", limit="25")
    there = (now - timedelta(hours=12)).replace(second=0, microsecond=0)
    app.datetime_input(key="jump time").set_value(there.replace(tzinfo=None))
    press(app, "Jump")
    shown = [row["time"] for row in rows(app)]
    assert len(shown) == 25
    assert str(shown[0]) < f"{there:%Y-%m-%d %H:%M}" <= f"{there + timedelta(minutes=10):%Y-%m-%d %H:%M}"
    assert param(app, "next") and can_press(app, "Newer")
    assert there - datetime.fromisoformat(f"{shown[0]}+00:00") <= timedelta(minutes=10)


def test_the_page_size_is_chosen_and_kept_in_the_url(show: Show) -> None:
    app = show("Events")
    app.selectbox(key="limit").set_value(25).run()
    assert param(app, "limit") == ["25"]
    assert len(rows(app)) == 25
    assert len(rows(show("Events", limit="7"))) == 7


def test_a_condition_is_built_from_a_field_a_comparison_and_a_value(show: Show) -> None:
    app = show("Events")
    app.selectbox(key="build field").set_value("data.number").run()
    app.selectbox(key="build operator number").set_value("<").run()
    app.text_input(key="build value number").set_value("3").run()
    press(app, "Add to the filter")
    assert param(app, "where") == ["data.number < 3"]
    assert [row["id"] for row in rows(app)] == ["evt_000", "evt_001", "evt_002"]
    app.selectbox(key="build field").set_value("topic").run()
    app.text_input(key="build value string").set_value('user.updated"').run()
    press(app, "Add to the filter")
    assert param(app, "where") == ['data.number < 3 and topic = "user.updated\\""']


def test_a_misspelt_field_offers_the_one_that_was_meant(show: Show) -> None:
    app = show("Events", where="data.nubmer < 3")
    assert "Did you mean data.number" in said(app).replace("\\", "")
    next(button for button in app.button if button.label.replace("\\", "") == "Use data.number").click().run()
    assert param(app, "where") == ["data.number < 3"]
    assert len(rows(app)) == 3


def test_a_field_of_the_payload_can_be_a_column(show: Show) -> None:
    app = show("Attempts", columns="id,data.number,metadata.region,response_data.body", event_ids="evt_001")
    assert {(row["data.number"], row["metadata.region"]) for row in rows(app)} == {("1", "eu")}
    assert {row["response_data.body"] for row in rows(app)} == {"said 200", "said 503"}
    app.multiselect(key="columns").select("data.number").run()
    assert "data.number" in app.multiselect(key="columns").options


def test_every_row_shows_its_tier(show: Show) -> None:
    for page in ("Events", "Attempts"):
        assert {row["tier"] for row in rows(show(page))} == {"hot"}
    one = show("Destinations", tenant_ids="acme", destination_ids="d-bad")
    assert {row["tier"] for row in rows(one)} == {"hot"}


def test_the_id_of_an_attempt_leads_to_it(show: Show) -> None:
    app = click(show("Attempts", columns="time,id", event_ids="evt_002", status="failed"), -1, "id", 0)
    assert (param(app, "id"), param(app, "open")) == (["evt_002"], ["att_002_d-late_1"])


def test_the_attempt_of_the_link_opens_also_when_the_list_is_empty(show: Show) -> None:
    app = show("Attempts", tenant_ids="acme", topics="nothing", open="att_001_d-bad_1")
    assert "at any time" in said(app)
    words = [text.value for text in app.text]
    assert "att_001_d-bad_1" in words and "hot" in words


def test_a_chosen_row_opens_the_attempt_of_its_own_tenant(
    workbench: Callable[[str], None], dsn: str, now: datetime
) -> None:
    with logstore.open(dsn, role="operator") as store:
        for minutes, tenant in enumerate(("acme", "globex")):
            event = Event(
                id=f"evt_{tenant}", tenant_id=tenant, time=now - timedelta(minutes=minutes), topic="t", data={}
            )
            store.insert_many(
                [event], [Attempt.of(event, id="same", destination_id="d", status="failed", time=event.time)]
            )
    workbench(dsn)
    app = choose(run("Attempts"), 1)
    assert (param(app, "open"), param(app, "tenant")) == (["same"], ["globex"])
    assert opened(app) == "evt_globex"
    assert opened(run("Attempts", tenant_ids="acme", open="same")) == "evt_acme"
    assert opened(run("Attempts", tenant_ids="globex", where='topic = "none"', open="same")) == "evt_globex"
    assert opened(run("Attempts", tenant_ids="initech", open="same")) is None
    app = choose(app)
    assert (param(app, "open"), param(app, "tenant")) == ([], [])


def opened(app: AppTest) -> str | None:
    """The event of the attempt that is open."""
    return next((text.value for text in app.text if text.value.startswith("evt_")), None)


def test_a_row_that_was_closed_opens_again_with_one_click(show: Show) -> None:
    app = choose(show("Attempts"), 0)
    (first,) = param(app, "open")
    table = app.dataframe[-1].proto.id
    assert table == app.run().dataframe[-1].proto.id, "what is open stays chosen in its table"
    dismiss(app)
    assert not param(app, "open")
    assert table != app.dataframe[-1].proto.id, "in a new one nothing is chosen"
    assert param(choose(app, 0), "open") == [first]


def dismiss(app: AppTest) -> None:
    """Close the dialog, which AppTest has no words for: send what the browser would send."""
    (dialog,) = [block for block in _blocks(app._tree) if getattr(block, "type", "") == "dialog"]
    states = app._tree.get_widget_states()
    states.widgets.append(WidgetState(id=dialog.proto.id, trigger_value=True))
    app._run(states)
    assert not app.exception, app.exception


def _blocks(node: Any) -> list[Any]:
    return [node, *(block for child in getattr(node, "children", {}).values() for block in _blocks(child))]


@pytest.mark.parametrize("page", ["Events", "Attempts"])
def test_rows_that_take_too_long_are_given_up_with_a_plain_sentence(
    workbench: Callable[[str], None], log: str, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    workbench(log)
    monkeypatch.setattr(listing, "SECONDS", 1e-6)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=20)
    app.switch_page(str(PAGES[page]))
    app.query_params["where"] = 'data.nowhere = "to be found"'
    app.run()
    assert not app.exception
    (error,) = app.error
    assert "Too broad" in error.value and "narrow the time or choose a tenant" in error.value
    assert next(menu.label for menu in app.multiselect) == "Tenant", "what to do about it is still there"


@pytest.mark.parametrize("page", ["Events", "Attempts"])
def test_a_mistake_in_the_filter_is_said_once_and_nothing_is_listed(
    workbench: Callable[[str], None], log: str, page: str
) -> None:
    workbench(log)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=20)
    app.switch_page(str(PAGES[page]))
    app.query_params["where"] = "data.number >== 3"
    app.run()
    assert not app.exception
    assert sum("column 15" in code.value for code in app.code) == 1
    (error,) = app.error
    assert "correct it, or clear the filters" in error.value and "column" not in error.value
    assert not app.dataframe and not app.get("plotly_chart")
    press(app, "Clear the filters")
    assert not app.error and rows(app)


def test_an_empty_list_does_not_search_all_times_for_long(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty_lists, "SECONDS", 1e-6)
    app = show("Events", range="1h", where="data.number >= 0")
    assert "would take long" in said(app)
    press(app, "Look at all times")
    assert param(app, "range") == ["all"]
    assert len(rows(app)) == 50


def test_whether_more_follows_is_asked_only_where_the_page_does_not_say(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, object, object]] = []
    original = logstore.LogStore.list_event

    def counted(self: logstore.LogStore, *given: Any, **more: Any) -> Any:
        asked.append((more["limit"], more.get("next") is not None, more.get("prev") is not None))
        return original(self, *given, **more)

    monkeypatch.setattr(logstore.LogStore, "list_event", counted)
    app = show("Events", limit="25", range="all")
    assert asked == [(25, False, False)]
    asked.clear()
    press(app, "Older")
    assert asked == [(25, True, False), (1, False, True)]
    asked.clear()
    press(app, "Newer")
    assert asked == [(25, False, True), (1, True, False)]


def test_a_statement_that_the_server_ended_is_too_broad_and_no_outage() -> None:
    app = AppTest.from_function(_cancelled).run()
    (error,) = app.error
    assert "Too broad" in error.value and "doctor" not in error.value


def _cancelled() -> None:
    import psycopg

    from logstore.workbench.frame import sentences

    with sentences():
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")


@pytest.mark.parametrize(("name", "year"), [("time__gte", "0001"), ("time__lt", "9999")])
def test_times_at_the_end_of_all_years_are_refused_with_a_sentence(show: Show, name: str, year: str) -> None:
    app = show("Events", zone="browser", **{name: f"{year}-12-31T23:59:59Z"})
    assert f"in the year {int(year)}" in app.warning[0].value
    press(app, f"Go on without “{name.replace('__', '.')}”")
    assert rows(app)


def test_a_destination_of_two_tenants_asks_whose_is_meant(workbench: Callable[[str], None], dsn: str) -> None:
    now = datetime.now(UTC)
    with logstore.open(dsn, role="operator") as store:
        for tenant in ("acme", "globex", "initech"):
            event = Event(id=f"evt_{tenant}", tenant_id=tenant, time=now, topic="t", data={})
            attempt = Attempt.of(event, id=f"att_{tenant}", destination_id="shared", status="success", time=now)
            store.insert_many([event], [attempt])
    workbench(dsn)
    app = run("Events", zone="browser")
    app.text_input(key="find").set_value("shared").run()
    assert (param(app, "destination_ids"), param(app, "tenant_ids")) == (["shared"], [])
    assert "More than one tenant" in said(app)
    press(app, "initech")
    assert (param(app, "tenant_ids"), param(app, "zone")) == (["initech"], ["browser"])


def test_rows_are_shown_also_when_a_look_beside_them_takes_too_long(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = logstore.LogStore.list_event

    def impatient(self: logstore.LogStore, *given: Any, **more: Any) -> Any:
        if more["limit"] == 1:
            raise TooBroad("too broad to answer")
        return original(self, *given, **more)

    app = show("Events", limit="25")
    monkeypatch.setattr(logstore.LogStore, "list_event", impatient)
    press(app, "Older")
    assert len(rows(app)) == 25
    assert can_press(app, "Newer"), "nobody knows, so it can be tried"
