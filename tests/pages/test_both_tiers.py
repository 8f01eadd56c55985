"""Lists take a filter expression and reach into the archive, and so do counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import archive, partitions
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from logstore.workbench import background, cached
from tests.conftest import new_database
from tests.pages.conftest import PAGES, Show, rows, run, said, small_log
from tests.pages.test_facets import counts


def test_a_filter_expression_in_the_link_narrows_the_list_and_says_what_it_costs(show: Show) -> None:
    app = show("Events", where='data.number < 5 and topic = "user.updated"')
    assert [row["id"] for row in rows(app)] == ["evt_000", "evt_003"]
    assert any("Index" in caption.value for caption in app.caption)
    costs = next(expander for expander in app.expander if expander.label == "What this filter costs")
    hot, archive, tree = (code.value for code in costs.code)
    assert "LIMIT 101" in hot and "FROM events" in hot
    assert "json" in archive and "ORDER BY time DESC, id DESC LIMIT 101" in archive
    assert tree == 'data.number < 5 and topic = "user.updated"'


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
        "○ never attempted",
        "✘ reached 1 of 2",
        "✔ delivered to 1 of 1",
    ]


def test_archived_rows_say_that_they_are(archived: list[str]) -> None:
    for page in ("Events", "Attempts"):
        assert {row["tier"] for row in rows(run(page, range="7d"))} == {"archive"}
    assert [text.value for text in run("Event", id="evt_001").text].count("archive") == 3
    opened = run("Attempts", range="7d", open="att_001_d-bad_1")
    assert "archive" in [text.value for text in opened.text]


@pytest.fixture
def both(
    server: EmbeddedServer,
    now: datetime,
    workbench: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> logstore.LogStore:
    """The small log twice: of today in PostgreSQL, and of forty days ago in the archive."""
    dsn = new_database(server)
    old = now - timedelta(days=40)
    with logstore.open(dsn, role="operator", home=tmp_path) as store:
        store.insert_many(*small_log(old))
        for partition in partitions.inventory(store.database):
            if partition.upper <= old + timedelta(days=32) and archive.export(store, partition.name):
                archive.flip(store, partition.name)
        store.insert_many(*small_log(now))
    monkeypatch.setenv("LOGSTORE_ARCHIVE", str(tmp_path / "archive"))
    workbench(dsn)
    return cached.store()


def test_rows_of_both_tiers_stand_in_one_list_and_each_says_which(both: logstore.LogStore) -> None:
    app = run("Events", range="90d", limit="200")
    assert [row["tier"] for row in rows(app)] == ["hot"] * 120 + ["archive"] * 80


def test_facets_count_both_tiers(both: logstore.LogStore) -> None:
    twice = run("Attempts", range="90d", facets="1", tenant_ids="acme")
    assert counts(twice, "attempt", "destination_id") == {"d-good": 120, "d-bad": 120}
    some = run("Attempts", range="90d", facets="1", where="data.number < 2")
    assert counts(some, "attempt", "code") == {"200": 2, "503": 2}
    assert counts(run("Events", range="90d", facets="1"), "event", "tenant_id") == {"acme": 120, "globex": 120}


def test_attempts_that_cannot_be_read_are_unknown_and_not_never_attempted(archived: list[str]) -> None:
    for path in (cached.store().settings.archive / "attempts").rglob("*.parquet"):
        path.unlink()
    app = run("Event", id="evt_001")
    assert "Unknown: no attempt was found" in said(app) and "Never attempted" not in said(app)
    assert any("cannot be read" in warning.value for warning in app.warning)
    listed = run("Events", range="7d")
    newest, *others = rows(listed)
    assert newest["outcome"] == "○ never attempted", "it came after all that cannot be read"
    assert {row["outcome"] for row in others} == {"? unknown"}
    assert "attempts from" in said(listed) and "cannot be read" in said(listed)


def test_counts_take_the_archive_in_and_say_what_of_it_they_cannot_read(archived: list[str]) -> None:
    numbers = {metric.label: metric.value for metric in run("Overview", range="7d").metric}
    assert numbers["Events published"] == "120" and numbers["Events not delivered"] == "60"
    for page in ("Events", "Attempts", "Overview"):
        assert "Not counted" not in said(run(page, range="7d")), page
    cached.forget()
    background.forget()
    for path in cached.store().settings.archive.rglob("*.parquet"):
        path.unlink()
    assert "Not counted: 120 events" in said(run("Events", range="7d")).replace("\\", "")
