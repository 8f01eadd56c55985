"""A month to sealed Parquet, beside PostgreSQL's bare COPY plus one plain writing of the same rows; and a cold page."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import END, empty_store, fill, months_before
from bench.measure import Comparison, Result, compare
from logstore import LogStore, Selection, archive, cursor, partitions
from logstore.cursor import Position

_ROWS = {"small": 100_000, "full": 1_000_000}


def run(size: str) -> Iterator[Result]:
    with empty_store() as store:
        fill(store, rows=_ROWS[size], months=1)
        name = partitions.partition_name("attempts", months_before(END, 1)[0])
        yield compare(
            Comparison(
                name=f"export and seal {_ROWS[size]:,} attempts",
                product=_product(store, name),
                rivals={"COPY to null + one writing": _floor(store, name)},
                promises={"COPY to null + one writing": 2.0},
                rounds=3,
                before=_reset(store, name),
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


def _reset(store: LogStore, name: str) -> Any:
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
    with archive._stream(store, name) as tables:
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
