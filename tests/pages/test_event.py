"""Event: the permalink, and what became of it, in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import logstore
from logstore import Attempt, Event, Selection
from tests.pages.conftest import Show, param, rows, run, said


def test_a_failed_delivery_is_explained_in_words(show: Show) -> None:
    app = show("Event", id="evt_001")
    words = said(app)
    assert "2 destinations: 1 delivered, 1 failing." in words
    assert "Delivered after 1 attempt" in words
    assert "Failing after 1 attempt" in words
    assert "503: said 503" in words


def test_the_tenant_and_each_destination_of_an_event_are_links_over_the_same_time(show: Show) -> None:
    links = [link.proto for link in show("Event", id="evt_001", range="30d").main.get("page_link")]
    assert [(link.label, link.query_string) for link in links] == [
        ("acme", "range=30d&tenant_ids=acme"),
        ("This destination", "range=30d&tenant_ids=acme&destination_ids=d-bad"),
        ("This destination", "range=30d&tenant_ids=acme&destination_ids=d-good"),
    ]
    opened = show("Attempts", tenant_ids="acme", open="att_001_d-bad_1").get("page_link")
    found = {link.proto.label.replace("\\", ""): link.proto.query_string for link in opened}
    assert found["acme"] == "tenant_ids=acme"
    assert found["d-bad"] == "tenant_ids=acme&destination_ids=d-bad"
    there = show("Destinations", tenant_ids="acme", destination_ids="d-bad", open="att_001_d-bad_1")
    assert "att_001_d-bad_1" in said(there) and "acme" not in [link.proto.label for link in there.get("page_link")]


def test_an_event_that_nobody_tried_says_so(show: Show) -> None:
    assert "Never attempted" in said(show("Event", id="evt_000"))


def test_payload_and_metadata_are_trees(show: Show) -> None:
    shown = [tree.value for tree in show("Event", id="evt_001").json]
    assert any('"number": 1' in tree for tree in shown)
    assert any('"region": "eu"' in tree for tree in shown)


def test_the_event_can_be_copied_as_json_curl_sql_and_python(show: Show) -> None:
    app = show("Event", id="evt_001")
    app.text_input(key="curl to").set_value("https://hooks.test/a b").run()
    copies = [code.value for code in app.code]
    assert any('"attempts"' in code for code in copies)
    assert any("--url 'https://hooks.test/a b'" in code and '{"number": 1}' in code for code in copies)
    assert not any("hooks.test" in str(value) for value in app.query_params.values()), "an address may hold a secret"
    app.text_input(key="curl to").set_value("file:///etc/passwd").run()
    assert "begins with https" in said(app)
    assert any("SELECT * FROM events" in code for code in copies)
    assert any("retrieve_event('evt_001'" in code for code in copies)


def test_the_attempt_of_the_link_is_the_one_that_is_open(show: Show) -> None:
    app = show("Event", id="evt_002", open="att_002_d-late_1")
    assert app.segmented_control(key="answer d-late").value == 0
    assert "att_002_d-late_1" in [text.value for text in app.text]


def test_an_unknown_id_is_a_sentence_with_a_next_step(show: Show) -> None:
    assert "No event has this id" in said(show("Event", id="evt_nobody"))
    assert "Paste" in said(show("Event"))


def test_another_tenants_event_is_not_shown(show: Show) -> None:
    assert "No event has this id" in said(show("Event", id="evt_001", tenant="globex"))


def test_the_id_box_finds_events_and_attempts_by_their_whole_id(show: Show) -> None:
    app = show("Attempts", tenant_ids="acme")
    app.text_input(key="find").set_value("  att_003_d-bad_1 ").run()
    assert param(app, "id") == ["evt_003"]
    assert param(app, "open") == ["att_003_d-bad_1"]
    missing = show("Attempts")
    missing.text_input(key="find").set_value("evt_00").run()
    assert "Nothing in the log has this id" in said(missing)


def test_an_event_without_its_own_row_is_shown_from_its_attempts(workbench, dsn: str, now) -> None:  # type: ignore[no-untyped-def]
    event = Event(id="evt_gone", tenant_id="acme", time=now, topic="t", data={"kept": "inside"})
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([], [Attempt.of(event, id="att_1", destination_id="d", status="success", time=now)])
    workbench(dsn)
    app = run("Event", id="evt_gone")
    assert "own row is not in the log" in said(app)
    assert any("inside" in tree.value for tree in app.json)


def test_two_attempts_are_compared_by_their_fields_and_lines(show: Show) -> None:
    app = show("Event", id="evt_002", compare="attempts")
    assert rows(app) == [
        {"path": "status", "before": '"failed"', "after": '"success"'},
        {"path": "code", "before": '"timeout"', "after": '"200"'},
        {"path": "response_data.body", "before": '"said timeout"', "after": '"said 200"'},
    ]
    assert "1 s later" in said(app)
    assert any('-  "status": "failed"' in code.value and '+  "status": "success"' in code.value for code in app.code)
    app.selectbox(key="compare to").set_value("att_002_d-late_1").run()
    assert param(app, "to") == ["att_002_d-late_1"]


def test_a_payload_is_compared_with_the_event_before_or_with_a_chosen_one(show: Show) -> None:
    app = show("Event", id="evt_001", compare="event")
    assert app.text_input(key="compare with").value == "evt_005", "the one before of its tenant and topic"
    assert rows(app) == [{"path": "data.number", "before": "5", "after": "1"}]
    app.text_input(key="compare with").set_value("evt_003").run()
    assert param(app, "with") == ["evt_003"]
    assert [row["path"] for row in rows(app)] == ["topic", "data.number"]
    assert "No event has this id" in said(show("Event", id="evt_001", compare="event", **{"with": "nobody"}))
    assert "first event of its tenant and topic" in said(show("Event", id="evt_117", compare="event"))


def test_only_what_can_be_compared_is_offered(show: Show) -> None:
    options = {id_: show("Event", id=id_).segmented_control(key="compare").options for id_ in ("evt_000", "evt_001")}
    assert options == {
        "evt_000": ["The payload of another event"],
        "evt_001": ["Two attempts", "The payload of another event"],
    }


def tried(dsn: str, event: Event, *attempts: tuple[str, timedelta, str, str]) -> None:
    """Insert an event and attempts of it: id, how long after it, status, code."""
    made = [
        Attempt.of(event, id=id_, destination_id="d", status=status, time=event.time + after, code=code)
        for id_, after, status, code in attempts
    ]
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([event], made)


def test_attempts_with_the_same_code_are_two_choices_and_their_codes_are_text(
    workbench: Callable[[str], None], dsn: str, now: datetime
) -> None:
    event = Event(id="evt", tenant_id="t", time=now - timedelta(minutes=5), topic="x", data={})
    hostile = "![x](http://203.0.113.1/x.png) :red[loud]" + "x" * 100
    seconds = [timedelta(seconds=number) for number in range(3)]
    tried(dsn, event, *((f"a{number}", after, "failed", hostile) for number, after in enumerate(seconds)))
    workbench(dsn)
    app = run("Event", id="evt")
    labels = app.segmented_control(key="answer d").options
    assert [label[:13] for label in labels] == [f":red[✘] {place} · \\" for place in (1, 2, 3)]
    assert all("![" not in label and ":red[loud" not in label and len(label) < 80 for label in labels)
    app.segmented_control(key="answer d").set_value(1).run()
    assert param(app, "open") == ["a1"]
    assert "a1" in [text.value for text in app.text]


def test_a_success_after_five_hundred_failures_is_a_delivery(
    workbench: Callable[[str], None], dsn: str, now: datetime
) -> None:
    event = Event(id="evt", tenant_id="t", time=now - timedelta(hours=5), topic="x", data={})
    failures = [(f"a{number:03d}", timedelta(seconds=number), "failed", "503") for number in range(510)]
    tried(dsn, event, *failures, ("last", timedelta(seconds=600), "success", "200"))
    workbench(dsn)
    words = said(run("Event", id="evt"))
    assert "1 destination: 1 delivered." in words
    assert "more than 500 attempts; the newest ones are shown" in words


def test_an_event_says_its_tier_and_so_does_each_attempt(show: Show) -> None:
    assert [text.value for text in show("Event", id="evt_001").text].count("hot") == 3


def test_links_to_the_list_keep_range_and_zone(show: Show) -> None:
    for app in (show("Event", zone="browser", range="30d"), show("Event", id="nobody", zone="browser", range="30d")):
        (link,) = [link.proto for link in app.main.get("page_link")]
        assert link.query_string == "range=30d&zone=browser"


def test_attempts_are_looked_for_from_the_newest_back_to_the_event(
    show: Show, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Selection, dict[str, Any]]] = []
    original = logstore.LogStore.list_attempt

    def noted(self: logstore.LogStore, selection: Selection, **more: Any) -> Any:
        asked.append((selection, more))
        return original(self, selection, **more)

    monkeypatch.setattr(logstore.LogStore, "list_attempt", noted)
    show("Event", id="evt_001")
    ((selection, more),) = asked
    published = now - timedelta(hours=2, minutes=10)
    assert selection.time.gte == published - timedelta(hours=1), "no older segment is read, but clocks may differ"
    assert more.get("order", "desc") == "desc"
