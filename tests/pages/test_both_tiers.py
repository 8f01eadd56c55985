"""Lists take a filter expression and reach into the archive, and so do counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import archive, partitions
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from logstore.workbench import cached, later
from tests.conftest import new_database
from tests.pages.conftest import PAGES, Show, rows, run, said, small_log


def test_a_filter_expression_in_the_link_narrows_the_list_and_says_what_it_costs(show: Show) -> None:
    app = show("Events", where='data.number < 5 and topic = "user.updated"')
    assert [row["id"] for row in rows(app)] == ["evt_000", "evt_003"]
    assert any("Index" in caption.value for caption in app.caption)
    assert any("LIMIT 101" in code.value for code in app.code)


def test_a_mistake_in_a_filter_points_at_its_column(workbench: Callable[[str], None], log: str) -> None:
    workbench(log)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=20)
    app.switch_page(str(PAGES["Events"]))
    app.query_params["where"] = "topic = bar"
    app.run()
    assert not app.exception
    assert len(app.error) == 1
    marked = next(code.value for code in app.code if "↑" in code.value).splitlines()
    assert marked[0] == "topic = bar" and marked[1].startswith(" " * 8 + "↑")


@pytest.fixture
def archived(
    server: EmbeddedServer,
    now: datetime,
    workbench: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """The small log with every month of it in the archive, tables gone."""
    dsn = new_database(server)
    names = []
    with logstore.open(dsn, role="operator", home=tmp_path) as store:
        store.insert_many(*small_log(now))
        for partition in partitions.inventory(store.database):
            if archive.export(store, partition.name):
                archive.flip(store, partition.name)
                partitions.detach(store.database, partition.name)
                partitions.drop(store.database, partition.name)
                names.append(partition.name)
    monkeypatch.setenv("LOGSTORE_ARCHIVE", str(tmp_path / "archive"))
    workbench(dsn)
    return names


def test_archived_events_are_listed_with_what_became_of_them(archived: list[str]) -> None:
    listed = rows(run("Events", range="7d"))
    assert [row["id"] for row in listed[:3]] == ["evt_000", "evt_001", "evt_002"]
    assert [row["outcome"] for row in listed[:3]] == [
        "⚪ never attempted",
        "❌ reached 1 of 2",
        "✅ delivered to 1 of 1",
    ]


def test_counts_take_the_archive_in_and_say_what_of_it_they_cannot_read(archived: list[str]) -> None:
    numbers = {metric.label: metric.value for metric in run("Overview", range="7d").metric}
    assert numbers["Events published"] == "120" and numbers["Events not delivered"] == "60"
    for page in ("Events", "Attempts", "Overview"):
        assert "Not counted" not in said(run(page, range="7d")), page
    cached.forget()
    later.forget()
    for path in cached.store().settings.archive.rglob("*.parquet"):
        path.unlink()
    assert "Not counted: 120 events" in said(run("Events", range="7d")).replace("\\", "")
