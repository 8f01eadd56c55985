"""Overview: counts that name their unit, what fails, where to go."""

from __future__ import annotations

from tests.pages.conftest import Show, rows


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
    failing, newest = rows(app, 0), rows(app, 1)
    assert [row["destination_id"] for row in failing] == ["d-bad", "d-late"]
    assert {row["status"] for row in newest} == {"❌ failed"}


def test_every_page_runs_with_every_range(show: Show) -> None:
    for page in ("Overview", "Events", "Attempts", "Destinations"):
        for name in ("1h", "24h", "30d", "90d", "all"):
            show(page, range=name)
