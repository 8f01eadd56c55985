"""serve --demo: the sample data's oldest months are archived once, and a kill in between is made good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from logstore import LogStore, maintenance
from logstore.commands import serve
from tests.records_of import attempt


@pytest.fixture
def demo(store: LogStore, dsn: str, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """A log that says it was filled by the sample data; its commands find it."""
    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    monkeypatch.setenv("LOGSTORE_ROLE", "operator")
    now = datetime.now(UTC)
    times = [now - timedelta(days=days) for days in (130, 40, 5, 1)]
    store.insert_many(attempts=[attempt(f"a{n}", time=time, event_time=time) for n, time in enumerate(times)])
    note_load(store, f"{store.settings.home}/demo/20000-90-7/events-0.jsonl")
    return store


def note_load(store: LogStore, path: str) -> None:
    with store.database.connection() as connection:
        connection.execute(
            "WITH load AS (INSERT INTO loads (state, stage, finished) VALUES ('done', 'done', now()) RETURNING id)"
            " INSERT INTO load_files (load, file, path, format, size, sha256)"
            " SELECT id, 0, %s, 'json', 1, 'x' FROM load",
            [path],
        )


def test_the_oldest_months_are_archived_once_and_what_is_taken_back_stays(
    demo: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serve.archive_owed(demo)
    monkeypatch.setenv("LOGSTORE_FAULT", "maintain.export")
    serve._archive_demo()
    monkeypatch.delenv("LOGSTORE_FAULT")
    assert set(demo.list_attempt().tiers) == {"hot"}, "it was killed half-way"
    assert serve.archive_owed(demo), "so the next start goes on"
    serve._archive_demo()
    assert demo.list_attempt(order="asc").tiers == ("cold", "hot", "hot", "hot")
    assert not serve.archive_owed(demo), "a second start does nothing"
    (month,) = {entry.partition for entry in maintenance.log(demo) if entry.action == "flip"}
    maintenance.undo(demo, month, actor="ann")
    assert not serve.archive_owed(demo), "nor after somebody took it back"


def test_a_log_with_other_data_is_left_alone(demo: LogStore) -> None:
    note_load(demo, "/data/orders.jsonl")
    assert not serve.archive_owed(demo)


def test_a_log_that_was_never_loaded_is_left_alone(store: LogStore) -> None:
    assert not serve.archive_owed(store)
