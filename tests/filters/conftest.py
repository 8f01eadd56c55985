"""The engines that the filter tests compare."""

from __future__ import annotations

import os
from collections.abc import Iterator

import duckdb
import psycopg
import pytest
from sqlalchemy import Connection, create_engine

from tests.filters.engines import TABLES


@pytest.fixture(scope="module")
def filter_connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection to PostgreSQL with the two tables of the filter tests, empty."""
    dsn = os.environ.get("LOGSTORE_TEST_DSN") or request.getfixturevalue("server").dsn()
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with engine.connect() as connection:
        for table in TABLES.values():
            table.create(connection)
        yield connection
    engine.dispose()


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        yield connection
