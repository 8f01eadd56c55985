"""A small log that every page shows, and a way to run a page without a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from streamlit.proto.Common_pb2 import StringTriggerValue
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

import logstore
from logstore import Attempt, Event
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from logstore.workbench import background, cached
from logstore.workbench.record_table import LINK
from tests.conftest import new_database

Show = Callable[..., AppTest]
PAGES = {
    "Overview": None,
    "Events": "pages/1_Events.py",
    "Attempts": "pages/2_Attempts.py",
    "Event": "pages/3_Event.py",
    "Destinations": "pages/4_Destinations.py",
    "Partitions": "pages/5_Partitions.py",
    "Loads": "pages/6_Loads.py",
    "SQL": "pages/7_SQL.py",
    "Fields": "pages/8_Fields.py",
}


def small_log(now: datetime) -> tuple[list[Event], list[Attempt]]:
    """120 events of two tenants, one every ten minutes, the newest two hours old.

    acme has d-good, which takes everything, and d-bad, which never does; globex has d-late, which takes the second try.
    Every tenth event of globex is never attempted.
    """
    events, attempts = [], []
    for number in range(120):
        time = now - timedelta(hours=2) - number * timedelta(minutes=10)
        tenant = "acme" if number % 2 else "globex"
        event = Event(
            id=f"evt_{number:03d}",
            tenant_id=tenant,
            time=time,
            topic="order.created" if number % 3 else "user.updated",
            data={"number": number},
            metadata={"region": "eu"},
        )
        events.append(event)
        if tenant == "acme":
            tries = [("d-good", 1, "success", "200"), ("d-bad", 1, "failed", "503")]
        else:
            tries = [] if number % 20 == 0 else [("d-late", 1, "failed", "timeout"), ("d-late", 2, "success", "200")]
        attempts += [
            Attempt.of(
                event,
                id=f"att_{number:03d}_{destination}_{try_}",
                destination_id=destination,
                status=status,
                time=time + timedelta(seconds=try_),
                attempt_number=try_,
                code=code,
                response_data={"body": f"said {code}"},
            )
            for destination, try_, status, code in tries
        ]
    return events, attempts


@pytest.fixture(scope="module")
def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def log(server: EmbeddedServer, now: datetime) -> str:
    """The address of a database with the small log."""
    dsn = new_database(server)
    with logstore.open(dsn, role="operator") as store:
        store.insert_many(*small_log(now))
    return dsn


@pytest.fixture
def workbench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Point the pages at a database; what they keep is forgotten afterwards."""
    for name in [name for name in os.environ if name.startswith("LOGSTORE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(background, "PATIENCE", 20.0)  # a run draws everything, however busy the machine is
    opened = []

    def point(dsn: str) -> None:
        monkeypatch.setenv("LOGSTORE_DSN", dsn)
        monkeypatch.setenv("LOGSTORE_ROLE", "reader")
        opened.append(cached.store())

    yield point
    for store in opened:
        store.close()
    cached.forget()
    background.forget()


@pytest.fixture
def show(workbench: Callable[[str], None], log: str) -> Show:
    """Run a page of the small log with parameters in its URL, as a deep link does."""
    workbench(log)
    return run


def run(page: str, **params: str | list[str]) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=20)
    path = PAGES[page]
    if path is not None:
        app.switch_page(path)
    for name, value in params.items():
        app.query_params[name.replace("__", ".")] = value
    app.run()
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]
    return app


def said(app: AppTest) -> str:
    """All the sentences of a page."""
    parts = [
        *app.markdown,
        *app.text,
        *app.caption,
        *app.info,
        *app.warning,
        *app.error,
        *app.success,
        *app.title,
        *app.subheader,
    ]
    return "\n".join(str(part.value) for part in parts)


def rows(app: AppTest, place: int = -1) -> list[dict[str, object]]:
    """The rows of a table on the page, the last one unless told otherwise."""
    listed = app.dataframe[place].value.to_dict("records")
    return [{name: _bare(value) for name, value in row.items()} for row in listed]


def _bare(value: object) -> object:
    return value.removeprefix(f"{LINK} ") if isinstance(value, str) else value


def click(app: AppTest, table: int, column: str, row: int = 0) -> AppTest:
    """Click a button in a table, which AppTest has no words for: send what the browser would send."""
    states = app._tree.get_widget_states()
    data = StringTriggerValue(data=json.dumps({"row": row, "label": ""}))
    button = app.dataframe[table].proto.button_click_widgets[column]
    states.widgets.append(WidgetState(id=button, string_trigger_value=data))
    app._run(states)
    assert not app.exception, app.exception
    return app


def param(app: AppTest, name: str) -> list[str]:
    """The values of a parameter in the page's URL; none when it is absent."""
    found = app.query_params.get(name, [])
    return [found] if isinstance(found, str) else list(found)
