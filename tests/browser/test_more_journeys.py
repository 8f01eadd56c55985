"""Loading, asking and looking at fields, done with a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import logstore
from logstore import archive
from logstore.embedded import EmbeddedServer
from tests.browser import servers
from tests.browser.conftest import cells, click_cell, settled, wait_for
from tests.conftest import new_database
from tests.pages.conftest import small_log
from tests.records_of import START, attempt, event

pytestmark = pytest.mark.browser

_SPARK_SECONDS = 150  # that a load may take from the click to its end, on a busy machine
_HOSTILE = "<script>alert('ran')</script><img src=x onerror=\"alert('ran')\">"


@pytest.fixture(scope="module")
def settings(server: EmbeddedServer, short_folder: Path) -> dict[str, str]:
    """A log with a month in the archive, and a server of it that may write."""
    home, dsn = short_folder / "more", new_database(server)
    with logstore.open(dsn, role="operator", home=home) as store:
        store.insert_many(*small_log(datetime.now(UTC)))
        times = [START + timedelta(minutes=n) for n in range(30)]
        store.insert_many(
            [event(f"e{n}", time=time) for n, time in enumerate(times)],
            [attempt(f"a{n}", event_id=f"e{n}", time=time, event_time=time) for n, time in enumerate(times)],
        )
        for parent in ("events", "attempts"):
            archive.export(store, f"{parent}_2026_03")
            archive.flip(store, f"{parent}_2026_03")
    return {
        "LOGSTORE_DSN": dsn,
        "LOGSTORE_HOME": str(home),
        "LOGSTORE_ROLE": "operator",
        "LOGSTORE_SPARK_MASTER": "local[2]",
    }


@pytest.fixture(scope="module")
def operating(settings: dict[str, str]) -> Iterator[str]:
    process, address = servers.start(**settings)
    try:
        servers.wait_until_it_answers(process, address)
        yield address
    finally:
        servers.stop(process)


@pytest.mark.parametrize(
    ("path", "parameters", "promise"),
    [
        ("/Loads", {"state": "discarded", "zone": "browser"}, "Nothing was loaded yet"),
        ("/SQL", {"question": "noisiest_tenants", "run": "1", "p.limit": "3"}, "1 row in"),
        ("/Fields", {"topics": "user.updated", "open": "data.number"}, "data.number = "),
    ],
)
def test_a_deep_link_works_on_a_cold_server(
    settings: dict[str, str], page: Page, path: str, parameters: dict[str, str], promise: str
) -> None:
    process, address = servers.start(**settings)
    try:
        servers.wait_until_it_answers(process, address)
        page.goto(f"{address}{path}?{urlencode(parameters)}")
        expect(page.locator("[data-testid=stMain]")).to_contain_text(promise)
        expect(page.get_by_text("Time zone")).to_be_visible()
    finally:
        servers.stop(process)


def test_a_named_question_is_filled_in_run_and_goes_on_in_the_editor(operating: str, page: Page) -> None:
    page.goto(f"{operating}/SQL")
    settled(page)
    page.get_by_role("combobox", name="Start from").click()
    page.get_by_text("Which tenants cause the most attempts?").click()
    page.wait_for_url("**question=noisiest_tenants**")
    # Until the editor is gone, the button that says Run is the editor's.
    expect(page.get_by_role("textbox", name="SQL over the views")).to_be_hidden()
    settled(page)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("1 row in")).to_be_visible()
    wait_for(page, lambda: [cell for row in cells(page) for cell in row][:2] == ["acme", "30"], "the answer")
    page.get_by_text("Its SQL").click()
    page.get_by_role("button", name="Go on from it in the editor").click()
    expect(page.get_by_role("textbox", name="SQL over the views")).to_have_value(re.compile("^SELECT tenant_id"))
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("1 row in")).to_be_visible()


def test_a_select_by_hand_is_answered_drawn_and_downloaded_and_an_attack_is_a_sentence(
    operating: str, page: Page
) -> None:
    page.goto(f"{operating}/SQL")
    settled(page)
    editor = page.get_by_role("textbox", name="SQL over the views")
    editor.fill("SELECT '=1+1' AS formula, topic, count(*) AS n FROM events GROUP BY ALL")
    editor.press("Control+Enter")
    expect(page.get_by_text("1 row in")).to_be_visible()
    assert "sql=SELECT" in page.url
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert download.value.path().read_text() == "formula,topic,n\n'=1+1,order.created,30\n"
    page.get_by_role("combobox", name="Chart").click()
    page.get_by_role("option", name="Bars").click()
    page.locator("[data-testid=stPlotlyChart] .nsewdrag").first.wait_for()
    editor.fill(f"SELECT * FROM read_text('/etc/passwd') WHERE '{_HOSTILE.replace(chr(39), '')}' = ''")
    editor.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("The function read_text may not be used here.")
    page.go_back()
    expect(editor).to_have_value("SELECT '=1+1' AS formula, topic, count(*) AS n FROM events GROUP BY ALL")


def test_a_field_leads_to_the_events_that_have_it(operating: str, page: Page) -> None:
    page.goto(f"{operating}/Fields?topics=user.updated")
    settled(page)
    click_cell(page, "data.number", x=16, row=0)
    page.wait_for_url("**open=data.number**")
    page.get_by_role("link", name="Show the events that match").click()
    page.wait_for_url("**/Events?**where=**")
    wait_for(page, lambda: len(cells(page)) == 1, "the one event that has this number")


def test_a_file_with_bad_rows_is_loaded_and_one_of_them_requeued_corrected(
    operating: str, page: Page, tmp_path: Path
) -> None:
    good = [_row(f"evt_up_{number}") for number in range(3)]
    bad = [_row("evt_naive").replace("+00:00", ""), _HOSTILE]
    (tmp_path / "upload.jsonl").write_text("\n".join([*good, *bad]) + "\n")
    page.goto(f"{operating}/Loads")
    settled(page)
    page.locator("input[type=file]").set_input_files(tmp_path / "upload.jsonl")
    page.get_by_role("button", name="Load what was uploaded").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    done = page.get_by_text("load 1 is done; of 5 rows 3 were inserted")
    expect(done).to_be_visible(timeout=_SPARK_SECONDS * 1000)
    wait_for(page, lambda: len(cells(page, 1)) == 2, "two dead letters")
    page.goto(f"{operating}/Loads?reason=naive_time&letter=1")
    settled(page)
    editor = page.get_by_role("textbox", name="Correct it here")
    editor.fill(_row("evt_naive"))
    editor.press("Control+Enter")
    page.get_by_role("button", name="Load the corrected text").click()
    page.get_by_role("button", name="Load it corrected").click()
    expect(page.get_by_text("Dead letter 1 is loaded as an event.")).to_be_visible()
    page.goto(f"{operating}/Event?id=evt_naive")
    expect(page.get_by_text("order.created").first).to_be_visible()
    page.goto(f"{operating}/Loads?letter=2")
    expect(page.locator("[data-testid=stCode]").filter(has_text=_HOSTILE)).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


def _row(id: str) -> str:
    moment = datetime.now(UTC) - timedelta(minutes=5)
    return json.dumps(
        {"id": id, "tenant_id": "acme", "time": moment.isoformat(), "topic": "order.created", "data": {"n": 1}}
    )
