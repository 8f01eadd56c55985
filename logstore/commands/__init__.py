"""The command line, a module per group of commands; each has `add(commands)` that registers its own."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from logstore.errors import LogstoreError

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
    except LogstoreError as error:
        if given.json:
            print(json.dumps({"error": type(error).__name__, "message": str(error)}))
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` closed the pipe; that is not our error
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


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
    print(json.dumps(document, ensure_ascii=False, default=_plain) if given.json else text)


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


def _plain(value: Any) -> Any:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
