"""A real Chromium and real servers of the workbench; everything that is started is stopped."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

import logstore
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from tests.conftest import new_database
from tests.pages.conftest import small_log

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: run `make setup`")

SCREENSHOTS = Path(__file__).parent / "screenshots"
SECONDS = 30  # that a server may take to start, or a page to appear
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


@contextmanager
def serving(dsn: str) -> Iterator[str]:
    """A server of its own, cold; its address while it runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LOGSTORE_", "STREAMLIT_"))}
    env |= {"LOGSTORE_DSN": dsn, "LOGSTORE_ROLE": "reader", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "logstore", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=env, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        _wait_until_it_answers(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=SECONDS)
            raise


def _wait_until_it_answers(process: subprocess.Popen[str], address: str) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the server ended: {process.stdout.read() if process.stdout else ''}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"the server does not answer within {SECONDS} s")


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


def click_cell(page: playwright.Page, *, x: int, row: int, table: int = 0) -> None:
    """Click into a table, which is drawn on a canvas: `x` pixels from its left edge."""
    frame = page.locator("[data-testid=stDataFrame]").nth(table)
    wait_for(page, lambda: len(cells(page, table)) > row, f"row {row} of the table")
    frame.scroll_into_view_if_needed()
    box = frame.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + _ROW_PIXELS * (row + 1.5))


_ROW_PIXELS = 33
