"""Destinations: tenant, destination, its attempts."""

from __future__ import annotations

from tests.pages.conftest import Show, param, rows, said


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


def test_a_destination_without_its_tenant_asks_whose(show: Show) -> None:
    app = show("Destinations", destination_ids="d-late")
    next(button for button in app.button if button.label == "globex").click().run()
    assert param(app, "tenant_ids") == ["globex"]
    assert "No attempt ever went to this destination" in said(show("Destinations", destination_ids="nowhere"))
