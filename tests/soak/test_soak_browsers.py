"""Ten browsers at once, paging and filtering for a minute: no error, no cross-talk, and memory that stays flat.

LOGSTORE_SOAK_SECONDS sets another length.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import logstore
from logstore import Attempt, Event
from logstore.embedded import EmbeddedServer
from tests.browser import servers
from tests.browser.conftest import browser, cells, settled  # noqa: F401 - a fixture
from tests.conftest import new_database

pytestmark = pytest.mark.soak

BROWSERS = 10
SECONDS = float(os.environ.get("LOGSTORE_SOAK_SECONDS", "60"))
GROWTH = 1.15  # that a server's memory may be larger at the end than when all had looked around once


@pytest.fixture(scope="module")
def running(server: EmbeddedServer) -> Iterator[tuple[Any, str]]:
    """A server over a log of ten tenants, 300 events each."""
    dsn, now = new_database(server), datetime.now(UTC)
    with logstore.open(dsn, role="operator") as store:
        for tenant in range(BROWSERS):
            events = [
                Event(
                    id=f"evt_{tenant}_{n}", tenant_id=f"tenant-{tenant}", time=now - timedelta(minutes=5 * n + 1),
                    topic="order.created" if n % 3 else "user.updated", data={"number": n},
                )
                for n in range(300)
            ]  # fmt: skip
            attempts = [
                Attempt.of(
                    event, id=event.id.replace("evt", "att"), destination_id=f"d-{tenant}", time=event.time,
                    status="success" if n % 2 else "failed", code="200" if n % 2 else "503",
                )
                for n, event in enumerate(events)
            ]  # fmt: skip
            store.insert_many(events, attempts)
    process, address = servers.start(LOGSTORE_DSN=dsn, LOGSTORE_ROLE="reader")
    try:
        servers.wait_until_it_answers(process, address)
        yield process, address
    finally:
        servers.stop(process)


def test_ten_people_at_once_see_each_their_own_rows_and_no_error(
    running: tuple[Any, str],
    browser: Browser,  # noqa: F811
) -> None:
    process, address = running
    contexts = [browser.new_context(viewport={"width": 1200, "height": 900}) for _ in range(BROWSERS)]
    pages = [context.new_page() for context in contexts]
    rng, turns = random.Random(7), 0
    for tenant, page in enumerate(pages):
        page.goto(f"{address}/{rng.choice(['Events', 'Attempts'])}?tenant_ids=tenant-{tenant}&range=7d&limit=25")
    for tenant, page in enumerate(pages):
        _sees_only_its_own(settled(page), tenant)
    before, until = _resident(process.pid), time.monotonic() + SECONDS
    while time.monotonic() < until:
        # All act before any is waited for: their scripts run at the same time.
        for page in pages:
            _act(page, rng)
        for tenant, page in enumerate(pages):
            _sees_only_its_own(settled(page), tenant)
            turns += 1
    after = _resident(process.pid)
    print(f"{turns} turns of {BROWSERS} browsers; memory {before / 1e6:.0f} MB, then {after / 1e6:.0f} MB")
    for context in contexts:
        context.close()
    assert turns >= BROWSERS, "not even one turn each proves nothing"
    assert after <= before * GROWTH


def _act(page: Page, rng: random.Random) -> None:
    """Turn a page, or filter; where a button has nothing to turn to, go on with a filter."""
    older, newer = (page.get_by_role("button", name=name) for name in ("Older", "Newer"))
    choice = rng.random()
    if choice < 0.5 and older.is_enabled():
        older.click()
    elif choice < 0.75 and newer.is_enabled():
        newer.click()
    else:
        box = page.get_by_role("textbox", name="Filter", exact=True)
        box.fill(rng.choice(["", 'topic = "order.created"', 'topic startswith "user."', 'id endswith "7"']))
        box.press("Enter")


def _sees_only_its_own(page: Page, tenant: int) -> None:
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text(re.compile(r"^\d+ (events|attempts), "))).to_be_visible()
    found = {owner for row in cells(page) for cell in row for owner in re.findall(r"\bevt_(\d+)_", cell)}
    assert found == {str(tenant)}, f"tenant-{tenant} sees the rows of {found}"


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024
