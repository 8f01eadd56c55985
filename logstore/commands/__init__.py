"""The command line, a module per group of commands; each has `add(commands)` that registers its own."""

from __future__ import annotations

import argparse
import difflib
import getpass
import importlib
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, NoReturn

import psycopg

import logstore
from logstore.errors import InvalidSelection, LogstoreError, ServerError
from logstore.store import LogStore

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
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = build_parser()
    try:
        given, unknown = parser.parse_known_args(arguments)
        if unknown:
            _refuse(getattr(given, "parser", parser), unknown[0])
        if not hasattr(given, "run"):
            parser.print_help()
            return 2
        return given.run(given) or 0
    except BrokenPipeError:  # `| head` closed the pipe; that is not our error
        sys.stderr.close()
        return 0
    except (LogstoreError, psycopg.Error, OSError) as error:
        log.debug("%s failed", arguments, exc_info=error)
        name, message = sentence(error)
        if "--json" in arguments:
            print(json.dumps({"error": name, "message": message}))
        print(printable_lines(f"{name}: {message}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def sentence(error: Exception) -> tuple[str, str]:
    """What went wrong, in a name and a sentence; ours are sentences already."""
    if isinstance(error, LogstoreError):
        return type(error).__name__, str(error)
    if isinstance(error, OSError):
        told = f"{error.strerror or error}" + (f": {error.filename}" if error.filename is not None else "")
        return type(error).__name__, told
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    told = f"PostgreSQL did not do it: {said or str(error).partition(chr(10))[0]}"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        told += "; come as the owner of the tables, or, to read, have the owner GRANT logstore_reader to your login"
    return "ServerError", told


class Parser(argparse.ArgumentParser):
    """argparse, whose complaints become our one sentence instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        said = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL)
        if said:
            known = said[3].replace("'", "").split(", ")
            message = f"{said[1]} is {said[2]!r}{_nearest(said[2], known) or '; use one of ' + ', '.join(known)}"
        elif message.startswith("the following arguments are required: "):
            message = " and ".join(self._described(name) for name in message.rpartition(": ")[2].split(", "))
            message += " must be given"
        for kind, wanted in (("int", "a whole number"), ("float", "a number")):
            message = message.replace(f"invalid {kind} value:", f"write {wanted}, not")
        raise InvalidSelection(f"{message.removeprefix('argument ')}; see `{self.prog} --help`")

    def _described(self, name: str) -> str:
        choices = next((list(a.choices) for a in self._actions if name in (a.dest, a.metavar) and a.choices), [])
        return f"{name} ({' or '.join(choices)})" if choices else name


def _refuse(parser: argparse.ArgumentParser, word: str) -> NoReturn:
    near = _nearest(word, list(parser._option_string_actions)) if word.startswith("-") else ""
    parser.error(f"{parser.prog.rpartition(' ')[2]} takes no {word}{near}")


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m logstore",
        description="The log of an event delivery platform: load it, browse it, keep it healthy.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for group in _GROUPS:
        importlib.import_module(f"logstore.commands.{group}").add(commands)
    return parser


def command(commands: Subparsers, name: str, run: Command, *, help: str, examples: str) -> argparse.ArgumentParser:
    """Register one command with `--json` and examples in its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=help,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on the last line")
    parser.set_defaults(run=run, parser=parser)
    return parser


def count(text: str) -> int:
    """The type of an option that is a number of things, of which there is at least one."""
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not int(text):
        raise argparse.ArgumentTypeError(f"write a whole number of at least 1, not {text!r}")
    return int(text)


def operator() -> LogStore:
    """The store, opened to change it: such a command is asked for by name, but never does what a reader may not."""
    if os.environ.get("LOGSTORE_ROLE") == "reader":
        raise ServerError("this changes the log, and LOGSTORE_ROLE is reader: set LOGSTORE_ROLE=operator")
    return logstore.open(role="operator")


def actor() -> str:
    """Who runs this command, for the log of what was done."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


def show(given: argparse.Namespace, document: Any, text: str) -> None:
    """Print the result for a person, or as JSON for a program."""
    print(json_text(document) if given.json else printable_lines(text))


def json_text(document: Any, *, indent: int | None = None) -> str:
    """JSON without a character that a terminal might obey or that is no text: JSON has its own way to write those."""
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=_plain)
    return re.sub(r"[^\n -~]", lambda found: _shown(found[0]), text)


def _shown(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def table(rows: Sequence[Sequence[Any]], head: Sequence[str]) -> str:
    """Rows in aligned columns; control characters in hostile text are shown, not obeyed.

    Where a terminal is too narrow, every row goes on in a line below, so that nothing is cut and ids can be copied;
    what is piped keeps one line a row.
    """
    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    folds = _folds(widths, shutil.get_terminal_size().columns) if sys.stdout.isatty() else [range(len(head))]
    return "\n".join(
        (_INDENT * (number > 0) + "  ".join(row[i].ljust(widths[i]) for i in fold)).rstrip()
        for row in cells
        for number, fold in enumerate(folds)
    )


_INDENT = "    "


def _folds(widths: Sequence[int], room: int) -> list[range]:
    """Which columns share a line, when a line has so much room."""
    folds, first, used = [], 0, widths[0]
    for i, width in enumerate(widths[1:], 1):
        if used + 2 + width > room:
            folds.append(range(first, i))
            first, used = i, len(_INDENT) + width
        else:
            used += 2 + width
    return [*folds, range(first, len(widths))]


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
