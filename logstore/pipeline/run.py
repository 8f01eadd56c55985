"""A load from beginning to end: recognise, read, index, merge, or leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from pyspark.sql import SparkSession

from logstore import display, loads, partitions
from logstore.errors import LoadError, ServerError
from logstore.faults import fault
from logstore.pipeline import merge, prepare, read, session, tasks
from logstore.pipeline.place import Merged
from logstore.pipeline.progress import Progress
from logstore.pipeline.read import Limits, Source, Split
from logstore.pipeline.write import Job
from logstore.statements import statements
from logstore.store import LogStore
from logstore.validation import Rules


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a call of `load` did: the load, if there was anything to load, and the files that were loaded before."""

    load: loads.Load | None
    known: dict[str, int]  # path → the load that took the same content

    @property
    def recognised(self) -> bool:
        """Nothing was new."""
        return self.load is None

    def _repr_html_(self) -> str:
        notes = [f"{path} was loaded before, by load {number}: left out" for path, number in self.known.items()]
        return "".join([*map(display.sentence, notes), "" if self.load is None else self.load._repr_html_()])


def load(
    store: LogStore,
    paths: Iterable[str | Path],
    *,
    force: bool = False,
    spark: SparkSession | None = None,
    limits: Limits = Limits(),
    bar: bool | None = None,
) -> Report:
    """Load files or folders; a file that was loaded before is left out unless forced. Nothing doubles either way."""
    if store.database.role == "reader":
        raise ServerError("this store was opened to read: set LOGSTORE_ROLE=operator to load")
    files = read.sources(paths)
    loads.sweep(store.database)
    files = _with_checksums(store, files)
    known = {} if force else _known(store, files)
    new = [source for source in files if source.path not in known]
    if not new:
        return Report(load=None, known=known)
    new = [replace(source, file=i) for i, source in enumerate(new)]
    spark = spark or session.start(store.settings)
    number = _run(store, new, force=force, spark=spark, limits=limits, bar=bar)
    return Report(load=loads.get(store, number), known=known)


def _with_checksums(store: LogStore, files: list[Source]) -> list[Source]:
    """With the checksums of those that may have been loaded before, by their size; the others get theirs while they load."""
    with store.database.connection() as connection:
        values = {"sizes": [source.size for source in files]}
        sizes = {size for (size,) in connection.execute(statements("postgres", "loads")["known_sizes"], values)}
    digests = read.checksums([source for source in files if source.size in sizes])
    return [replace(source, sha256=digests.get(source.path, "")) for source in files]


def _known(store: LogStore, files: list[Source]) -> dict[str, int]:
    with store.database.connection() as connection:
        values = {"sha256": [source.sha256 for source in files]}
        found = dict(connection.execute(statements("postgres", "loads")["known_files"], values).fetchall())
    return {source.path: found[source.sha256] for source in files if source.sha256 in found}


def _run(
    store: LogStore, files: list[Source], *, force: bool, spark: SparkSession, limits: Limits, bar: bool | None
) -> int:
    # Autocommit: its session holds the lock that says that this load lives, and its figures are seen at once.
    with store.database.connection(autocommit=True) as connection, _cancellable():
        number = _begin(connection, files, force)
        try:
            fault("load.begun")
            progress = Progress(connection, number, sum(source.size for source in files), bar=bar)
            splits = read.plan(files, limits)
            job = _job(store, connection, number, limits)
            with _checksums_beside(connection, number, files):
                tasks.stage(spark, job, splits, progress)
            read.check_unchanged(files)
            fault("load.staged")
            finish(store, connection, number, splits, progress)
        except BaseException as error:
            _abandon(store, connection, number, error)
            raise
    return number


@contextlib.contextmanager
def _checksums_beside(connection: psycopg.Connection[Any], number: int, files: list[Source]) -> Iterator[None]:
    """Compute, while something else goes on, the checksums that are missing, and write them down in the end."""
    missing, stop = [source for source in files if not source.sha256], threading.Event()
    with ThreadPoolExecutor(1) as beside:
        found = beside.submit(read.checksums, missing, stop)
        try:
            yield
        except BaseException:
            stop.set()
            raise
        digests = found.result()
    values = {"file": [source.file for source in missing], "sha256": [digests[source.path] for source in missing]}
    connection.execute(statements("postgres", "loads")["note_checksums"], {"load": number, **values})


def finish(
    store: LogStore, connection: psycopg.Connection[Any], number: int, splits: list[Split], progress: Progress
) -> None:
    """Make what the tasks staged part of the log."""
    with ThreadPoolExecutor(1) as beside:
        estimated = beside.submit(prepare.estimate, store.database, number)
        tables = merge.staged(connection, number)
        estimated.result()
    done = connection.execute("SELECT count(*) FROM load_splits WHERE load = %s", [number]).fetchone()
    if done != (len(splits),):
        raise LoadError(f"{done} of {len(splits)} splits are staged; nothing was loaded")
    progress.enter("indexing")
    prepare.prepare(store.database, tables)
    fault("load.prepared")
    progress.enter("merging")

    def mark(inside: psycopg.Connection[Any], merged: Merged) -> None:
        progress.end()
        _mark_done(inside, number, merged, progress.seconds)

    merge.merge(store.database, number, tables, mark)
    fault("load.merged")


def _mark_done(connection: psycopg.Connection[Any], number: int, merged: Merged, seconds: dict[str, float]) -> None:
    values = {
        "load": number,
        "rows_read": merged.inserted + merged.updated + merged.skipped + merged.dead,
        "inserted": merged.inserted,
        "updated": merged.updated,
        "skipped": merged.skipped,
        "dead": merged.dead,
        "seconds": json.dumps(seconds),
    }
    if connection.execute(statements("postgres", "loads")["finish"], values).rowcount == 0:
        raise LoadError(f"load {number} was ended by somebody else; nothing was loaded")


def _begin(connection: psycopg.Connection[Any], files: list[Source], force: bool) -> int:
    known = statements("postgres", "loads")
    with connection.transaction():
        values = {"forced": force, "bytes": sum(source.size for source in files)}
        row = connection.execute(known["begin"], values).fetchone()
        assert row is not None
        columns = {
            name: [getattr(source, name) for source in files] for name in ("file", "path", "format", "size", "sha256")
        }
        connection.execute(known["add_files"], {"load": row[0], **columns})
        # Taken before anybody can see the load: a sweep at the same moment must not think it dead.
        connection.execute(known["live_lock"], {"load": row[0]})
    return int(row[0])


def _job(store: LogStore, connection: psycopg.Connection[Any], number: int, limits: Limits) -> Job:
    address = store.database.address("-c timezone=UTC -c synchronous_commit=off")
    conninfo = make_conninfo(address, application_name=loads.application_name(number))
    rules = Rules.of(
        store.settings,
        partitions.read_map(connection).states,
        now=datetime.now(UTC),
        row_bytes=limits.row_bytes,
        depth=limits.depth,
    )
    return Job(number, conninfo, rules, limits)


def _abandon(store: LogStore, connection: psycopg.Connection[Any], number: int, error: BaseException) -> None:
    """Leave no rows and no staging. If the server is gone too, the next load's sweep does it."""
    cancelled = isinstance(error, (KeyboardInterrupt, SystemExit))
    state, said = ("cancelled", "stopped by hand") if cancelled else ("failed", f"{type(error).__name__}: {error}")
    with contextlib.suppress(psycopg.Error, ServerError):
        loads.abandon(connection, number, state=state, error=said)


@contextlib.contextmanager
def _cancellable() -> Iterator[None]:
    """While a load runs, SIGTERM is Ctrl-C: it cleans up. Only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
