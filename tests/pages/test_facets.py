"""Facets: the commonest values inside the selection, counted; a click lets one in or keeps it out."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from logstore.workbench.lists import facets
from logstore.workbench.view import View
from tests.pages.conftest import Show, click, param, rows, said

FACETS = {"event": ("tenant_id", "topic"), "attempt": ("tenant_id", "destination_id", "topic", "status", "code")}


def counts(app: AppTest, kind: str, column: str) -> dict[object, object]:
    """What the facet of a column says: each value with its number. The panel stands above the list."""
    place = len(app.dataframe) - 1 - len(FACETS[kind]) + FACETS[kind].index(column)
    return {row["value"]: row["count"] for row in rows(app, place)}


def facet(app: AppTest, kind: str, column: str, value: str) -> tuple[int, int]:
    """Where a value stands: which table, which row."""
    place = len(app.dataframe) - 1 - len(FACETS[kind]) + FACETS[kind].index(column)
    return place, [row["value"] for row in rows(app, place)].index(value)


def test_facets_are_off_until_they_are_asked_for(show: Show) -> None:
    app = show("Attempts")
    assert len(app.dataframe) == 1
    app.toggle(key="facets").set_value(True).run()
    assert param(app, "facets") == ["1"]
    assert len(app.dataframe) == 1 + len(FACETS["attempt"])


def test_facets_count_inside_the_selection(show: Show) -> None:
    app = show("Attempts", facets="1")
    assert counts(app, "attempt", "tenant_id") == {"acme": 120, "globex": 108}
    assert counts(app, "attempt", "code") == {"200": 114, "503": 60, "timeout": 54}
    narrow = show("Attempts", facets="1", tenant_ids="acme", where="data.number < 10")
    assert counts(narrow, "attempt", "tenant_id") == {"acme": 10}
    assert counts(narrow, "attempt", "destination_id") == {"d-good": 5, "d-bad": 5}
    assert counts(narrow, "attempt", "status") == {"success": 5, "failed": 5}
    assert counts(show("Events", facets="1", range="24h"), "event", "topic") == {
        "order.created": 80,
        "user.updated": 40,
    }


@pytest.mark.parametrize(
    ("column", "value", "written"),
    [
        ("tenant_id", "globex", ("tenant_ids", "globex")),
        ("destination_id", "d-bad", ("destination_ids", "d-bad")),
        ("topic", "user.updated", ("topics", "user.updated")),
        ("status", "failed", ("status", "failed")),
        ("code", "timeout", ("where", 'code = "timeout"')),
    ],
)
def test_a_click_on_a_value_shows_only_it_and_one_more_click_shows_any(
    show: Show, column: str, value: str, written: tuple[str, str]
) -> None:
    app = show("Attempts", facets="1", limit="500")
    number = counts(app, "attempt", column)[value]
    place, row = facet(app, "attempt", column, value)
    click(app, place, "value", row)
    assert param(app, written[0]) == [written[1]]
    assert len(rows(app)) == number
    assert counts(app, "attempt", column) == {value: number}
    click(app, place, "value", 0)
    assert not param(app, written[0])
    assert len(rows(app)) == 228


def test_a_cross_keeps_a_value_out_and_several_become_one_list(show: Show) -> None:
    app = show("Attempts", facets="1", limit="500")
    click(app, facet(app, "attempt", "code", "503")[0], "not", facet(app, "attempt", "code", "503")[1])
    assert param(app, "where") == ['code != "503"']
    assert len(rows(app)) == 228 - 60
    click(app, facet(app, "attempt", "code", "timeout")[0], "not", facet(app, "attempt", "code", "timeout")[1])
    assert param(app, "where") == ['code not in ["503", "timeout"]']
    assert {row["code"] for row in rows(app)} == {"200"}


def test_keeping_out_what_was_asked_for_takes_it_out_of_what_is_asked_for() -> None:
    view = View().select(tenant_ids=("acme", "globex"))
    assert facets.excluded(view, "attempt", "tenant_id", "acme").selection.tenant_ids == ("globex",)
    failed = facets.excluded(View().select(status="failed"), "attempt", "status", "failed").selection
    assert (failed.status, failed.where) == (None, 'status != "failed"')


def test_a_filter_that_is_full_says_so_in_plain_text(show: Show) -> None:
    full = f'data.x != "{":red[x] " * 509}"'
    app = show("Attempts", facets="1", where=full)
    place, row = facet(app, "attempt", "code", "503")
    click(app, place, "not", row)
    assert param(app, "where") == [full]
    (toast,) = app.toast
    assert "The filter takes no more" in toast.value and ":red[" not in toast.value


def test_a_selection_without_records_says_that_there_is_nothing_to_count(show: Show) -> None:
    assert "no attempts to count" in said(show("Attempts", facets="1", tenant_ids="nobody"))
