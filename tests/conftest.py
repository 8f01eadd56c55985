"""One PostgreSQL and one Spark session for the whole run; a fresh copy of a migrated database for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

import logstore
from logstore.embedded import EmbeddedServer
from logstore.postgres import Database
from logstore.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "logstore",
    deadline=None,  # timing is not a promise of tests
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("logstore")

_DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
_numbers = itertools.count(1)

# The tests kill processes, not the machine: what the kernel has is safe, so waiting for the disk would prove nothing.
# (synchronous_commit stays on: a commit that a killed server had not written out would be lost.)
QUICK = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "256MB"}


class _Share(LoadScopeScheduling):
    """How two processes share the tests (`make test`): one gets all of Spark, the other all browsers, then files in turn.

    What is expensive to start is so started once, and the two that last longest begin first.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path.startswith(("tests/pipeline/", "tests/metrics/", "tests/filters/test_spark")):
            return "spark"
        return "browser" if path.startswith("tests/browser/") else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Share:
    return _Share(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = ("pipeline", "browser", "metrics")
    items.sort(key=lambda item: first.index(item.path.parent.name) if item.path.parent.name in first else len(first))


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder with a path short enough for sockets; pytest's own are too long."""
    folder = Path(tempfile.mkdtemp(prefix="ls-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _serve(home: Path, bin_dir: Path | None = None) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(home, bin_dir=bin_dir, tuning=QUICK)
    server.acquire()
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE template_logstore")
        Database.open(Settings(home=home), dsn=server.dsn("template_logstore"), role="operator").close()
        yield server
    finally:
        server.release()


@pytest.fixture(scope="session")
def server(short_folder: Path) -> Iterator[EmbeddedServer]:
    """The embedded PostgreSQL 18 of this run."""
    yield from _serve(short_folder / "18")


@pytest.fixture(scope="session")
def server_15(short_folder: Path) -> Iterator[EmbeddedServer]:
    """Debian's PostgreSQL 15, where it is installed."""
    if not (_DEBIAN_15 / "postgres").exists():
        pytest.skip("PostgreSQL 15 is not installed: apt install postgresql-15 to test against it as well")
    yield from _serve(short_folder / "15", _DEBIAN_15)


def new_database(server: EmbeddedServer) -> str:
    """A copy of the migrated template; its name is new, its tables are empty."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template_logstore STRATEGY FILE_COPY")
    return server.dsn(name)


@pytest.fixture
def dsn(server: EmbeddedServer) -> str:
    """The address of an empty, migrated database on PostgreSQL 18."""
    return new_database(server)


@pytest.fixture
def open_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., logstore.LogStore]]:
    """Open stores that are closed when the test ends; the environment of the machine stays out."""
    for name in [name for name in os.environ if name.startswith("LOGSTORE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LOGSTORE_HOME", str(tmp_path / "home"))
    opened: list[logstore.LogStore] = []

    def open_one(dsn: str, role: str = "operator") -> logstore.LogStore:
        opened.append(logstore.open(dsn, role=role))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., logstore.LogStore], dsn: str) -> logstore.LogStore:
    """An empty store on PostgreSQL 18."""
    return open_store(dsn)


@pytest.fixture(params=[18, 15], ids=["pg18", "pg15"])
def any_store(request: pytest.FixtureRequest, open_store: Callable[..., logstore.LogStore]) -> logstore.LogStore:
    """An empty store, once on each version of PostgreSQL that is at hand."""
    server = request.getfixturevalue("server" if request.param == 18 else "server_15")
    return open_store(new_database(server))


@pytest.fixture(scope="module", params=[18, 15], ids=["pg18", "pg15"])
def any_store_module(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[logstore.LogStore]:
    """One store for all examples of a property, on each version; the examples empty it themselves."""
    server = request.getfixturevalue("server" if request.param == 18 else "server_15")
    with logstore.open(new_database(server), role="operator", home=tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture(scope="session")
def spark(short_folder: Path) -> Iterator[SparkSession]:
    """The Spark session of this run; it takes seconds to start, so it is started once and only when a test asks."""
    from logstore.pipeline import session

    started = session.start(Settings(home=short_folder, spark_master="local[2]"))
    yield started
    started.stop()
