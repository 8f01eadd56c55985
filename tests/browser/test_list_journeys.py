"""Taking a whole selection home, and mending a filter, with a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pyarrow.parquet
import pytest
from playwright.sync_api import Page, expect

import logstore
from logstore import partitions
from logstore.embedded import EmbeddedServer
from tests.browser.conftest import cells, settled, wait_for
from tests.browser.servers import serving
from tests.conftest import new_database

pytestmark = pytest.mark.browser

ROWS = 100_000
_FILL = """
INSERT INTO attempts (id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, event_time, event_data,
    event_metadata, eligible_for_retry)
SELECT 'att_' || n, 'evt_' || n, 'acme', 'd-' || n %% 3, 'order.created', 'success', %(end)s - n * interval '1 second', 1,
       %(end)s - n * interval '1 second', jsonb_build_object('number', n), '{}', true
FROM generate_series(1, %(rows)s) n"""


@pytest.fixture(scope="module")
def large(server: EmbeddedServer) -> Iterator[str]:
    """A workbench over many attempts of the last 28 hours."""
    dsn, end = new_database(server), datetime.now(UTC)
    with logstore.open(dsn, role="operator") as store:
        months = {partitions.month_of(end), partitions.month_of(end - timedelta(seconds=ROWS))}
        partitions.ensure(store.database, {("attempts", month) for month in months})
    with psycopg.connect(dsn) as connection:
        connection.execute(_FILL, {"end": end, "rows": ROWS})
    with serving(dsn) as address:
        yield address


@pytest.mark.parametrize("label", ["CSV", "Parquet"])
def test_every_row_of_a_selection_is_downloaded_and_not_only_the_page(large: str, page: Page, label: str) -> None:
    page.goto(f"{large}/Attempts?range=7d&limit=25")
    settled(page)
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name=label, exact=True).click()
    path = download.value.path()
    if label == "CSV":
        ids = [line.split(",")[0] for line in path.read_text().splitlines()[1:]]
    else:
        ids = pyarrow.parquet.read_table(path, columns=["id"])["id"].to_pylist()
    assert ids == [f"att_{number}" for number in range(1, ROWS + 1)]


def test_a_broken_filter_says_where_and_a_mended_one_gives_rows(workbench: str, page: Page) -> None:
    page.goto(f"{workbench}/Attempts?range=7d")
    settled(page)
    box = page.get_by_role("textbox", name="Filter", exact=True)
    box.fill('tenant_id = "acme" and code >')
    box.press("Enter")
    said = page.locator("[data-testid=stCode]").first
    expect(said).to_contain_text("↑")
    first, second = said.inner_text().splitlines()[:2]
    assert second.index("↑") >= len(first.rstrip()) - 1, "the arrow stands under the place where something is missing"
    expect(page.get_by_text("Traceback")).to_have_count(0)
    box.fill('tenant_id = "acme" and code >= 500')
    box.press("Enter")
    page.wait_for_url("**code+%3E%3D+500**")
    wait_for(page, lambda: len(cells(page)) > 5, "the rows that match")
    expect(page.get_by_text("60 attempts, ")).to_have_count(0)  # a page of 50
    expect(page.get_by_text("50 attempts, ")).to_be_visible()
