"""How far a load is: one line on a terminal, and the same figures in the table `loads`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, TextIO

import psycopg

from logstore.statements import statements

_WIDTH = 24


class Progress:
    """Figures of a running load. Pages read them from `loads`; the bar appears only where a person watches."""

    def __init__(self, connection: psycopg.Connection[Any], load: int, size: int, *, bar: bool | None = None) -> None:
        self._connection = connection
        self._load = load
        self._size = size
        self._out: TextIO = sys.stderr
        self._bar = self._out.isatty() if bar is None else bar
        self._started = self._entered = time.monotonic()
        self.stage = "reading"
        self.rows = self.bytes = 0
        self.seconds: dict[str, float] = {}

    def enter(self, stage: str) -> None:
        """Begin a stage; the time of the one before is kept."""
        self.seconds[self.stage] = round(time.monotonic() - self._entered, 3)
        self._entered, self.stage = time.monotonic(), stage
        self.show()

    def read(self) -> None:
        """Fetch what the tasks have reported, and pass it on."""
        found = self._connection.execute(statements("postgres", "loads")["progress"], {"load": self._load}).fetchone()
        assert found is not None
        self.rows, self.bytes = found
        self.show()

    def show(self) -> None:
        values = {
            "load": self._load,
            "stage": self.stage,
            "rows": self.rows,
            "bytes": self.bytes,
            "seconds": json.dumps(self.seconds),
        }
        self._connection.execute(statements("postgres", "loads")["note_progress"], values)
        if self._bar:
            self._out.write("\r" + self.line() + "\x1b[K")
            self._out.flush()

    def line(self) -> str:
        share = min(self.bytes / self._size, 1.0) if self._size else 1.0
        full = round(share * _WIDTH)
        rate = self.rows / max(time.monotonic() - self._started, 0.001)
        return f"{self.stage:<8} [{'#' * full}{'.' * (_WIDTH - full)}] {self.rows:>11,} rows {rate:>9,.0f} rows/s"

    def end(self) -> None:
        self.seconds[self.stage] = round(time.monotonic() - self._entered, 3)
        if self._bar:
            self._out.write("\n")
            self._out.flush()
