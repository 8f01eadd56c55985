"""Payloads, ids and answers that were written to do harm: shown as text, nothing runs, the page stays usable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import logstore
from logstore import Attempt, Event
from logstore.embedded import EmbeddedServer
from tests.browser.conftest import cells, settled, wait_for
from tests.browser.servers import serving
from tests.conftest import new_database

pytestmark = pytest.mark.browser

SCRIPT = "<script>alert('ran')</script><img src=x onerror=\"alert('ran')\"><b>bold</b>"
MARKDOWN = "[link](javascript:alert(1)) **loud** :red[red] $\\frac{1}{2}$ `code` ![i](http://203.0.113.1/x.png)"
RIGHT_TO_LEFT = "\u202eمرحبا بالعالم 😀👩‍👩‍👧‍👦"
FORMULA = '=HYPERLINK("http://203.0.113.1")'
IMAGE = "![x](http://203.0.113.1/x.png) :red[loud]"
MARKS = {"script": SCRIPT, "markdown": MARKDOWN, "rtl": RIGHT_TO_LEFT, "formula": FORMULA}


_LISTS = ("/Attempts?columns=time,response,data,id,code,said", "/Destinations")


@pytest.fixture(scope="module")
def hostile(server: EmbeddedServer) -> Iterator[str]:
    dsn, now = new_database(server), datetime.now(UTC)
    with logstore.open(dsn, role="operator") as store:
        for number, (name, text) in enumerate(MARKS.items()):
            event = Event(
                id=f"evt_{name} {text}",
                tenant_id=f"tenant {text}",
                time=now - timedelta(minutes=number + 1),
                topic=f"topic {text}",
                data={text: [text, {"nested": text}]},
                metadata={"note": text},
            )
            answer = {"body": text, "error": text, text: text}
            fields = {"code": text[:60], "response_data": answer, "status": "failed", "time": event.time}
            first = Attempt.of(event, id=f"att_{name}", destination_id=f"des {text}", **fields)
            later = {
                "id": f"att_{name}_2",
                "code": IMAGE,
                "time": event.time + timedelta(seconds=1),
                "attempt_number": 2,
            }
            store.insert_many([event], [first, replace(first, **later)])
        huge = Event(
            id="evt_huge",
            tenant_id="t",
            time=now,
            topic="huge",
            data={"items": [{"number": i, "text": SCRIPT * 2} for i in range(6000)], "one": "x" * 1_000_000},
        )
        fields = {"response_data": {"body": "y" * 1_000_000}, "status": "failed", "time": huge.time}
        store.insert_many([huge], [Attempt.of(huge, id="att_huge", destination_id="d", **fields)])
    with serving(dsn) as address:
        yield address


def test_lists_show_hostile_text_as_text(hostile: str, page: Page) -> None:
    for path in ("/", "/Events", "/Attempts?facets=1", *_LISTS):
        page.goto(hostile + path)
        settled(page)
        wait_for(page, lambda: any("<script>" in cell for row in cells(page) for cell in row), "the text of the script")
        assert_nothing_ran(page)


@pytest.mark.parametrize("name", MARKS)
def test_an_event_full_of_hostile_text_shows_it_as_text(hostile: str, page: Page, name: str) -> None:
    page.goto(hostile)
    settled(page)
    box = page.get_by_role("textbox", name="Find an id")
    box.fill(f"att_{name}")
    box.press("Enter")
    page.wait_for_url("**/Event?**")
    expect(page.get_by_text("Payload", exact=True)).to_be_visible()
    main = page.locator("[data-testid=stMain]")
    expect(main).to_contain_text(MARKS[name][:40])
    expect(main.get_by_text("Timeline", exact=True)).to_be_visible()
    page.locator("[data-testid=stPlotlyChart] .nsewdrag").first.wait_for()
    choices = main.locator("[data-testid=stButtonGroup] button").filter(has_text=" · ")
    expect(choices).to_have_count(2)
    expect(choices.nth(1)).to_contain_text("2 · ![x](http://")
    assert_nothing_ran(page)


def test_a_megabyte_of_json_leaves_the_page_usable(hostile: str, page: Page) -> None:
    page.goto(f"{hostile}/Event?id=evt_huge")
    settled(page)
    expect(page.get_by_text("This is a part of it").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as JSON").click()
    assert download.value.path().stat().st_size > 1_900_000
    page.get_by_role("tab", name="SQL").click()
    expect(page.get_by_text("SELECT * FROM events")).to_be_visible()
    assert_nothing_ran(page)


def assert_nothing_ran(page: Page) -> None:
    """No element was made out of the text; a dialog or a request outside fails in the fixture."""
    page.wait_for_timeout(300)
    assert page.locator("[data-testid=stMain] script:not([src])").count() == 0
    assert page.locator("img[src=x], img[src*='203.0.113.1'], a[href^='javascript']").count() == 0
    assert page.locator("a[href^='http://203.0.113.1']").count() == 0


def test_a_hostile_link_is_answered_with_text(hostile: str, page: Page) -> None:
    for name in ("range", "next", "where", "status", "open"):
        page.goto(f"{hostile}/Attempts?{urlencode({name: SCRIPT + MARKDOWN})}")
        settled(page)
        assert_nothing_ran(page)
