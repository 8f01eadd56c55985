"""A question that is being answered beside the page: it can be watched, cancelled, and has its limits."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow

from logstore import analysis
from logstore.analysis import Answer
from logstore.analysis.child import count_rows, rows_read
from logstore.analysis.views import Tiers, blank, fill, reading
from logstore.errors import LogstoreError, SandboxError
from logstore.store import LogStore

log = logging.getLogger(__name__)

SECONDS = 30.0
ROWS = 10_000
MEMORY = "1GB"  # that DuckDB may take for a question in the server's own process; beyond it, it uses the disk


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked: SQL that somebody wrote, or a named question with its parameters."""

    sql: str | None = None
    question: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    tiers: Tiers = "cold"
    explain: bool = False


class Job:
    """One request, answered in a thread; `answer` or `error` is there when `done` is set."""

    def __init__(self, store: LogStore, request: Request) -> None:
        self.request = request
        self.answer: Answer | None = None
        self.error: str | None = None
        self.done = threading.Event()
        self._store = store
        self._started = time.monotonic()
        self._cancelled = threading.Event()
        self._late = False
        self._copying = True
        self._connection: duckdb.DuckDBPyConnection | None = None
        threading.Thread(target=self._run, name="question", daemon=True).start()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def cancel(self) -> None:
        """Stop it, wherever it is."""
        self._cancelled.set()
        self._interrupt()

    def _interrupt(self) -> None:
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def _run(self) -> None:
        try:
            self.answer = self._named() if self.request.question is not None else self._written()
        except LogstoreError as error:
            self.error = str(error)
        except Exception:
            log.exception("a question failed")
            self.error = "the question could not be answered; the server's log says why"
        finally:
            self.done.set()

    def _written(self) -> Answer:
        sql = self.request.sql or ""
        if self.request.explain:
            sql = f"EXPLAIN {sql}"
        return analysis.sandbox(self._store, sql, seconds=SECONDS, rows=ROWS, cancel=self._cancelled)

    def _named(self) -> Answer:
        """Our own SQL with bound parameters, in this process, on a connection of its own so that it can be interrupted."""
        request = self.request
        question = analysis.questions()[request.question or ""]
        values = question.bind(dict(request.parameters))
        sql = f"EXPLAIN {question.sql}" if request.explain else question.sql
        timer = threading.Timer(SECONDS, self._stop)
        timer.daemon = True
        with blank(self._store, memory=MEMORY) as connection:
            self._connection = connection
            timer.start()
            try:
                missing = fill(self._store, connection, request.tiers, go_on=self._check)
                self._copying = False
                self._check()
                count_rows(connection)
                started = time.perf_counter()
                with reading():
                    table, more = _read(connection, sql, values)
                seconds = time.perf_counter() - started
                read = rows_read(connection)
            except duckdb.OutOfMemoryException as error:
                raise SandboxError(f"the question needed more memory than {MEMORY}: {self._advice()}") from error
            except duckdb.Error as error:
                self._check()
                raise SandboxError(f"the question could not be answered: {str(error).splitlines()[0]}") from error
            finally:
                timer.cancel()
                self._connection = None
        return Answer(table=table, seconds=seconds, truncated=more, warnings=missing, title=question.title, read=read)

    def _stop(self) -> None:
        self._late = True
        self._interrupt()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise SandboxError("the query was cancelled")
        if self._late:
            raise SandboxError(f"the question was stopped after {SECONDS:g} s: {self._advice()}")

    def _advice(self) -> str:
        if self._copying and self.request.tiers == "both":
            return "the hot months are too large to be copied; ask without them, or archive some first"
        return "narrow it by time or tenant"


def _read(connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, Any]) -> tuple[pyarrow.Table, bool]:
    """At most ROWS rows, and whether there were more."""
    reader = connection.execute(sql, values).to_arrow_reader(ROWS + 1)
    batches, count = [], 0
    for batch in reader:
        batches.append(batch)
        count += batch.num_rows
        if count > ROWS:
            break
    return pyarrow.Table.from_batches(batches, schema=reader.schema).slice(0, ROWS), count > ROWS
