"""The questions that have a name: sql/duckdb/questions.sql, their parameters, and asking them."""

from __future__ import annotations

import difflib
import re
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import duckdb

from logstore.analysis.answers import Answer
from logstore.analysis.views import Archive, Tiers, open_views, read_archive, reading, views_of
from logstore.errors import InvalidSelection, TooBroad
from logstore.records import parse_rfc3339
from logstore.statements import statements
from logstore.store import LogStore

_TITLE = re.compile(r"^-- title: (.+)$", re.MULTILINE)
_TAKES = re.compile(r"^-- takes: (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter of a question; `kind` is time, text or integer."""

    name: str
    kind: str
    default: int | None = None

    def read(self, value: Any) -> Any:
        """A value as DuckDB binds it; one of the wrong kind is refused. Text is read, for the command line."""
        if value is None:
            return self.default
        if self.kind == "time":
            return self._time(value)
        if self.kind == "integer":
            if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value):
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**9:
                raise InvalidSelection(f"{self.name} is {value!r}; it must be a whole number of at least 1")
        elif not isinstance(value, str):
            raise InvalidSelection(f"{self.name} must be text, not {type(value).__name__}")
        return value

    def _time(self, value: Any) -> datetime:
        if isinstance(value, str):
            return parse_rfc3339(value)
        if isinstance(value, datetime):
            if value.utcoffset() is None:
                raise InvalidSelection(f"{self.name} must carry a time zone; add tzinfo=datetime.UTC")
            return value.astimezone(UTC)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        raise InvalidSelection(f"{self.name} must be a time, not {type(value).__name__}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question with a name, its words, its parameters and its SQL."""

    name: str
    title: str
    parameters: tuple[Parameter, ...]
    sql: str

    def bind(self, given: dict[str, Any]) -> dict[str, Any]:
        """Every parameter's value; an unknown name is refused and the nearest known one suggested."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                takes = ", ".join(known)
                raise InvalidSelection(f"{self.name} takes no {name!r}{_nearest(name, known)}; it takes {takes}")
        return {name: parameter.read(given.get(name)) for name, parameter in known.items()}


@cache
def questions() -> dict[str, Question]:
    """The named questions, in the order of the file."""
    return {name: _parse(name, text) for name, text in statements("duckdb", "questions").items()}


def _parse(name: str, text: str) -> Question:
    title, takes = _TITLE.search(text), _TAKES.search(text)
    assert title is not None and takes is not None, f"{name} lacks its title or its parameters"
    parameters = []
    for part in takes[1].split(", "):
        word, kind, *default = part.split()
        parameters.append(Parameter(name=word, kind=kind, default=int(default[0]) if default else None))
    return Question(name=name, title=title[1], parameters=tuple(parameters), sql=text)


def ask(store: LogStore, name: str, *, tiers: Tiers = "cold", **parameters: Any) -> Answer:
    """Answer one of `questions()`; its parameters are given by name and bound, never pasted."""
    known = questions()
    if name not in known:
        near = _nearest(name, known) or f"; there are {', '.join(known)}"
        raise InvalidSelection(f"there is no question {name!r}{near}")
    values = known[name].bind(parameters)
    if tiers != "cold":
        connection, missing = open_views(store, tiers)
        with connection:
            return _answer(connection, known[name], values, missing)
    archive = read_archive(store)
    with _views(store, archive).cursor() as cursor:
        return _answer(cursor, known[name], values, archive.warnings)


def _answer(
    connection: duckdb.DuckDBPyConnection, question: Question, values: dict[str, Any], warnings: tuple[str, ...]
) -> Answer:
    started = time.perf_counter()
    try:
        with reading():
            table = connection.execute(question.sql, values).to_arrow_table()
    except duckdb.OutOfMemoryException as error:
        raise TooBroad(
            "Too broad: the answer needs more memory than there is; narrow the time or name a tenant."
        ) from error
    return Answer(table=table, seconds=time.perf_counter() - started, title=question.title, warnings=warnings)


# Views over the same files are the same views: DuckDB starts once for each state of a store's archive, and keeps the
# files' footers. Nothing is kept of the store's own life: when it goes, so does this.
_lock = Lock()
_kept: WeakKeyDictionary[LogStore, tuple[tuple[str, ...], duckdb.DuckDBPyConnection]] = WeakKeyDictionary()


def _views(store: LogStore, archive: Archive) -> duckdb.DuckDBPyConnection:
    files = tuple(segment.location for segment in archive.segments)
    with _lock:
        found = _kept.get(store)
        if found is None or found[0] != files:
            found = _kept[store] = (files, views_of(store, archive))
        return found[1]


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name.lower().replace(" ", "_").replace("-", "_"), list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
