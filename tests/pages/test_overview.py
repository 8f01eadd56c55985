"""Overview: counts that name their unit, what fails, where to go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas
import pytest
import streamlit as st

import logstore
from logstore import Attempt, Event, deadline
from logstore.records import rfc3339
from logstore.workbench import background, ranking_table
from logstore.workbench.counts import measures, rankings
from logstore.workbench.overview import failures
from tests.pages.conftest import Show, click, param, rows, run, said, small_log
from tests.test_archive import make_cold

Point = Callable[[str], None]


def test_counts_name_their_unit(show: Show) -> None:
    numbers = {metric.label: metric.value for metric in show("Overview").metric}
    assert numbers == {
        "Events published": "120",
        "Attempts": "228",
        "Success rate": "50.0%",
        "Events not delivered": "60",
        "Events never attempted": "6",
    }


def test_failing_destinations_and_the_newest_failures_are_listed(show: Show) -> None:
    app = show("Overview")
    failing, newest = rows(app, 0), rows(app, -1)
    assert [row["destination_id"] for row in failing] == ["d-bad", "d-late"]
    assert {row["status"] for row in newest} == {"✘ failed"}


def test_failures_are_grouped_by_destination_code_and_message(show: Show) -> None:
    groups = rows(show("Overview"), 1)
    found = {(row["destination"], row["code"], row["message"], row["failed"], sum(row["trend"])) for row in groups}  # type: ignore[arg-type]
    assert found == {("d-bad", "503", "said 503", 60, 60), ("d-late", "timeout", "said timeout", 54, 54)}
    assert all(str(row["last"]).endswith("ago") for row in groups)


def test_topics_and_latencies_cover_the_range(show: Show) -> None:
    app = show("Overview")
    topics, latencies = rows(app, 2), rows(app, 3)
    assert [(row["topic"], row["events"], row["attempts"], row["failed"]) for row in topics] == [
        ("order.created", 80, 152, 76),
        ("user.updated", 40, 76, 38),
    ]
    assert [(row["time"], row["half"], row["attempts"]) for row in latencies] == [
        ("to the first attempt", "1 s", 174),
        ("to a success", "1 s", 114),
    ]


def test_badges_say_how_the_months_and_the_loads_stand_and_lead_there(show: Show) -> None:
    links = {link.proto.label: link.proto.page for link in show("Overview").get("page_link")}
    (months,) = [page for label, page in links.items() if "Partitions: " in label]
    (loads,) = [page for label, page in links.items() if "Loads: none yet" in label]
    assert ("Partitions" in months, "Loads" in loads) == (True, True)


def test_the_picture_counts_all_attempts_of_the_range_by_outcome(show: Show) -> None:
    (picture,) = show("Overview", range="24h").get("plotly_chart")
    assert "failed (114 attempts)" in picture.proto.spec and "success (114 attempts)" in picture.proto.spec


def test_a_filter_expression_keeps_the_picture_and_counts_what_it_lets_through(show: Show) -> None:
    for page, noun in (("Events", "events"), ("Attempts", "attempts")):
        app = show(page, where="data.number < 3", range="24h")
        (picture,) = app.get("plotly_chart")
        assert noun in picture.proto.spec and "No picture" not in said(app)
    assert "failed (2 attempts)" in picture.proto.spec and "success (2 attempts)" in picture.proto.spec


def test_every_page_runs_with_every_range(show: Show) -> None:
    for page in ("Overview", "Events", "Attempts", "Destinations"):
        for name in ("1h", "24h", "30d", "90d", "all"):
            show(page, range=name)


def test_the_page_is_there_before_its_counts(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    may, add = threading.Event(), rankings.totals
    monkeypatch.setattr(rankings, "totals", lambda *given, **asked: may.wait(20) and add(*given, **asked))
    monkeypatch.setattr(background, "PATIENCE", 0.0)
    app = show("Overview")
    assert "Failing destinations" in said(app) and "Newest failed attempts" in said(app)
    assert next(metric.value for metric in app.metric if metric.label == "Attempts") == "…"
    may.set()
    monkeypatch.setattr(background, "PATIENCE", 20.0)
    app.run()
    assert next(metric.value for metric in app.metric if metric.label == "Attempts") == "228"


def test_every_part_is_about_the_time_alone(show: Show) -> None:
    """Other filters of a link belong to lists; none of the parts may follow them while the others do not."""
    app = show("Overview", tenant_ids="globex", topics="user.updated", where="data.number < 3")
    (picture,) = app.get("plotly_chart")
    assert "failed (114 attempts)" in picture.proto.spec
    assert next(metric.value for metric in app.metric if metric.label == "Attempts") == "228"
    assert {row["tenant"] for row in rows(app)} == {"acme", "globex"}


def test_a_range_without_attempts_says_when_the_newest_was_and_leads_there(show: Show) -> None:
    app = show("Overview", range="1h")
    assert not app.success and "No attempts match in the last 1 h; the newest that does is 2" in said(app)
    next(button for button in app.button if button.label == "Jump there").click().run()
    assert param(app, "range") == ["24h"]
    assert next(metric.value for metric in app.metric if metric.label == "Attempts") == "228"


def test_attempts_that_all_succeeded_are_said_with_their_number(show: Show, workbench: Point, dsn: str) -> None:
    good = [a for a in small_log(datetime.now(UTC))[1] if a.destination_id == "d-good"]
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([], good)
    workbench(dsn)
    assert "None of the 60 attempts in this range failed." in said(run("Overview"))


def test_a_time_to_success_counts_no_attempt_by_hand(workbench: Point, dsn: str, now: datetime) -> None:
    events, attempts = small_log(now)
    by_hand = [
        Attempt.of(
            event,
            id=f"hand_{event.id}",
            destination_id="d-bad",
            status="success",
            time=event.time + timedelta(minutes=90),
            attempt_number=2,
            manual=True,
        )
        for event in events[1::2]
    ]
    with logstore.open(dsn, role="operator") as store:
        store.insert_many(events, [*attempts, *by_hand])
    workbench(dsn)
    assert [(row["time"], row["most"], row["attempts"]) for row in rows(run("Overview"), 3)] == [
        ("to the first attempt", "1 s", 174),
        ("to a success", "2 s", 114),
    ]


def test_very_many_records_are_read_when_somebody_asks(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "READ_MOST", 100)
    app = show("Overview")
    numbers = {metric.label: metric.value for metric in app.metric}
    assert (numbers["Attempts"], numbers["Events not delivered"], len(app.dataframe)) == ("228", "?", 3)
    assert "That means to read 120 events and their attempts" in said(app)
    app.button(key="read failed attempts").click().run()
    assert param(app, "everything") == ["1"]
    assert next(metric.value for metric in app.metric if metric.label == "Events not delivered") == "60"
    assert len(app.dataframe) == 5 and "That means to read" not in said(app)
    app.segmented_control(key="range").set_value("30d").run()
    assert (param(app, "range"), param(app, "everything")) == (["30d"], [])
    assert "That means to read 120 events and their attempts" in said(app)


def test_reading_everything_may_take_longer_than_other_answers(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    left: dict[str, set[bool]] = {}
    measured = measures.measured

    def noted(*given: object, **asked: object) -> object:
        left.setdefault(threading.current_thread().name[:6], set()).add((deadline.left() or 0) > background.SECONDS)
        return measured(*given, **asked)  # type: ignore[arg-type]

    monkeypatch.setattr(measures, "measured", noted)
    show("Overview")
    assert left.pop("later_") == {False}
    show("Overview", everything="1")
    assert left.pop("much l") == {True}


def test_events_outside_the_time_of_all_attempts_are_counted(workbench: Point, dsn: str, now: datetime) -> None:
    events, attempts = small_log(now)
    outside = [
        Event(id=f"alone {days}", tenant_id="acme", time=now - timedelta(days=days), topic="t", data={})
        for days in (0, 3)
    ]
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([*events, *outside], attempts)
    workbench(dsn)
    for link in ({"range": "all"}, {"time__lt": rfc3339(now + timedelta(days=1))}):
        numbers = {metric.label: metric.value for metric in run("Overview", **link).metric}
        assert (numbers["Events published"], numbers["Events never attempted"]) == ("122", "8")


@pytest.fixture
def lost(workbench: Point, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The small log around the end of February, whose archived attempts are lost; the range that holds it."""
    monkeypatch.setenv("LOGSTORE_HOME", str(tmp_path))
    with logstore.open(dsn, role="operator") as store:
        store.insert_many(*small_log(datetime(2026, 3, 1, 10, tzinfo=UTC)))
        make_cold(store, "attempts_2026_02", segment_rows=1000)
        (file,) = store.settings.archive.rglob("*.parquet")
        file.unlink()
    workbench(dsn)
    return {"time__gte": "2026-02-28T08:30:00Z", "time__lt": "2026-03-01T00:00:00Z"}


def test_a_lost_file_is_named_by_every_part_that_needs_it(lost: dict[str, str]) -> None:
    app = run("Overview", **lost)
    words = said(app).replace("\\", "")
    assert words.count("Not counted: ") >= 3 and "attempts from 2026-02-28T" in words
    assert "attempts from 2026-02-28T" in said(run("Destinations", **lost)).replace("\\", "")
    one = said(run("Destinations", tenant_ids="acme", destination_ids="d-good", **lost)).replace("\\", "")
    assert "Not counted: " in one


# Clicks


RANKED = pandas.DataFrame({"tenant_id": ["acme", "globex"], "destination_id": ["d-bad", "d-late"]})


def test_a_click_follows_the_row_that_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[str] = []
    drawn = ranking_table.on_click("clicked", RANKED, lambda row: followed.append(row["destination_id"]))
    monkeypatch.setattr(st, "session_state", {"clicked": {"row": 1, "label": ""}})
    drawn["on_click"](*drawn["args"])
    assert followed == ["d-late"]
    monkeypatch.setattr(st, "session_state", {"clicked": {"row": 9, "label": ""}})
    drawn["on_click"](*drawn["args"])
    assert followed == ["d-late"], "a row that is not there leads nowhere"


def test_a_click_on_the_overview_leads_to_the_page_of_what_was_clicked(show: Show) -> None:
    app = show("Overview", range="24h")
    app.session_state["leave"] = ("Destinations", {"tenant_ids": ["acme"], "destination_ids": ["d-bad"]})
    app.run()
    assert "attempts in the range" in said(app) and not app.exception
    assert param(app, "destination_ids") == ["d-bad"]


def test_every_id_of_the_overview_leads_to_its_page(show: Show) -> None:
    destination = (["acme"], ["d-bad"])
    for table, column, expected in (
        (0, "tenant_id", (["acme"], [])),
        (0, "destination_id", destination),
        (1, "tenant", (["acme"], [])),
        (1, "destination", destination),
    ):
        app = click(show("Overview", range="24h"), table, column)
        assert [title.value for title in app.title] == ["Destinations"]
        assert (param(app, "tenant_ids"), param(app, "destination_ids"), param(app, "range")) == (*expected, ["24h"])


def test_a_group_of_failures_leads_to_its_code_and_message(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[object] = []
    monkeypatch.setattr(failures, "leave", lambda page, pairs: left.append((page, dict(pairs))))
    app = show("Overview")
    assert not app.exception
    where = 'code = "503" and response_data.body = "said 503"'
    row = pandas.Series({"tenant_id": "acme", "destination_id": "d-bad", "where": where})
    failures._to_group(_Framed(), row)  # type: ignore[arg-type]
    expected = {"tenant_ids": "acme", "destination_ids": "d-bad", "status": "failed", "where": where}
    assert left == [("Attempts", expected)]
    assert len(rows(show("Attempts", limit="500", **expected))) == 60


class _Framed:
    """As much of a frame as a link needs."""

    class view:  # noqa: N801 - as a frame calls it
        @staticmethod
        def carried() -> list[tuple[str, str]]:
            return []
