"""The database: migrations run once, whoever runs them, and the tables are what the code thinks they are."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import make_conninfo
from sqlalchemy.pool import QueuePool

from logstore import LogStore, ServerError, postgres
from logstore.embedded import EmbeddedServer
from logstore.postgres import Database, loads, migrate
from logstore.settings import Settings
from logstore.tables import metadata
from tests.records_of import attempt, event


def empty_database(server: EmbeddedServer, name: str) -> str:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.dsn(name)


def test_two_processes_that_migrate_at_once_take_turns(server: EmbeddedServer) -> None:
    dsn = empty_database(server, "raced")
    applied: list[list[str]] = []

    def run() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            applied.append(migrate(connection))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    files = [path.stem for path in postgres._migration_files()]
    assert sorted(applied) == sorted([files, [], [], []])


def test_a_migration_that_was_changed_afterwards_is_refused(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = empty_database(server, "edited")
    (tmp_path / "001_first.sql").write_text("CREATE TABLE one (x int)")
    monkeypatch.setattr(postgres, "_MIGRATIONS", tmp_path)
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert migrate(connection) == ["001_first"]
        (tmp_path / "001_first.sql").write_text("CREATE TABLE two (x int)")
        with pytest.raises(ServerError, match=r"001_first\.sql was changed"):
            migrate(connection)


def test_a_migration_that_fails_leaves_nothing_behind(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = empty_database(server, "failing")
    (tmp_path / "001_bad.sql").write_text("CREATE TABLE half (x int); SELECT 1/0;")
    monkeypatch.setattr(postgres, "_MIGRATIONS", tmp_path)
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(connection)
        assert connection.execute("SELECT to_regclass('half')").fetchone() == (None,)
        (tmp_path / "001_bad.sql").write_text("CREATE TABLE half (x int)")
        assert migrate(connection) == ["001_bad"]


def test_the_live_tables_are_the_sqlalchemy_tables(any_store: LogStore) -> None:
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=any_store.database.connect, poolclass=sqlalchemy.NullPool
    )
    inspector = sqlalchemy.inspect(engine)
    for name, table in metadata.tables.items():
        live: dict[str, Any] = {column["name"]: column for column in inspector.get_columns(name)}
        assert list(live) == [column.name for column in table.columns]
        for column in table.columns:
            types = (live[column.name]["type"], column.type)
            assert types[0].compile(engine.dialect) == types[1].compile(engine.dialect)
            assert live[column.name]["nullable"] == column.nullable
        assert inspector.get_pk_constraint(name)["constrained_columns"] == ["time", "id"]
        indexes = {i["name"]: i["column_names"] for i in inspector.get_indexes(name)}
        assert indexes == {i.name: [_name(e) for e in i.expressions] for i in table.indexes}


def _name(expression: Any) -> str:
    return str(getattr(expression, "element", expression).name)


def test_every_ordered_text_compares_as_bytes(any_store: LogStore) -> None:
    with any_store.database.connection() as connection:
        odd = connection.execute(
            "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " JOIN pg_collation o ON o.oid = a.attcollation"
            " WHERE c.relname IN ('events', 'attempts', 'tenants', 'destinations') AND o.collname <> 'C'"
        ).fetchall()
    assert odd == []


def test_there_is_no_default_partition(store: LogStore) -> None:
    with store.database.connection() as connection:
        assert connection.execute("SELECT partdefid FROM pg_partitioned_table WHERE partdefid <> 0").fetchall() == []


def test_every_connection_is_in_utc(store: LogStore) -> None:
    with store.database.connection() as own, store.database.reading() as pooled:
        assert own.execute("SHOW timezone").fetchone() == ("UTC",)
        assert pooled.execute("SHOW timezone").fetchone() == ("UTC",)


def test_more_readers_than_connections_are_told_to_try_again(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = QueuePool(lambda: store.database.connect(autocommit=True), pool_size=1, max_overflow=0, timeout=0.01)
    monkeypatch.setattr(store.database, "_pool", tiny)
    with store.database.reading(), pytest.raises(ServerError, match="busy: try again"), store.database.reading():
        raise AssertionError("there is only one")
    assert store.list_event().data == ()
    tiny.dispose()


def test_after_a_restart_of_the_server_one_write_fails_and_the_next_goes_in(store: LogStore) -> None:
    with contextlib.ExitStack() as readers:
        for _ in range(3):
            readers.enter_context(store.database.reading())
    with store.database.connection(autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(psycopg.OperationalError):
        store.insert_many([event()], [])
    store.insert_many([event()], [])
    assert len(store.list_event().data) == 1


def test_a_connection_left_in_the_middle_of_an_answer_is_not_handed_out_again(store: LogStore) -> None:
    with store.database.reading() as left:
        left.execute("BEGIN")
    with store.database.reading() as fresh:
        assert fresh is not left
    assert left.closed


def test_a_server_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(ServerError, match="LOGSTORE_DSN"):
        Database.open(Settings(), dsn="host=127.0.0.1 port=1 connect_timeout=2", role="operator")


def test_a_reader_of_an_empty_database_is_told_to_migrate(server: EmbeddedServer) -> None:
    with pytest.raises(ServerError, match="migrate"):
        Database.open(Settings(), dsn=empty_database(server, "bare"), role="reader")


def test_a_reader_of_an_older_log_is_told_to_migrate(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn, files = empty_database(server, "older"), postgres._migration_files()
    monkeypatch.setattr(postgres, "_migration_files", lambda: files[:-1])
    Database.open(Settings(), dsn=dsn, role="operator").close()
    monkeypatch.undo()
    with pytest.raises(ServerError, match=r"older logstore.*migrate"):
        Database.open(Settings(), dsn=dsn, role="reader")
    Database.open(Settings(), dsn=dsn, role="operator").close()
    Database.open(Settings(), dsn=dsn, role="reader").close()


@pytest.mark.parametrize("role", ["reader", "operator"])
def test_a_log_of_a_newer_logstore_is_left_alone(dsn: str, role: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO migrations (version, name, sha256) VALUES (999, '999_future', '')")
    with pytest.raises(ServerError, match=r"newer logstore.*update"):
        Database.open(Settings(), dsn=dsn, role=role)


def test_an_owner_who_may_make_roles_reads_as_the_reader(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since PostgreSQL 16 who makes a role is a member of it, but one that may not take it."""
    monkeypatch.setattr(postgres, "READER", "reader_of_an_owner")
    dsn = empty_database(server, "owned")
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE ROLE an_owner LOGIN CREATEROLE")
        connection.execute("ALTER DATABASE owned OWNER TO an_owner")
    dsn = make_conninfo(dsn, user="an_owner")
    Database.open(Settings(), dsn=dsn, role="operator").close()
    database = Database.open(Settings(), dsn=dsn, role="reader")
    with database.connection() as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("reader_of_an_owner",)
    database.close()


def test_json_that_python_cannot_hold_stays_readable(store: LogStore) -> None:
    assert loads("[" * 100_000) == "[" * 100_000
    store.insert_many(attempts=[attempt()])
    digits = "9" * 5000
    with store.database.connection() as connection:
        connection.execute("UPDATE attempts SET response_data = %s::jsonb", [json.dumps({"n": 1})[:-2] + digits + "}"])
    assert store.list_attempt().data[0].response_data == '{"n": ' + digits + "}"
