"""A real Chromium and real servers of the workbench; everything that is started is stopped."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import logstore
from logstore.embedded import EmbeddedServer
from tests.browser.servers import SECONDS, serving
from tests.conftest import new_database
from tests.pages.conftest import small_log

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: run `make setup`")

playwright.expect.set_options(timeout=SECONDS * 1000)
SCREENSHOTS = Path(__file__).parent / "screenshots"
_FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
]


def chromium() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on PATH: apt-get install chromium, then run the browser tests again")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def window(browser: playwright.Browser) -> Iterator[playwright.BrowserContext]:
    """One profile for all tests: Streamlit's own files are fetched once, sessions live in pages."""
    context = browser.new_context(viewport={"width": 1440, "height": 1400}, timezone_id="Europe/Berlin")
    context.set_default_timeout(SECONDS * 1000)
    yield context
    context.close()


@pytest.fixture
def page(window: playwright.BrowserContext, request: pytest.FixtureRequest) -> Iterator[playwright.Page]:
    """A fresh page, kept as a screenshot; one that reaches outside or runs a script fails its test."""
    page = window.new_page()
    outside: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda r: outside.append(r.url) if not r.url.startswith(_INSIDE) else None)
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    yield page
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{re.sub(r'[^a-z_]', '_', request.node.name)[:80]}.png")
    page.close()
    assert not outside, f"the page asked the network for {outside[:3]}"
    assert not dialogs, f"a script ran: {dialogs[:3]}"


_INSIDE = ("http://127.0.0.1:", "data:", "blob:", "ws://127.0.0.1:")


@pytest.fixture(scope="session")
def small(server: EmbeddedServer) -> str:
    """A database with the small log of the page tests."""
    dsn = new_database(server)
    with logstore.open(dsn, role="operator") as store:
        store.insert_many(*small_log(datetime.now(UTC)))
    return dsn


@pytest.fixture(scope="module")
def workbench(small: str) -> Iterator[str]:
    """One server for the tests of a module."""
    with serving(small) as address:
        yield address


def settled(page: playwright.Page) -> playwright.Page:
    """Wait until the script has run and the page shows its end."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.locator("h1").first.wait_for()
    return page


def wait_for(page: playwright.Page, holds: Callable[[], bool], what: str) -> None:
    """Wait, within bounds, until something holds."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {SECONDS} s for: {what}"
        page.wait_for_timeout(100)


def cells(page: playwright.Page, table: int = 0) -> list[list[str]]:
    """The cells of a table that are in the DOM, row by row without the heading."""
    rows = page.locator("[data-testid=stDataFrame]").nth(table).locator("canvas tbody tr")
    return [[cell.text_content() or "" for cell in row.locator("td").all()] for row in rows.all()]


def click_cell(page: playwright.Page, text: str, *, x: int, row: int, table: int = 0) -> None:
    """Click into a row that holds a text; the table is drawn on a canvas, so `x` counts pixels from its left edge."""
    frame = page.locator("[data-testid=stDataFrame]").nth(table)
    wait_for(page, lambda: any(text in cell for cell in (cells(page, table)[row:] or [[]])[0]), f"{text} in row {row}")
    settled(page)
    page.wait_for_timeout(300)  # pixels come a little before or after the text
    frame.scroll_into_view_if_needed()
    box = frame.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + _ROW_PIXELS * (row + 1.5))


_ROW_PIXELS = 33
