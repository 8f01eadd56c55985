"""The sandbox answers questions and withstands attacks: each is refused or stopped within its limits, no file changes."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

import logstore
from logstore import LogStore, SandboxError, analysis, archive
from logstore.analysis import child
from logstore.embedded import EmbeddedServer
from tests.conftest import new_database
from tests.records_of import START, attempt, event

ROWS = 300


@pytest.fixture(scope="module")
def archived(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStore]:
    """A store with sealed segments, and a secret beside them that no query may read."""
    home = tmp_path_factory.mktemp("sandbox")
    with logstore.open(new_database(server), role="operator", home=home) as store:
        times = [START + timedelta(minutes=n) for n in range(ROWS)]
        store.insert_many(
            [event(f"e{n}", time=time, data={"amount": n}) for n, time in enumerate(times)],
            [attempt(f"a{n}", event_id=f"e{n}", time=time) for n, time in enumerate(times)],
        )
        for parent in ("events", "attempts"):
            archive.export(store, f"{parent}_2026_03", segment_rows=200)
            archive.flip(store, f"{parent}_2026_03")
        folder = store.settings.archive
        (folder / "secret.csv").write_text("word\nswordfish\n")
        listed = sorted(folder.glob("attempts/*/*.parquet"))[0]
        (listed.parent / "unlisted.parquet").write_bytes(listed.read_bytes())
        (folder / "link.csv").symlink_to(folder / "secret.csv")
        yield store


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module", autouse=True)
def unchanged(archived: LogStore) -> Iterator[None]:
    """Whatever the tests of this module try, the files are the same afterwards, and there are no others."""
    before = digest(archived.settings.archive)
    yield
    assert digest(archived.settings.archive) == before
    assert not list(Path.cwd().glob("stolen*")) and not list(Path("/tmp").glob("stolen*"))


# {listed} is a file that the views read, {folder} the archive's folder.
WRITES = [
    "COPY events TO '/tmp/stolen.csv'",
    "COPY (SELECT 1) TO '{listed}' (FORMAT parquet)",
    "COPY events FROM '{folder}/secret.csv'",
    "EXPORT DATABASE '/tmp/stolen'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '/tmp/stolen.db' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/secret.csv'",
    "CREATE TABLE stolen AS SELECT * FROM events",
    "CREATE TEMP TABLE stolen AS SELECT 1",
    "CREATE VIEW stolen AS SELECT 1",
    "CREATE OR REPLACE VIEW events AS SELECT 1",
    "CREATE MACRO stolen(x) AS x",
    "CREATE TYPE mood AS ENUM ('a')",
    "CREATE SEQUENCE numbers",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "INSERT INTO events SELECT * FROM events",
    "UPDATE events SET topic = 'x'",
    "DELETE FROM attempts",
    "TRUNCATE events",
    "MERGE INTO events USING attempts ON true WHEN MATCHED THEN DELETE",
    "DROP VIEW events",
    "ALTER VIEW events RENAME TO other",
    "COMMENT ON VIEW events IS 'mine'",
    "VACUUM",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "BEGIN TRANSACTION",
    "ANALYZE",
    "WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone",
    "SELECT 1 INTO stolen",
]
SETTINGS = [
    "SET enable_external_access = true",
    "SET GLOBAL memory_limit = '100GB'",
    "SET lock_configuration = false",
    "SET allowed_directories = ['/']",
    "SET VARIABLE x = 1",
    "RESET enable_external_access",
    "RESET memory_limit",
    "PRAGMA memory_limit = '100GB'",
    "PRAGMA database_list",
    "PRAGMA version",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "CALL enable_logging()",
    "SELECT current_setting('allowed_paths')",
    "SELECT system.main.current_setting('secret_directory')",
    "SELECT s.current_setting() FROM (SELECT 'allowed_paths' AS s)",
    "FROM duckdb_settings()",
    "FROM pg_catalog.pg_settings",
    "SUMMARIZE pg_settings",
    # A WITH name that would vouch for the system view outside of it, or inside of itself.
    "SELECT (WITH pg_settings AS (SELECT 1) SELECT 1), * FROM pg_settings",
    "WITH pg_settings AS (SELECT * FROM pg_settings) SELECT * FROM pg_settings",
    "FROM duckdb_secrets()",
    "FROM which_secret('s3://bucket/x', 's3')",
    "FROM duckdb_views()",
    "FROM duckdb_external_file_cache()",
    "FROM duckdb_logs()",
    "FROM sqlite_master",
    "SELECT getenv('HOME')",
    "SELECT write_log('x')",
]
FILES = [
    "FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "FROM read_text('/etc/passwd')",
    "FROM read_blob('/proc/self/environ')",
    "FROM read_csv('/etc/passwd', sep=':')",
    "FROM read_csv_auto('{folder}/secret.csv')",
    "FROM '{folder}/secret.csv'",
    "FROM 'secret.csv'",
    "FROM read_csv('link.csv')",
    "FROM read_json('/etc/hostname')",
    "FROM read_json_objects('/etc/hostname')",
    "FROM read_ndjson('/etc/hostname')",
    "FROM sniff_csv('/etc/passwd')",
    "FROM glob('/etc/*')",
    "FROM glob('{folder}/**')",
    "FROM read_parquet('{folder}/attempts/*/*.parquet')",
    "FROM read_parquet('{unlisted}')",
    "FROM '{unlisted}'",
    "FROM read_parquet('{listed}/../unlisted.parquet')",
    "FROM read_parquet(['{listed}', '{unlisted}'])",
    "FROM parquet_metadata('{unlisted}')",
    "FROM parquet_kv_metadata('{listed}')",
    "FROM parquet_schema('{unlisted}')",
    "FROM read_duckdb('/tmp/other.db')",
    "FROM read_text('/proc/self/fd/0')",
    "FROM read_text('/dev/stdin')",
    "FROM read_text(getenv('HOME'))",
    "FROM read_parquet('http://127.0.0.1:9/x.parquet')",
    "FROM read_csv('https://example.com/x.csv')",
    "FROM 's3://bucket/x.parquet'",
    "FROM 'file:///etc/passwd'",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM events WHERE id IN (SELECT file FROM glob('/etc/*'))",
    "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
    "WITH \"/etc/passwd\" AS (SELECT 1) FROM '/etc/passwd'",
    "DESCRIBE '/etc/passwd'",
    "SUMMARIZE (FROM read_text('/etc/passwd'))",
    "FROM READ_TEXT('/etc/passwd')",
    "FROM main.read_text('/etc/passwd')",
    "FROM \"read_text\"('/etc/passwd')",
    "SELECT 1 WHERE EXISTS (FROM read_blob('/etc/passwd'))",
    "FROM events JOIN read_text('/etc/passwd') AS t ON true",
    "SELECT 1 UNION ALL SELECT length(content) FROM read_text('/etc/passwd')",
    "PIVOT (FROM read_text('/etc/passwd')) ON filename IN ('a') USING count(*)",
]
STATEMENTS = [
    "",
    " ;; -- nothing",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW events",
    "SELECT 1 /* ; */ ; COPY events TO '/tmp/stolen.csv'",
    "SELECT 1 -- harmless\n; COPY events TO '/tmp/stolen.csv'",
    "/* SELECT 1 */ COPY events TO '/tmp/stolen.csv'",
    "EXPLAIN ANALYZE COPY events TO '/tmp/stolen.csv'",
    "EXPLAIN /* x */ ANALYZE -- y\n COPY events TO '/tmp/stolen.csv'",
    "EXPLAIN (ANALYZE) COPY events TO '/tmp/stolen.csv'",
    "EXPLAIN (ANALYZE, FORMAT json) CREATE TABLE stolen (x int)",
    "EXPLAIN COPY events TO '/tmp/stolen.csv'",
    "EXPLAIN ANALYZE SELECT * FROM read_text('/etc/passwd')",
    "EXPLAIN SELECT 1; DROP VIEW events",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "SELECT $1",
    "SELECT * FROM events WHERE id = ?",
    "PIVOT events ON topic USING count(*)",
    "FROM query('SELECT * FROM events')",
    "FROM query('COPY events TO ''/tmp/stolen.csv''')",
    "FROM query_table('events')",
    "FROM query_table(['events', 'pg_settings'])",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT json_serialize_plan('SELECT 1')",
    "FROM arrow_scan(1, 2, 3)",
    "FROM pandas_scan(1)",
    "FROM python_map_function(1)",
    "FROM connection",
    "FROM seq_scan('events')",
    "FROM checkpoint()",
    ".shell ls",
    "\\! ls",
    "SELECT 1\uff1b SELECT 2",
    "SELECT\u00a0*\u00a0FROM\u00a0pg_settings",
    "ＳＥＬＥＣＴ * FROM pg_settings",
    "SELECT * FROM pg_\u200bsettings",
    "SELECT 'a\x00b'",
    "SELECT '\ud800'",
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "SELECT " + " + ".join(["1"] * 30_000),
    "SELECT 1 " + "UNION ALL SELECT 1 " * 4_000 + "FROM pg_settings",
    "SELECT '" + "x" * 200_000 + "'",
    "SELECT * FROM nothing",
    "SELECT no_such_column FROM events",
    "SELEC 1",
    "SELECT error('on purpose')",
]
BOMBS = [
    "SELECT count(*) FROM events a, events b, events c, events d, events e WHERE a.id || b.id <> c.id || d.id || e.id",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t ORDER BY n",
    "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
    "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
    "SELECT list(range) FROM range(10000000000)",
    "SELECT string_agg(range::text, ',') FROM range(10000000000)",
    "SELECT range(10000000000)",
    "SELECT len(list_transform(range(1000000000), lambda x: x * 2))",
    "SELECT list_aggregate(range(2000000000), 'sum')",
    "SELECT list_sort(list_transform(range(300000000), lambda x: hash(x)))[1]",
    "SELECT repeat('x', 10000000000)",
    "SELECT repeat('x', 4000000000)",
    "SELECT repeat('x', 50000000) FROM range(10)",
    "SELECT length(repeat(repeat('x', 10000), 100000))",
    "SELECT lpad('x', 2000000000, 'y')",
    "SELECT count(DISTINCT hash(range)) FROM range(2000000000)",
    "SELECT * FROM range(2000000000) ORDER BY hash(range) DESC",
    "SELECT a.range FROM range(100000000) a JOIN range(100000000) b ON hash(a.range) = hash(b.range)",
    "SELECT array_agg(a ORDER BY hash(a)) FROM generate_series(1, 1000000000) t(a)",
    "SELECT sum(regexp_matches(repeat('a', 1000000 + range::int), '(a*)*b')::int) FROM range(100000)",
    "SELECT sleep_ms(60000)",
    "SELECT bit_count(('1' || repeat('0', 2000000000))::BIT)",
    "SELECT 1::HUGEINT << range FROM range(100000000000) WHERE range < 0",
    "SELECT * FROM repeat_row(1, num_rows = 100000000000) t(a) ORDER BY hash(a)",
    "SELECT json_object('a', repeat('x', 1000000000))",
    "EXPLAIN ANALYZE SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
    "SELECT count(*) FROM events a POSITIONAL JOIN (SELECT unnest(range(5000000000))) b",
]


def fill_in(sql: str, store: LogStore) -> str:
    folder = store.settings.archive
    listed = sorted(folder.glob("attempts/*/0*.parquet"))[0]
    places = {"folder": folder, "listed": listed, "unlisted": listed.parent / "unlisted.parquet"}
    for name, path in places.items():
        sql = sql.replace(f"{{{name}}}", str(path))
    return sql


def short(sql: str) -> str:
    return sql.encode("ascii", "backslashreplace").decode()[:60] or "nothing"


def test_there_are_at_least_40_attacks() -> None:
    attacks = [*WRITES, *SETTINGS, *FILES, *STATEMENTS, *BOMBS]
    assert len(attacks) == len(set(attacks)) >= 40


@dataclass(frozen=True)
class Outcome:
    """What became of an attack."""

    message: str | None
    seconds: float


@pytest.fixture(scope="module")
def outcomes(archived: LogStore) -> dict[str, Outcome]:
    """All attacks, some at a time: most of what each takes is the start of its process."""

    def attack(sql: str) -> Outcome:
        seconds, memory = (1, "256MB") if sql in BOMBS else (3, "1GB")
        started = time.monotonic()
        try:
            analysis.sandbox(archived, fill_in(sql, archived), seconds=seconds, memory=memory)
        except SandboxError as error:
            return Outcome(str(error), time.monotonic() - started)
        return Outcome(None, time.monotonic() - started)

    attacks = [*WRITES, *SETTINGS, *FILES, *STATEMENTS, *BOMBS]
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(attacks, pool.map(attack, attacks), strict=True))


@pytest.mark.parametrize("sql", [*WRITES, *SETTINGS, *FILES, *STATEMENTS], ids=short)
def test_an_attack_is_refused_in_one_sentence(outcomes: dict[str, Outcome], sql: str) -> None:
    message = outcomes[sql].message
    assert message is not None, "it was answered"
    assert message and "\n" not in message and "Traceback" not in message and len(message) < 500
    assert "cannot be prepared" not in message and "swordfish" not in message and "root:" not in message


@pytest.mark.parametrize(
    "sql", [sql for sql in FILES if "{listed}" not in sql and "AS (SELECT 1)" not in sql], ids=short
)
def test_the_lock_alone_would_refuse_every_other_file(archived: LogStore, sql: str) -> None:
    """The list of names is the first wall; this is the second, without the first."""
    listed = [str(path) for path in sorted(archived.settings.archive.glob("*/*/0*.parquet"))]
    task = {
        "memory": "1GB", "threads": 1, "columns": {"events": "", "attempts": ""},
        "files": {parent: [path for path in listed if f"/{parent}/" in path] for parent in ("events", "attempts")},
    }  # fmt: skip
    with child.lock(task) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (ROWS,)
        with pytest.raises((duckdb.PermissionException, duckdb.CatalogException, duckdb.BinderException)):
            connection.execute(fill_in(sql, archived))
        with pytest.raises(duckdb.Error, match="locked"):
            connection.execute("SET enable_external_access = true")


@pytest.mark.parametrize("sql", BOMBS, ids=short)
def test_a_bomb_is_stopped_within_its_limits(outcomes: dict[str, Outcome], sql: str) -> None:
    outcome = outcomes[sql]
    assert outcome.message is not None, "it was answered"
    assert re.search("stopped after 1 s|memory|larger than 64 MB|maximum|not supported", outcome.message), (
        outcome.message
    )
    assert outcome.seconds < 10  # 1 s, 1 s of grace, and a busy machine


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM events", [(ROWS,)]),
        ("from Events select count(*) filter (where data->>'$.amount' = '7')", [(1,)]),
        ("SELECT count(*) FROM main.attempts;", [(ROWS,)]),
        ("-- a comment\nSELECT 1 /* ; */ -- ;", [(1,)]),
        ("WITH a AS (SELECT 1 AS n), b AS (SELECT n + 1 AS n FROM a) SELECT n FROM b", [(2,)]),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT max(n) FROM t", [(3,)]),
        ("SELECT sum(range)::int FROM range(4)", [(6,)]),
        ("VALUES (1, 'a''b'), (2, NULL)", [(1, "a'b"), (2, None)]),
        ("SELECT count(*) FROM events e JOIN attempts a ON a.event_id = e.id", [(ROWS,)]),
        ("SELECT min(time) FROM events", [(START,)]),
        ("SELECT 1 AS x, 2 AS x", [(1, 2)]),
    ],
    ids=str,
)
def test_honest_questions_are_answered(archived: LogStore, sql: str, rows: list[tuple[object, ...]]) -> None:
    answer = analysis.sandbox(archived, sql)
    assert answer.rows == rows
    assert not answer.truncated and answer.seconds < 10


def test_tables_can_be_described_and_plans_explained(archived: LogStore) -> None:
    assert [row[0] for row in analysis.sandbox(archived, "DESCRIBE events").rows][:2] == ["id", "tenant_id"]
    assert len(analysis.sandbox(archived, "SHOW TABLES")) == 2
    assert "COUNT" in str(analysis.sandbox(archived, "EXPLAIN SELECT count(*) FROM events").rows).upper()
    assert "300" in str(analysis.sandbox(archived, "explain analyze SELECT * FROM events").rows)


def test_a_listed_file_reached_another_way_shows_nothing_new(archived: LogStore) -> None:
    listed = fill_in("{listed}", archived)
    for path in (listed, listed.replace("/attempts/", "/attempts/../attempts/")):
        with pytest.raises(SandboxError, match="not part of the archive"):
            analysis.sandbox(archived, f"FROM '{path}'")


def test_more_rows_than_the_cap_are_cut_and_it_is_said(archived: LogStore) -> None:
    answer = analysis.sandbox(archived, "SELECT * FROM range(100000000000)", rows=7, seconds=5)
    assert answer.truncated and answer.rows == [(n,) for n in range(7)]
    assert "only the first 7 rows" in answer._repr_html_()
    assert not analysis.sandbox(archived, "SELECT * FROM range(7)", rows=7).truncated


def test_rows_that_were_read_are_counted_after_the_filters_of_the_files(archived: LogStore) -> None:
    every = analysis.sandbox(archived, "SELECT max(time) FROM attempts WHERE topic <> ''")
    some = analysis.sandbox(archived, "SELECT id FROM attempts ORDER BY time LIMIT 1")
    assert every.read is not None and every.read > 0
    assert some.read is not None and len(some) == 1 <= some.read
    assert analysis.sandbox(archived, "SELECT 1").read == 0


def test_a_running_query_can_be_cancelled(archived: LogStore) -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    started = time.monotonic()
    with pytest.raises(SandboxError, match="cancelled"):
        analysis.sandbox(archived, BOMBS[4], seconds=60, cancel=cancel)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("ended_by", [SandboxError, KeyboardInterrupt])
def test_no_process_is_left_behind(archived: LogStore, ended_by: type[BaseException]) -> None:
    seconds = 0.2
    if ended_by is KeyboardInterrupt:  # Ctrl-C in the middle of a query
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        seconds = 30
    with pytest.raises(ended_by):
        analysis.sandbox(archived, BOMBS[4], seconds=seconds)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children if Path(f"/proc/{child}").exists()]
    assert not [command for command in commands if b"child.py" in command]


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        ({"seconds": 0}, "seconds"),
        ({"seconds": "soon"}, "seconds"),
        ({"rows": 0}, "rows"),
        ({"rows": True}, "rows"),
        ({"memory": "lots"}, "memory"),
        ({"memory": "1KB"}, "memory"),
    ],
    ids=str,
)
def test_a_limit_that_is_none_is_refused(archived: LogStore, limits: dict[str, object], word: str) -> None:
    with pytest.raises(SandboxError, match=word):
        analysis.sandbox(archived, "SELECT 1", **limits)  # type: ignore[arg-type]


def test_an_error_never_tells_where_the_archive_lies(archived: LogStore) -> None:
    for sql in ("SELECT * FROM nothing", "SELECT id::int FROM events", "SELECT nothing FROM attempts"):
        with pytest.raises(SandboxError) as refused:
            analysis.sandbox(archived, sql)
        assert str(archived.settings.archive) not in str(refused.value)


def test_an_empty_archive_has_empty_tables(store: LogStore) -> None:
    answer = analysis.sandbox(store, "SELECT * FROM attempts")
    assert (len(answer), answer.columns[:2]) == (0, ("id", "event_id"))
