"""What people come for, done with a real browser."""

from __future__ import annotations

import re
from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from tests.browser import servers
from tests.browser.conftest import cells, click_cell, settled, wait_for

pytestmark = pytest.mark.browser

# Where the ids begin in the tables, in pixels from the left; only their text can be clicked.
_EVENT_OF_ATTEMPT, _TENANT_OF_RANKING, _DESTINATION_OF_RANKING = 485, 28, 168


def test_a_deep_link_with_parameters_works_on_a_cold_server_for_every_page(small: str, page: Page) -> None:
    """Each page is the first thing that its server shows."""
    links = {
        "/?range=30d&zone=browser": "Failing destinations",
        "/Events?tenant_ids=acme&limit=25": "25 events",
        "/Attempts?tenant_ids=acme&destination_ids=d-bad&status=failed&range=all&limit=100": "60 attempts, ",
        "/Event?id=evt_001": "2 destinations: 1 delivered, 1 failing.",
        "/Destinations?tenant_ids=acme&destination_ids=d-bad": "503 × 60",
    }
    with ExitStack() as running:
        started = [servers.start(LOGSTORE_DSN=small, LOGSTORE_ROLE="reader") for _ in links]
        running.callback(servers.stop_all, [process for process, _ in started])
        for (process, address), (link, promise) in zip(started, links.items(), strict=True):
            servers.wait_until_it_answers(process, address)
            page.goto(address + link)
            expect(page.get_by_text(promise).first).to_be_visible()
            expect(page.get_by_text("Time zone")).to_be_visible()
            expect(page).to_have_title(re.compile("logstore"))


def test_a_failed_event_is_found_by_its_id_and_says_why(workbench: str, page: Page) -> None:
    settled_at(page, workbench)
    box = page.get_by_role("textbox", name="Find an id")
    box.fill("evt_001")
    box.press("Enter")
    expect(page.get_by_text("2 destinations: 1 delivered, 1 failing.")).to_be_visible()
    expect(page.get_by_text("The last answer was 503: said 503.")).to_be_visible()
    assert "/Event?" in page.url
    assert "id=evt_001" in page.url


def test_an_attempt_is_found_by_its_id_and_is_the_one_that_is_open(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Events")
    box = page.get_by_role("textbox", name="Find an id")
    box.fill("att_002_d-late_1")
    box.press("Enter")
    expect(page.get_by_text("att_002_d-late_1")).to_be_visible()
    assert "open=att_002_d-late_1" in page.url


def test_tenant_destination_page_three_an_event_and_back_is_the_same_place(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Destinations?limit=10")
    click_cell(page, "acme", x=_TENANT_OF_RANKING, row=0)
    page.wait_for_url("**tenant_ids=acme**")
    expect(page.get_by_text("Destinations, most failed attempts first")).to_be_visible()
    click_cell(page, "d-bad", x=_DESTINATION_OF_RANKING, row=0)
    page.wait_for_url("**destination_ids=d-bad**")
    for first in ("evt_021", "evt_041"):
        page.get_by_role("button", name="Older").click()
        wait_for(page, lambda first=first: starts_with(page, first), f"the page of {first}")
    there = page.url
    click_cell(page, "evt_045", x=_EVENT_OF_ATTEMPT, row=2)
    page.wait_for_url("**/Event?**")
    expect(page.get_by_text("2 destinations: 1 delivered, 1 failing.")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Destinations")).to_be_visible()
    wait_for(page, lambda: starts_with(page, "evt_041"), "the third page again")
    assert all(part in page.url for part in there.split("?")[1].split("&"))


def test_a_box_drawn_on_the_histogram_narrows_the_list(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Attempts?range=24h&limit=500")
    expect(page.get_by_text(re.compile(r"^\d+ attempts, "))).to_be_visible()
    before = page.get_by_text(re.compile(r"^\d+ attempts, ")).inner_text()
    drag(page, 0.55, 0.75)
    page.wait_for_url("**time.gte=**")
    wait_for(page, lambda: page.get_by_text(re.compile(r"^\d+ attempts, ")).inner_text() != before, "a shorter list")
    after = page.get_by_text(re.compile(r"^\d+ attempts, ")).inner_text()
    assert 0 < int(after.split()[0]) < int(before.split()[0])
    page.go_back()
    wait_for(page, lambda: page.get_by_text(re.compile(r"^\d+ attempts, ")).inner_text() == before, "the whole list")


def test_a_broken_cursor_in_the_url_is_a_sentence_and_a_way_on(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Attempts?next=brokenCursor&tenant_ids=acme")
    expect(page.get_by_text("This link's place in the list cannot be read")).to_be_visible()
    page.get_by_role("button", name="Go to the newest page").click()
    wait_for(page, lambda: len(cells(page)) > 5, "rows")
    assert "next=" not in page.url
    assert "tenant_ids=acme" in page.url


def test_keys_turn_the_pages_and_back_returns(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Events?limit=25")
    wait_for(page, lambda: starts_with(page, "evt_000"), "the first page")
    page.keyboard.press("j")
    wait_for(page, lambda: starts_with(page, "evt_025"), "the older page")
    page.keyboard.press("k")
    wait_for(page, lambda: starts_with(page, "evt_000"), "the newer page")
    page.go_back()
    wait_for(page, lambda: starts_with(page, "evt_025"), "the older page again")


def test_a_chosen_attempt_opens_and_its_link_opens_it_again(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Attempts?status=failed")
    click_cell(page, "failed", x=16, row=0)
    expect(page.get_by_role("dialog").get_by_text("The whole response")).to_be_visible()
    page.wait_for_url("**open=att_**")
    settled_at(page, page.url, "")
    expect(page.get_by_role("dialog").get_by_text("The whole response")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Go to the event").click()
    page.wait_for_url("**/Event?**")


def test_a_closed_attempt_opens_again_with_one_click(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Attempts?status=failed")
    dialog = page.get_by_role("dialog")
    for _ in range(2):
        click_cell(page, "failed", x=16, row=0)
        expect(dialog.get_by_text("The whole response")).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.wait_for_url(lambda url: "open=" not in url)


def test_the_menu_takes_range_and_zone_along(workbench: str, page: Page) -> None:
    settled_at(page, workbench, "/Events?range=30d&zone=browser&tenant_ids=acme")
    page.get_by_role("link", name="Attempts").click()
    page.wait_for_url("**/Attempts?**")
    assert all(part in page.url for part in ("range=30d", "zone=browser", "tenant_ids=acme"))
    wait_for(page, lambda: cells(page) != [], "rows")
    expect(page.get_by_text("times in Europe/Berlin")).to_be_visible()


def starts_with(page: Page, text: str) -> bool:
    """Whether the first row of the table holds this text."""
    return any(text in cell for cell in next(iter(cells(page)), []))


def settled_at(page: Page, address: str, path: str = "/") -> None:
    page.goto(address + path)
    settled(page)


def drag(page: Page, start: float, end: float) -> None:
    """Draw a box over a part of the histogram."""
    chart = page.locator("[data-testid=stPlotlyChart] .nsewdrag").first
    chart.wait_for()
    page.wait_for_timeout(500)  # plotly attaches its handlers after it has drawn
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * start, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, middle, steps=8)
    page.mouse.up()
