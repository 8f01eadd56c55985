"""Live mode: it says how many have come, and the page that is read stays still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import Event
from logstore.cursor import Position, encode
from logstore.records import rfc3339
from logstore.workbench.lists import live_mode
from tests.pages.conftest import param, rows, run, said
from tests.pages.test_lists import press

Arrive = Callable[..., None]


@pytest.fixture
def arrive(workbench: Callable[[str], None], dsn: str) -> Iterator[Arrive]:
    """A log of three events, and a way to let more arrive."""
    with logstore.open(dsn, role="operator") as store:

        def more(*names: str, tenant: str = "acme") -> None:
            now = datetime.now(UTC)
            times = [now - timedelta(microseconds=len(names) - i) for i in range(len(names))]
            store.insert_many(
                [
                    Event(id=name, tenant_id=tenant, time=time, topic="t", data={})
                    for name, time in zip(names, times, strict=True)
                ]
            )

        more("old 1", "old 2", "old 3")
        workbench(dsn)
        yield more


def ids(app: AppTest) -> list[object]:
    return [row["id"] for row in rows(app)]


def test_new_arrivals_are_counted_and_the_page_stays_still(arrive: Arrive) -> None:
    app = run("Events", live="1")
    assert "no new events" in said(app)
    arrive("new 1", "new 2")
    app.run()
    assert "**2 new**" in said(app)
    assert ids(app) == ["old 3", "old 2", "old 1"]
    press(app, "Show them")
    assert ids(app) == ["new 2", "new 1", "old 3", "old 2", "old 1"]
    assert "no new events" in said(app)


def test_only_what_the_filters_let_through_is_new(arrive: Arrive) -> None:
    app = run("Events", live="1", tenant_ids="acme")
    arrive("other", tenant="globex")
    assert "no new events" in said(app.run())
    arrive("mine")
    assert "**1 new**" in said(app.run())


def test_an_older_page_counts_what_is_newer_than_the_newest_one_that_was_shown(arrive: Arrive) -> None:
    app = run("Events", live="1", limit="2")
    press(app, "Older")
    arrive("new")
    assert "**1 new**" in said(app.run())
    assert ids(app) == ["old 1"]


def test_no_more_than_a_hundred_are_read(arrive: Arrive) -> None:
    app = run("Events", live="1")
    arrive(*(f"new {number}" for number in range(live_mode.MOST + 5)))
    assert "**100+ new**" in said(app.run())
    before = encode("event", Position(datetime.now(UTC) - timedelta(hours=1), ""))
    assert live_mode.new("event", logstore.Selection(), before) == live_mode.MOST + 1


def test_the_switch_is_in_the_url_and_off_where_nothing_new_can_come(arrive: Arrive) -> None:
    app = run("Events")
    app.toggle(key="live").set_value(True).run()
    assert param(app, "live") == ["1"]
    over = run("Events", live="1", time__lt=rfc3339(datetime.now(UTC)))
    assert over.toggle(key="live").disabled
    assert "new events" not in said(over)


def test_leaving_the_page_and_coming_back_shows_what_is_newest(arrive: Arrive) -> None:
    app = run("Events")
    arrive("new")
    assert ids(app.run())[0] == "old 3", "while it is read, it stays"
    app.switch_page("pages/2_Attempts.py").run()
    app.switch_page("pages/1_Events.py").run()
    assert ids(app)[0] == "new"
