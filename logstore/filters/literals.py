"""The words of a filter: fields with their paths, and values that make sense for the field they are compared with."""

from __future__ import annotations

import re

from logstore.errors import InvalidSelection
from logstore.filters.mistakes import COLUMNS, mistake, unknown_field
from logstore.filters.tree import NUMBER, Field, Value, quoted
from logstore.records import parse_rfc3339, rfc3339

MOST_KEYS = 50

_KEY = re.compile(r"\.(?:(\w+)|'((?:[^'\\]|\\.)*)')", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_NUMBER = re.compile(NUMBER)
# Python reads more than RFC 3339 allows, and cuts what is finer than a microsecond.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.IGNORECASE | re.ASCII)

# For each type of field: the kinds of value it is compared with, and how a message names them.
_COMPARABLE = {
    "text": (("text", "number"), "a text in double quotes or a number"),
    "json": (("text", "number", "boolean"), "a text in double quotes, a number, true or false"),
    "integer": (("number",), "a number"),
    "boolean": (("boolean",), "true or false"),
    "time": (("text",), 'a time in double quotes, such as "2026-08-01T12:00:00Z"'),
}
_HOLDS = {"text": "text", "integer": "a whole number", "boolean": "true or false", "time": "a time"}
_TEXT_OPERATORS = ("contains", "startswith", "endswith")
_KINDS = {"TEXT": "text", "NUMBER": "number", "BOOLEAN": "boolean"}


def read_field(source: str, position: int, kind: str) -> Field:
    """The field that a filter names: a column of the table, with the object keys behind it."""
    name, dot, _ = source.partition(".")
    column = f"event_{name}" if kind == "attempt" and name in ("data", "metadata") else name
    if column not in COLUMNS[kind]:
        raise unknown_field(name, kind, position)
    if not dot:
        return Field(column)
    if (holds := _HOLDS.get(Field(column).type)) is not None:
        message = f"{name} holds {holds} and has no keys; a path starts with data, metadata"
        raise mistake(message + (" or response_data" if kind == "attempt" else ""), position + len(name))
    keys = [
        bare if bare is not None else unescape(inner, position + found.start(2))
        for found in _KEY.finditer(source, len(name))
        for bare, inner in [found.groups()]
    ]
    if len(keys) > MOST_KEYS:
        raise mistake(f"the path has {len(keys)} keys; at most {MOST_KEYS} are read", position)
    return Field(column, tuple(keys))


def read_value(token: str, source: str, position: int, field: Field, operator: str) -> Value:
    """The value that a token of the grammar stands for, if the field can be compared with it in this way."""
    kind = _KINDS[token]
    kinds, wanted = _COMPARABLE[field.type]
    if operator in _TEXT_OPERATORS and field.type not in ("text", "json"):
        wanted = "= != < <= > >= in" if field.type != "boolean" else "= != in"
        raise mistake(f"{operator} looks inside text, but {field} holds {_HOLDS[field.type]}", position, (wanted,))
    if kind not in kinds:
        raise mistake(
            f"{field} holds {_HOLDS[field.type]}: compare it with {wanted}, not {source}", position, (wanted,)
        )
    if operator in _TEXT_OPERATORS and kind != "text":
        raise mistake(f"{operator} looks inside text: write {quoted(source)}", position, ("a text in double quotes",))
    if kind == "boolean" and operator not in ("=", "in"):
        raise mistake(f"{operator} puts values in order; true and false only take = != in", position, ("= != in",))
    if kind == "number":
        return _number(source, position)
    if kind == "boolean":
        return Value("boolean", source.lower() == "true", source.lower())
    text = unescape(source[1:-1], position + 1)
    return _time(text, position) if field.type == "time" else Value("text", text, quoted(text))


def unescape(text: str, position: int) -> str:
    """The text between two quotes, with its escapes replaced."""

    def replaced(found: re.Match[str]) -> str:
        code: str = found.group(1)
        if len(code) > 1:
            return chr(int(code[1:], 16))
        if code not in _PLAIN_ESCAPES:
            usual = ('\\"', "\\'", "\\\\", "\\n", "\\t", "\\uXXXX")
            raise mistake(f"unknown escape \\{code}; write \\\\ for a backslash", position + found.start(), usual)
        return _PLAIN_ESCAPES[code]

    plain = _ESCAPE.sub(replaced, text)
    if "\x00" in plain:
        raise mistake("a NUL character is in no stored text: leave it out", position)
    try:
        # Characters beyond U+FFFF may come as two escapes, as in JSON.
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise mistake("half of a surrogate pair is not a character", position) from None


def _number(source: str, position: int) -> Value:
    if not _NUMBER.fullmatch(source):
        wanted = "at most 15 digits, a fraction of at most 30, an exponent of at most 2"
        raise mistake(f"{source} is not a number here ({wanted}); quote it to compare text", position, ("a number",))
    return Value("number", float(source), source.lower())


def _time(text: str, position: int) -> Value:
    try:
        time = parse_rfc3339(text.upper()) if _RFC3339.fullmatch(text) else None
    except InvalidSelection:
        time = None
    if time is None:
        message = f"{quoted(text)} is not a time with a zone: write it like 2026-08-01T12:00:00Z"
        raise mistake(message, position, (_COMPARABLE["time"][1],))
    return Value("time", time, quoted(rfc3339(time)))
