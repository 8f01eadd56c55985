"""sql and ask: questions over the archive, from a terminal."""

from __future__ import annotations

import argparse
import json
import math
from datetime import datetime
from typing import Any

import logstore
from logstore import analysis
from logstore.analysis import Answer
from logstore.commands import Subparsers, command, count, show, table
from logstore.display import counted
from logstore.records import rfc3339

_SQL = """  python -m logstore sql "SELECT topic, count(*) FROM events GROUP BY 1 ORDER BY 2 DESC"
  python -m logstore sql "SELECT data->>'$.amount' FROM events LIMIT 5" --json
  python -m logstore sql "DESCRIBE attempts"                  which columns there are
  python -m logstore sql "SELECT * FROM attempts" --rows 50 --seconds 2 --memory 512MB"""
_ASK = """  python -m logstore ask                                      which questions there are
  python -m logstore ask failure_groups --tenant acme --since 2026-08-01T00:00:00Z
  python -m logstore ask retry_storms --minutes 10 --least 50 --json"""
_CELL_MOST = 80
# Somebody whose months are all in PostgreSQL would believe that there is nothing.
_COLD = "from the archive, without the months that PostgreSQL serves"
_HELP = {
    "since": "from this time on, such as 2026-08-01T00:00:00Z",
    "until": "before this time",
    "tenant": "only this tenant",
    "limit": "at most so many rows",
    "least": "leave out groups with fewer",
    "minutes": "the width of a window",
}


def add(commands: Subparsers) -> None:
    parser = command(commands, "sql", _sql, help="run one SELECT over the archive, in a sandbox", examples=_SQL)
    parser.add_argument("sql", metavar="SELECT", help="in DuckDB's SQL; the tables are events and attempts")
    parser.add_argument("--seconds", type=float, default=10, help="stop it after so long (10)")
    parser.add_argument("--rows", type=count, default=10_000, help="show at most so many (10000)")
    parser.add_argument("--memory", default="1GB", help="stop it at so much (1GB)")
    parser = command(commands, "ask", _ask, help="answer one of the named questions", examples=_ASK)
    parser.add_argument("name", nargs="?", help="a question; without one, all are listed")
    parser.add_argument(
        "--tiers", choices=("cold", "both"), default="cold", help="the archive (cold), or the hot months too"
    )
    # Which of them a question takes, it says itself; so that a wrong one is answered with the right ones.
    for name in dict.fromkeys(p.name for question in analysis.questions().values() for p in question.parameters):
        parser.add_argument(f"--{name}", help=_HELP.get(name))


def _sql(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        answer = analysis.sandbox(store, given.sql, seconds=given.seconds, rows=given.rows, memory=given.memory)
    show(given, _document(answer), f"{_text(answer)}; {_COLD}")


def _ask(given: argparse.Namespace) -> None:
    known = analysis.questions()
    if given.name is None:
        listed = [
            {"name": q.name, "title": q.title, "parameters": [p.name for p in q.parameters]} for q in known.values()
        ]
        rows = [(q.name, q.title, " ".join(f"--{p.name}" for p in q.parameters)) for q in known.values()]
        hint = "\n\nAsk one by its name, such as `python -m logstore ask success_rate --tiers both`"
        show(given, listed, table(rows, ("question", "asks", "takes")) + hint)
        return
    names = {p.name for question in known.values() for p in question.parameters}
    parameters = {name: value for name in names if (value := getattr(given, name)) is not None}
    with logstore.open(role="reader") as store:
        answer = analysis.ask(store, given.name, tiers=given.tiers, **parameters)
    more = f"; {_COLD}: --tiers both adds them" if given.tiers == "cold" else ""
    show(given, _document(answer), _text(answer) + more)


def _document(answer: Answer) -> dict[str, Any]:
    rows = [[_plain(value) for value in row] for row in answer.rows]
    return {
        "columns": answer.columns,
        "rows": rows,
        "truncated": answer.truncated,
        "seconds": round(answer.seconds, 6),
        "warnings": answer.warnings,
    }


def _text(answer: Answer) -> str:
    lines = [answer.title] if answer.title else []
    lines += [f"! {note}" for note in answer.notes]
    lines.append(
        table([[_cell(value) for value in row] for row in answer.rows], answer.columns) if len(answer) else "no rows"
    )
    return "\n".join([*lines, f"{counted(len(answer), 'row')} in {answer.seconds:.3f} s"])


def _cell(value: Any) -> Any:
    plain = round(value, 6) if isinstance(value, float) else _plain(value)
    text = (
        json.dumps(plain, ensure_ascii=False)
        if isinstance(plain, (list, dict))
        else ""
        if plain is None
        else str(plain)
    )
    return text if len(text) <= _CELL_MOST else text[:_CELL_MOST] + "…"


def _plain(value: Any) -> Any:
    """A value of any SQL type as JSON has it: times in RFC 3339, what JSON cannot hold as text."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return rfc3339(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value)
