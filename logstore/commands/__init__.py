"""The command line, a module per group of commands; each has `add(commands)` that registers its own."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from logstore.errors import LogstoreError

log = logging.getLogger(__name__)

# Imported one by one when the parser is built; none of them imports Spark or Streamlit before its command runs.
_GROUPS = ("setup", "browse", "load", "fields", "partitions", "archive", "maintain", "analysis", "serve")

_EXAMPLES = """examples:
  python -m logstore doctor                                   is everything here that is needed?
  python -m logstore list attempts --tenant acme --status failed --limit 20
  python -m logstore list events --since 2026-08-01T00:00:00Z --order asc --json
  python -m logstore get event evt_123
  python -m logstore partitions                               which months exist, and in which state

Every command takes --json, which prints one JSON document on the last line, and --help, which shows its own examples.
Settings are environment variables (LOGSTORE_HOME, LOGSTORE_DSN, …); see the README."""

Subparsers = Any  # argparse keeps the type of `add_subparsers()` private
Command = Callable[[argparse.Namespace], int | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a mistake is one sentence on standard error and exit code 2."""
    parser = build_parser()
    given = parser.parse_args(arguments)
    if not hasattr(given, "run"):
        parser.print_help()
        return 2
    try:
        return given.run(given) or 0
    except BrokenPipeError:  # `| head` closed the pipe; that is not our error
        sys.stderr.close()
        return 0
    except (LogstoreError, psycopg.Error, SQLAlchemyError, OSError) as error:
        log.debug("%s failed", arguments, exc_info=error)
        name, message = _sentence(error)
        if given.json:
            print(json.dumps({"error": name, "message": message}))
        print(printable_lines(f"{name}: {message}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _sentence(error: Exception) -> tuple[str, str]:
    """What went wrong, in a name and a sentence; ours are sentences already."""
    if isinstance(error, LogstoreError):
        return type(error).__name__, str(error)
    if isinstance(error, OSError):
        told = f"{error.strerror or error}" + (f": {error.filename}" if error.filename is not None else "")
        return type(error).__name__, told
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = cause.diag.message_primary if isinstance(cause, psycopg.Error) else None
    return "ServerError", f"PostgreSQL did not do it: {said or str(cause).partition(chr(10))[0]}"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m logstore",
        description="The log of an event delivery platform: load it, browse it, keep it healthy.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for group in _GROUPS:
        importlib.import_module(f"logstore.commands.{group}").add(commands)
    return parser


def command(commands: Subparsers, name: str, run: Command, *, help: str, examples: str = "") -> argparse.ArgumentParser:
    """Register one command with `--json` and examples in its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=help,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on the last line")
    parser.set_defaults(run=run)
    return parser


def show(given: argparse.Namespace, document: Any, text: str) -> None:
    """Print the result for a person, or as JSON for a program."""
    if given.json:
        # A file's name may hold what is no text; the terminal cannot take it, but JSON has a way to write it.
        text = json.dumps(document, ensure_ascii=False, default=_plain).encode(errors="backslashreplace").decode()
    print(text)


def table(rows: Sequence[Sequence[Any]], head: Sequence[str]) -> str:
    """Rows in aligned columns; control characters in hostile text are shown, not obeyed."""
    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def printable(cell: Any) -> str:
    """A text for a terminal: control characters are shown, not obeyed."""
    text = "" if cell is None else str(cell)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The same, but lines stay lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _plain(value: Any) -> Any:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
