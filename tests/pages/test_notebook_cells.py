"""Open in notebook: the cell that a page offers runs as it is, and gives the rows that the page shows."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import PAGES, Show, rows

WHERE = """data.number >= 0 and metadata.region = "eu" and not topic = "';\\"\\"\\"" """


def cell(app: AppTest) -> str:
    return next(str(code.value) for code in app.sidebar.code)


def result(app: AppTest) -> Any:
    """Run the cell as a notebook does: its last line is its value."""
    *lines, last = cell(app).splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    try:
        return eval(last, names)
    finally:
        names["store"].close()


@pytest.mark.parametrize("page", PAGES)
def test_the_cell_of_every_page_runs(show: Show, page: str) -> None:
    assert result(show(page, id="evt_001") if page == "Event" else show(page)) is not None


def test_a_list_gives_its_rows(show: Show) -> None:
    shown = show("Attempts", tenant_ids=["acme", "o'\\x"], status="failed", range="24h", limit="25", where=WHERE)
    given = result(shown)
    assert given["event_id"].tolist() == [row["event"] for row in rows(shown)] and len(given) == 25


def test_a_place_in_a_list_is_kept(show: Show) -> None:
    app = show("Attempts", limit="25", range="all")
    first = [row["event"] for row in rows(app)]
    next(button for button in app.button if button.label == "Older").click().run()
    assert result(app)["event_id"].tolist() == [row["event"] for row in rows(app)] != first


def test_counts_and_exact_times_are_the_pages(show: Show) -> None:
    day = {"time__gte": "2020-01-01T00:00:00Z", "time__lt": "2099-01-01T00:00:00Z"}
    counted = result(show("Destinations", **day)).set_index("destination_id")["failed_count"].to_dict()
    assert counted == {"d-bad": 60, "d-late": 54, "d-good": 0}
    assert result(show("Overview"))["count"].sum() == 228


def test_an_event_a_question_and_sql_are_asked_again(show: Show) -> None:
    assert result(show("Event", id="evt_001"))["destination_id"].tolist() == ["d-bad", "d-good"]
    asked = show("SQL", question="noisiest_tenants", tiers="both", **{"p.limit": "1"})
    assert len(result(asked)) == 1
    assert result(show("SQL", sql="SELECT '''\"\"\"' AS q"))["q"].tolist() == ['\'"""']
