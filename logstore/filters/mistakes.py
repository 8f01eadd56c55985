"""What is wrong with a filter, said in the words of the person who wrote it."""

from __future__ import annotations

import re
from difflib import get_close_matches

from logstore.errors import InvalidFilter
from logstore.filters.tree import COLUMN_TYPES, Field
from logstore.records import Attempt, Event

COLUMNS = {"event": Event.columns, "attempt": Attempt.columns}

# The grammar's terminals as a person would name them, in the order in which they are listed.
_WORDS = {
    "FIELD": "a field",
    "NOT": "not",
    "OPEN": "(",
    "OPERATOR": "a comparison (= != < <= > >= contains startswith endswith)",
    "IN": "in",
    "EXISTS": "exists",
    "TEXT": "a text in double quotes",
    "NUMBER": "a number",
    "BOOLEAN": "true or false",
    "_LIST": "a list in [ ]",
    "_COMMA": ",",
    "_END_LIST": "]",
    "_AND": "and",
    "_OR": "or",
    "_CLOSE": ")",
    "$END": "the end",
}

# What people write by habit from other languages, and what to write here.
_HINTS = (
    (r"'", "a text stands in double quotes; single quotes are for the keys of a path, such as data.'request-id'"),
    (r"==", "write a single ="),
    (r">", "unequal is !="),  # the second half of <>
    (r"!", "write not"),
    (r"&", "write and"),
    (r"\|", "write or"),
    (r"(null|none|nil)\b", "a missing value is asked for by: not … exists"),
    (r"like\b", "write contains, startswith or endswith"),
    (r"is\b", "write = or exists"),
)


def mistake(message: str, position: int, expected: tuple[str, ...] = ()) -> InvalidFilter:
    """The error for a mistake at a position, which counts from 0; people count columns from 1."""
    return InvalidFilter(f"column {position + 1}: {message}", column=position + 1, expected=expected)


def syntax(text: str, position: int, names: set[str], *, is_token: bool) -> InvalidFilter:
    """The error for a text that the grammar refuses at a position where it accepts the named terminals."""
    expected = tuple("not in" if name == "NOT" and "IN" in names else _WORDS[name] for name in _WORDS if name in names)
    rest = text[position:]
    found = f"found {_excerpt(rest)}" if rest else "the filter ends"
    return mistake(f"{found}, expected {_listed(expected)}{_hint(rest, names, is_token=is_token)}", position, expected)


def unknown_field(name: str, kind: str, position: int) -> InvalidFilter:
    """The error for a field that the table does not have, with the one that was probably meant."""
    if name in COLUMN_TYPES:
        other = "attempts" if kind == "event" else "events"
        return mistake(f"{kind}s have no field {name}; {other} do", position)
    names = tuple(str(Field(column)) for column in COLUMNS[kind])
    name = name if len(name) <= 60 else f"{name[:60]}…"
    near = tuple(get_close_matches(name.lower(), names, n=1))
    known = f"there are {', '.join(names)}; a key of the payload is written data.{name}"
    advice = f"did you mean {near[0]}?" if near else known
    return mistake(f"unknown field {name}; {advice}", position, near or names)


def _hint(rest: str, names: set[str], *, is_token: bool) -> str:
    if rest.startswith('"') and not is_token:
        return '; this text is not closed: end it with a double quote, and write \\" for one inside'
    for pattern, advice in _HINTS:
        if re.match(pattern, rest, re.IGNORECASE):
            return f"; {advice}"
    if rest and "OPERATOR" in names and not is_token:
        return "; a key is a plain word or stands in single quotes, as in data.'request-id'"
    if "TEXT" in names and re.match(r"\w", rest):
        return "; a text stands in double quotes"
    return ""


def _excerpt(rest: str) -> str:
    word = re.match(r"\w{1,30}", rest)
    return repr(word.group(0) if word else rest[0])


def _listed(words: tuple[str, ...]) -> str:
    named = [word if word.startswith(("a ", "the ", "true ")) else f'"{word}"' for word in words]
    return " or ".join([", ".join(named[:-1]), named[-1]] if named[1:] else named)
