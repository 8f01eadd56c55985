"""Partitions with a real browser: a plan is read, applied, watched, and a month of it taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import logstore
from logstore import maintenance, partitions
from logstore.embedded import EmbeddedServer
from tests.browser.conftest import cells, click_cell, settled, wait_for
from tests.browser.servers import serving
from tests.conftest import new_database
from tests.records_of import attempt

pytestmark = pytest.mark.browser


def _months_ago(number: int) -> datetime:
    now = datetime.now(UTC)
    count = now.year * 12 + now.month - 1 - number
    return datetime(count // 12, count % 12 + 1, 1, tzinfo=UTC)


def test_a_plan_is_read_and_applied_and_a_month_taken_back(
    server: EmbeddedServer, short_folder: Path, page: Page
) -> None:
    home, dsn = short_folder / "parts", new_database(server)
    times = [_months_ago(number) + timedelta(seconds=n) for number in (4, 1, 0) for n in range(1, 21)]
    given = [attempt(f"a{n}", time=time, event_time=time) for n, time in enumerate(times)]
    old = partitions.partition_name("attempts", _months_ago(4).date())
    with logstore.open(dsn, role="operator", home=home) as store:
        store.insert_many(attempts=given)
        with serving(dsn, role="operator", LOGSTORE_HOME=str(home)) as address:
            recent = partitions.partition_name("attempts", _months_ago(1).date())
            page.goto(f"{address}/Partitions?zone=browser&partition={recent}")  # a deep link on a cold server
            settled(page)
            expect(page.get_by_role("heading", name=recent)).to_be_visible()
            expect(page.get_by_text("past retention and still in PostgreSQL")).to_be_visible()
            page.get_by_text("The exact SQL of").click()
            expect(page.locator("[data-testid=stCode]").filter(has_text=f'DETACH PARTITION "{old}"')).to_be_visible()
            page.get_by_role("button", name="Apply this plan").click()
            expect(page.get_by_text(f"{old} served from the archive now, undo is possible")).to_be_visible()
            expect(page.get_by_text("Nothing to do: every month is where its policy wants it.")).to_be_visible()
            assert "cold" in store.list_attempt(order="asc").tiers
            page.locator("[data-testid=stPlotlyChart] .legendtext", has_text="detached").wait_for()

            position = next(n for n, row in enumerate(_listed(page)) if old in row)
            click_cell(page, old, x=16, row=position, table=1)
            page.wait_for_url(f"**partition={old}**")
            settled(page)  # a button that is just drawn anew does not see the click
            page.get_by_role("button", name="Undo: take it back into PostgreSQL").click()
            expect(page.get_by_text(f"{old} is in PostgreSQL again, and open")).to_be_visible()
            wait_for(page, lambda: any(old in row and "open" in "".join(row) for row in _listed(page)), "an open month")
            assert [entry.action for entry in maintenance.log(store, limit=2)] == ["undo", "fold"]
        found = store.list_attempt(order="asc", limit=100)
        assert (list(found), set(found.tiers)) == (given, {"hot"})


def _listed(page: Page) -> list[list[str]]:
    """The table of months, when it is drawn; the one before it is folded away with the checks."""
    wait_for(page, lambda: len(cells(page, 1)) > 2, "the months")
    return cells(page, 1)
