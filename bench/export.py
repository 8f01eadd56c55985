"""A month to sealed Parquet, beside what cannot be avoided, pandas, and DuckDB's postgres extension; and a cold page."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pandas
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import create_engine

from bench.data import END, empty_store, fill, months_before
from bench.measure import Comparison, Result, Work, compare
from logstore import LogStore, Selection, archive, cursor, partitions
from logstore.archive import exporting
from logstore.cursor import Position

_FLOOR = "COPY to null + one writing"
_ROWS = {"small": 100_000, "full": 1_000_000}


def run(size: str) -> Iterator[Result]:
    with empty_store() as store:
        fill(store, rows=_ROWS[size], months=1)
        name = partitions.partition_name("attempts", months_before(END, 1)[0])
        yield compare(
            Comparison(
                name=f"export and seal {_ROWS[size]:,} attempts",
                product=_product(store, name),
                rivals={_FLOOR: _floor(store, name), **_others(store, name)},
                promises={_FLOOR: 2.0},
                rounds=3,
                before=reset(store, name),
            )
        )
        archive.export(store, name)
        yield from _cold_pages(store, name)


def _cold_pages(store: LogStore, name: str) -> Iterator[Result]:
    pages: dict[str, Any] = {}
    for where, days in (("top", 0), ("deep", 25)):
        token = cursor.encode("attempt", Position(END - timedelta(days=days), ""))
        for what, selection in (("", Selection()), (", one tenant", Selection(tenant_ids=("tenant_1",)))):
            pages[where + what] = lambda s=selection, t=token: store.list_attempt(s, limit=100, next=t)
    archive.flip(store, name)
    partitions.detach(store.database, name)
    for what in ("", ", one tenant"):
        yield compare(
            Comparison(
                name=f"a cold page of 100, deep{what}",
                product=pages["deep" + what],
                rivals={"the same at the top": pages["top" + what]},
                promises={"the same at the top": 1.5},
                repeat=5,
            )
        )


def _product(store: LogStore, name: str) -> Any:
    return lambda: archive.export(store, name)


def reset(store: LogStore, name: str) -> Any:
    """Forget the export, so that the next one has everything to do again."""

    def reset() -> None:
        partitions.close(store.database, name)
        partitions.reopen(store.database, name)
        with store.database.connection() as connection:
            connection.execute("DELETE FROM segments")
        shutil.rmtree(store.settings.archive, ignore_errors=True)

    return reset


def _floor(store: LogStore, name: str) -> Any:
    """What cannot be avoided: PostgreSQL hands the rows out once, and somebody writes them once."""
    with exporting.stream(store, name) as tables:
        rows = pa.concat_tables(tables)
    assert store.database.server is not None
    psql = store.database.server.bin_dir / "psql"
    target = Path(store.settings.home) / "floor.parquet"

    def floor() -> None:
        with open("/dev/null", "wb") as null:
            query = f"COPY {name} TO STDOUT (FORMAT binary)"
            subprocess.run([psql, "-q", "-d", store.database.conninfo, "-c", query], stdout=null, check=True)
        pq.write_table(rows, target, compression="zstd", compression_level=3, row_group_size=20_000)

    return floor


def _others(store: LogStore, name: str) -> dict[str, Work]:
    """What people write themselves; none of it checks what it wrote."""
    target = Path(store.settings.home) / "other.parquet"
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(store.database.conninfo))
    query = f"SELECT * FROM {name} ORDER BY time, id"

    def by_pandas() -> None:
        frame = pandas.read_sql(query, engine)
        for column in ("response_data", "event_data", "event_metadata"):
            frame[column] = frame[column].astype(str)
        frame.to_parquet(target, compression="zstd")

    ways: dict[str, Work] = {"pandas read_sql + to_parquet": by_pandas}
    try:
        connection = duckdb.connect()
        connection.execute(f"LOAD '{_scanner()}'")
        connection.execute(f"ATTACH '{store.database.conninfo}' AS pg (TYPE postgres, READ_ONLY)")
    except (duckdb.Error, OSError) as error:
        print(f"  DuckDB's postgres extension is left out: {error}")
        return ways
    copied = f"COPY (SELECT * FROM pg.public.{name} ORDER BY time, id) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
    return ways | {"DuckDB's postgres extension": lambda: connection.execute(copied)}


def _scanner() -> Path:
    """The extension's file, from PyPI, so that nothing is downloaded while measuring."""
    found = find_spec("duckdb_extension_postgres_scanner")
    if found is None or found.origin is None:
        raise OSError("the package duckdb-extension-postgres-scanner is not installed")
    return Path(found.origin).parent / "extensions" / f"v{duckdb.__version__}" / "postgres_scanner.duckdb_extension"
