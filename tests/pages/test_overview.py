"""Overview: counts that name their unit, what fails, where to go."""

from __future__ import annotations

from tests.pages.conftest import Show, rows, said


def test_counts_name_their_unit(show: Show) -> None:
    numbers = {metric.label: metric.value for metric in show("Overview").metric}
    assert numbers == {
        "Events published": "120",
        "Attempts": "228",
        "Attempts that succeeded": "50.0%",
        "Events not delivered": "60",
        "Events never attempted": "6",
    }


def test_failing_destinations_and_the_newest_failures_are_listed(show: Show) -> None:
    app = show("Overview")
    failing, newest = rows(app, 0), rows(app, -1)
    assert [row["destination_id"] for row in failing] == ["d-bad", "d-late"]
    assert {row["status"] for row in newest} == {"❌ failed"}


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
