"""One PostgreSQL database: where it is, connections to it, its roles, and its migrations."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.json import set_json_loads
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from logstore.embedded import EmbeddedServer
from logstore.errors import InvalidSetting, ServerError
from logstore.settings import ROOT, Settings

DATABASE = "logstore"
READER = "logstore_reader"
_MIGRATIONS = ROOT / "sql" / "migrations"
_LOCK = 0x10957_0E  # advisory lock of migrations; any number that is ours
_OLDEST_VERSION, _NEWEST_VERSION = 15, 18
_READER_SECONDS = 30

# Planning a page over 60 months costs ten times its execution, so statements are prepared at once and planned once.
_OPTIONS = "-c timezone=UTC -c plan_cache_mode=force_generic_plan -c jit=off"


def loads(text: str | bytes) -> Any:
    """JSON as PostgreSQL gives it; what Python cannot hold (a number of 5 000 digits, 2 000 levels) stays text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode() if isinstance(text, bytes) else text


class Database:
    """Connections to one database, embedded or real; safe to use from several threads."""

    def __init__(self, conninfo: str, *, role: str, server: EmbeddedServer | None = None) -> None:
        self.role = role
        self.server = server
        self.conninfo = make_conninfo(conninfo, application_name="logstore")
        self._reader_role = False
        # Only the pool of SQLAlchemy and not its engine, whose connections would take longer than many a page.
        self._pool = QueuePool(
            lambda: cast("Any", self.connect(autocommit=True)), pool_size=8, max_overflow=24, reset_on_return=None
        )

    @classmethod
    def open(cls, settings: Settings, *, dsn: str | None = None, role: str | None = None) -> Database:
        """The database that the settings name, started and migrated when we may."""
        role = role or settings.role
        dsn = dsn or settings.dsn
        server = None
        if dsn is None:
            server = EmbeddedServer(settings.home)
            server.acquire()
            _make_database(server)
            dsn = server.dsn(DATABASE)
        try:
            database = cls(dsn, role=role, server=server)
        except psycopg.ProgrammingError:
            # Neither the text nor its error is shown: both may hold a password.
            raise InvalidSetting("LOGSTORE_DSN is no address; write it like postgresql://user@host/database") from None
        try:
            database._check_version()
            if role == "operator" or server is not None:
                with psycopg.connect(database.conninfo, autocommit=True) as connection:
                    migrate(connection)
                    _make_reader(connection)
            database._prepare_reader()
        except BaseException:
            database.close()
            raise
        return database

    def address(self, options: str) -> str:
        """The conninfo with more options and our role; options that it was given, a search_path for instance, stay."""
        given = conninfo_to_dict(self.conninfo).get("options")
        if self.role == "reader" and self._reader_role:
            options += f" -c role={READER}"
        return make_conninfo(self.conninfo, options=f"{given} {options}" if given else options)

    def connect(self, *, autocommit: bool = False) -> psycopg.Connection[Any]:
        """A connection of its own, outside the pool; for DDL, COPY and session locks."""
        options = _OPTIONS
        if self.role == "reader":
            options += f" -c default_transaction_read_only=on -c statement_timeout={_READER_SECONDS}s"
        conninfo = self.address(options)
        try:
            connection = psycopg.connect(conninfo, autocommit=autocommit, prepare_threshold=0)
        except psycopg.OperationalError as error:
            if self.server is None:
                said = "; ".join(line.strip().rstrip(".?") for line in str(error).splitlines())
                raise ServerError(f"cannot reach PostgreSQL: {said}. Check LOGSTORE_DSN and that it runs") from error
            self.server.revive()
            connection = psycopg.connect(conninfo, autocommit=autocommit, prepare_threshold=0)
        set_json_loads(loads, connection)
        return connection

    @contextlib.contextmanager
    def connection(self, *, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Like `connect`, closed at the end, committed when nothing was raised."""
        with self.connect(autocommit=autocommit) as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[psycopg.Connection[Any]]:
        """A pooled connection without a transaction: one round trip for each statement instead of three."""
        try:
            pooled = self._pool.connect()
        except PoolTimeout as error:
            raise ServerError("all connections of this process are busy: try again in a moment") from error
        connection = cast("psycopg.Connection[Any]", pooled.driver_connection)
        try:
            yield connection
        finally:
            if connection.closed:
                self.forget_connections()
            if connection.info.transaction_status is not TransactionStatus.IDLE:
                pooled.invalidate()  # dead, or left in the middle of an answer
            pooled.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction on a pooled connection."""
        with self.reading() as connection, connection.transaction():
            yield connection

    def forget_connections(self) -> None:
        """Close those that nobody uses: after the server was restarted, all of them are dead."""
        self._pool.dispose()
        self._pool = self._pool.recreate()

    def close(self) -> None:
        self._pool.dispose()
        if self.server is not None:
            self.server.release()

    def _check_version(self) -> None:
        with self.connect(autocommit=True) as connection:
            major = connection.info.server_version // 10000
        if not _OLDEST_VERSION <= major <= _NEWEST_VERSION:
            raise ServerError(
                f"the server is PostgreSQL {major}; logstore works with {_OLDEST_VERSION} to {_NEWEST_VERSION}"
            )

    def _prepare_reader(self) -> None:
        """Learn whether the reader's role can be taken; on a server we do not administer it may not exist."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            _check_migrations(connection)
            may = connection.execute(
                # Since version 16 somebody can be a member who may not take the role.
                "SELECT coalesce((SELECT pg_has_role(oid, CASE WHEN current_setting('server_version_num')::int < 160000"
                " THEN 'MEMBER' ELSE 'SET' END) FROM pg_roles WHERE rolname = %s), false)",
                [READER],
            ).fetchone()
            self._reader_role = may == (True,)


def _make_database(server: EmbeddedServer) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if found is None:
            with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _make_reader(connection: psycopg.Connection[Any]) -> None:
    """The role that may only read; where we may not make roles, readers are held by read-only transactions alone.

    One process at a time: two that grant at once would fail with "tuple concurrently updated".
    """
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [READER]).fetchone() is None:
            # Another database of the same server may be making it; the savepoint keeps our transaction alive.
            made = (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation)
            with contextlib.suppress(*made), connection.transaction():
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(READER)))
                # Who makes a role is no member of it, or one that may not take it, unless it is a superuser.
                connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(READER)))
        granted = connection.execute(
            "SELECT bool_and(has_table_privilege(%s, c.oid, 'SELECT')) FROM pg_class c"
            " WHERE relkind IN ('r', 'p', 'v') AND relnamespace = current_schema()::regnamespace",
            [READER],
        ).fetchone()
        if granted != (True,):
            role = sql.Identifier(READER)
            connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(role))
            connection.execute(
                sql.SQL("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {}").format(role)
            )


def migrate(connection: psycopg.Connection[Any]) -> list[str]:
    """Apply the migrations that are missing, each in one transaction; two processes at once take turns."""
    connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, name text NOT NULL,"
            " sha256 text NOT NULL, applied timestamptz NOT NULL DEFAULT now())"
        )
        applied = dict(connection.execute("SELECT version, sha256 FROM migrations").fetchall())
        return [name for name in (_apply(connection, path, applied) for path in _migration_files()) if name]
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


def _check_migrations(connection: psycopg.Connection[Any]) -> None:
    """Refuse tables of another age: an older program would leave what it does not know uncounted, without a word."""
    there = connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchone() == (True,)
    row = connection.execute("SELECT max(version) FROM migrations").fetchone() if there else None
    applied, newest = (row and row[0]) or 0, int(_migration_files()[-1].name[:3])
    if applied > newest:
        raise ServerError(
            f"the database was migrated by a newer logstore (to {applied:03}; this one knows {newest:03}): update this one"
        )
    if applied < newest:
        what = "has no logstore tables yet" if not applied else "is that of an older logstore"
        raise ServerError(f"the database {what}: run `LOGSTORE_ROLE=operator python -m logstore migrate`")


def _migration_files() -> list[Any]:
    return sorted(path for path in _MIGRATIONS.glob("*.sql") if re.match(r"\d{3}_", path.name))


def _apply(connection: psycopg.Connection[Any], path: Any, applied: dict[int, str]) -> str | None:
    text = path.read_text()
    version, digest = int(path.name[:3]), hashlib.sha256(text.encode()).hexdigest()
    if version in applied:
        if applied[version] != digest:
            raise ServerError(f"migration {path.name} was changed after it was applied; write a new one instead")
        return None
    with connection.transaction():
        connection.execute(text)
        connection.execute(
            "INSERT INTO migrations (version, name, sha256) VALUES (%s, %s, %s)", [version, path.stem, digest]
        )
    return str(path.stem)
