"""Watch a folder: load what appears in it, each file once and only when it is finished.

What was loaded is known by its content (`loads`), so watching again, or two watchers at once, double nothing. A file that
somebody still writes to is left alone; one that was taken too early is seen to have changed, and loaded again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from logstore import loads
from logstore.errors import LoadError, LogstoreError, ServerError
from logstore.pipeline.read import ends, search
from logstore.pipeline.run import load
from logstore.store import LogStore

SETTLE = 2.0  # seconds without a change after which a file counts as finished
_RETRY, _RETRY_MOST = 60.0, 3600.0  # a file that failed is tried again, ever more rarely, until it changes
_UNENDED = 5  # times as long waits a file whose last line has no end: its writer may have paused in the middle of it
_LOADS_KEPT = 1000
Stamp = tuple[int, int]  # size and time of the last change
_UNREADABLE: Stamp = (-1, 0)


@dataclass(kw_only=True, slots=True)
class Pass:
    """What one look at the folder did."""

    loaded: list[loads.Load] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)  # path → the load that took the same content before
    failed: dict[str, str] = field(default_factory=dict)  # path → why
    waiting: list[str] = field(default_factory=list)  # still being written

    def add(self, later: Pass) -> None:
        """What has happened so far; a file that was loaded in the end did not fail. The last loads stand for all."""
        paths = {source["path"] for load in later.loaded for source in load.sources} | later.known.keys()
        self.loaded = [*self.loaded, *later.loaded][-_LOADS_KEPT:]
        self.known |= later.known
        self.failed = {path: why for path, why in (self.failed | later.failed).items() if path not in paths}
        self.waiting = later.waiting


@dataclass(frozen=True, slots=True)
class _Failure:
    stamp: Stamp
    pause: float
    until: float


class Watch:
    """A folder and what is known of its files; `look` again and again."""

    def __init__(
        self,
        store: LogStore,
        inbox: Path,
        *,
        spark: SparkSession | None = None,
        bar: bool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not inbox.is_dir():
            raise LoadError(f"there is no folder {inbox}: make it, or check the path")
        self.store, self.inbox, self.spark, self.bar, self.clock = store, inbox, spark, bar, clock
        self._seen: dict[str, tuple[Stamp, float]] = {}  # how a file looked, and since when
        self._taken: dict[str, Stamp] = {}
        self._failed: dict[str, _Failure] = {}

    def look(self) -> Pass:
        """Load what is new and finished; one bad file holds up no other."""
        done, now = Pass(), self.clock()
        there = dict(self._there())
        for kept in (self._seen, self._taken, self._failed):
            for path in kept.keys() - there.keys():
                del kept[path]
        due = []
        for path, stamp in there.items():
            if self._taken.get(path) == stamp:
                continue
            failure = self._failed.get(path)
            if not self._settled(path, stamp, now):
                done.waiting.append(path)
            elif failure is None or failure.stamp != stamp or failure.until <= now:
                due.append(path)
        if due:
            self._load(due, there, done)
        return done

    def _there(self) -> Iterator[tuple[str, Stamp]]:
        refused: list[OSError] = []
        found = search(self.inbox.absolute(), unreadable=refused.append)
        for path in sorted(found, key=os.fsencode):
            yield path, (found[path].st_size, found[path].st_mtime_ns)
        for error in refused:
            # What is gone is gone. What may not be read is due like a file, and loading it says why it cannot be.
            if not isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
                yield error.filename, _UNREADABLE

    def _settled(self, path: str, stamp: Stamp, now: float) -> bool:
        """Unchanged for a while: by its own time, or since it was first seen so, where clocks disagree."""
        before, since = self._seen.get(path, (None, now))
        if before != stamp:
            since = now
        self._seen[path] = (stamp, since)
        quiet = max(now - since, now - stamp[1] / 1e9 if before in (None, stamp) else 0)
        return quiet >= SETTLE and (quiet >= SETTLE * _UNENDED or stamp == _UNREADABLE or ends(path))

    def _load(self, paths: list[str], there: dict[str, Stamp], done: Pass) -> None:
        """All together, because a load costs seconds; one by one when one of them is bad."""
        try:
            report = load(self.store, paths, spark=self.spark, bar=self.bar)
        except (ServerError, psycopg.OperationalError) as error:
            for path in paths:
                self._fail(path, there[path], error, done)
        except (LogstoreError, psycopg.Error, OSError) as error:
            if len(paths) == 1:
                self._fail(paths[0], there[paths[0]], error, done)
                return
            for path in paths:
                self._load([path], there, done)
        else:
            done.known |= report.known
            if report.load is not None:
                done.loaded.append(report.load)
            for path in paths:
                self._taken[path] = there[path]
                self._failed.pop(path, None)

    def _fail(self, path: str, stamp: Stamp, error: Exception, done: Pass) -> None:
        done.failed[path] = str(error)
        before = self._failed.get(path)
        again = before is not None and before.stamp == stamp
        pause = min(before.pause * 2, _RETRY_MOST) if before is not None and again else _RETRY
        self._failed[path] = _Failure(stamp, pause, self.clock() + pause)
