"""From the text of a filter to its tree: grammar, then names and types, then negation pushed to the comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from logstore.errors import InvalidFilter
from logstore.filters.literals import read_field, read_value
from logstore.filters.mistakes import mistake, syntax
from logstore.filters.tree import And, Compare, Filter, Or

MOST_BYTES = 4096
MOST_DEPTH = 50
MOST_ITEMS = 500


@lru_cache(maxsize=512)
def parse(text: str, kind: str) -> Filter:
    """The normalised tree of a filter on records of a kind, "event" or "attempt"; InvalidFilter says what is wrong."""
    if kind not in ("event", "attempt"):
        raise ValueError(f"a filter is on records of kind event or attempt, not {kind!r}")
    _check_text(text)
    try:
        node: Any = _grammar().parse(text)
    except (UnexpectedCharacters, UnexpectedToken) as error:
        raise _refused(text, error) from None
    return _normal(node, kind, negated=False)


def _refused(text: str, error: UnexpectedCharacters | UnexpectedToken) -> InvalidFilter:
    token = error.token if isinstance(error, UnexpectedToken) else None
    position = len(text) if token is not None and token.type == "$END" else error.pos_in_stream or 0
    # Asked anew of the text before the mistake: the parser that failed has moved on and forgotten some of its choices.
    before = _grammar().parse_interactive(text[:position])
    before.exhaust_lexer()
    names: set[str] = before.accepts()  # type: ignore[no-untyped-call]
    return syntax(text, position, names, is_token=token is not None)


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise mistake("this is not valid Unicode (a lone surrogate)", error.start) from None
    if size > MOST_BYTES:
        fits = len(text.encode()[:MOST_BYTES].decode(errors="ignore"))
        raise mistake(f"the filter has {size} bytes; at most {MOST_BYTES} are read: shorten it", fits)
    if not text.strip():
        raise mistake('the filter is empty: write a comparison such as status = "failed", or leave it out', 0)


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    nodes = _Nodes()
    return Lark.open("grammar.lark", rel_to=__file__, parser="lalr", transformer=nodes, maybe_placeholders=False)


@dataclass(frozen=True, slots=True)
class _Node:
    """A piece of the filter as it was written: `or`, `and`, `not` over nodes, or a comparison over tokens."""

    name: str
    parts: tuple[Any, ...]
    depth: int = 0


class _Nodes(Transformer[Token, _Node]):
    """What the grammar's rules make. Lark calls these while it parses, so no text can make it recurse."""

    def either(self, parts: list[_Node]) -> _Node:
        return _Node("or", tuple(parts), max(part.depth for part in parts))

    def both(self, parts: list[_Node]) -> _Node:
        return _Node("and", tuple(parts), max(part.depth for part in parts))

    def negation(self, parts: list[Any]) -> _Node:
        return _Node("not", (parts[1],), _deeper(*parts))

    def group(self, parts: list[Any]) -> _Node:
        return _Node(parts[1].name, parts[1].parts, _deeper(*parts))

    def compare(self, parts: list[Token]) -> _Node:
        field, operator, value = parts
        if operator == "!=":
            return _Node("not", (_Node("comparison", (field, "=", (value,))),))
        return _Node("comparison", (field, operator.lower(), (value,)))

    def inside(self, parts: list[Any]) -> _Node:
        return _Node("comparison", (parts[0], "in", parts[-1]))

    def outside(self, parts: list[Any]) -> _Node:
        return _Node("not", (self.inside(parts),))

    def exists(self, parts: list[Token]) -> _Node:
        return _Node("comparison", (parts[0], "exists", ()))

    def list(self, items: list[Token]) -> tuple[Token, ...]:
        if len(items) > MOST_ITEMS:
            raise mistake(f"the list has {len(items)} items; at most {MOST_ITEMS} are read", _at(items[MOST_ITEMS]))
        return tuple(items)


def _deeper(token: Token, inner: _Node) -> int:
    if inner.depth == MOST_DEPTH:
        raise mistake(f"nested more than {MOST_DEPTH} deep from here on: shorten it", _at(token))
    return inner.depth + 1


def _at(token: Token) -> int:
    return token.start_pos or 0


def _normal(node: _Node, kind: str, *, negated: bool) -> Filter:
    if node.name == "not":
        return _normal(node.parts[0], kind, negated=not negated)
    if node.name == "comparison":
        name, operator, tokens = node.parts
        return _compare(name, operator, tokens, kind, negated=negated)
    # De Morgan: under a negation, `and` and `or` change places.
    join = And if (node.name == "and") != negated else Or
    parts: list[Filter] = []
    for written in node.parts:
        part = _normal(written, kind, negated=negated)
        parts.extend(part.parts if isinstance(part, join) else (part,))
    return join(tuple(parts))


def _compare(name: Token, operator: str, tokens: tuple[Token, ...], kind: str, *, negated: bool) -> Compare:
    field = read_field(name, _at(name), kind)
    if field.type == "json" and not field.path and operator != "exists":
        raise mistake(f"{name} is a whole JSON document: name a key in it, such as {name}.amount", _at(name))
    values = tuple(dict.fromkeys(read_value(token.type, token, _at(token), field, operator) for token in tokens))
    if operator == "in" and len(values) == 1:
        operator = "="
    return Compare(field, operator, values, negated)
