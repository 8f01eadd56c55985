"""Hostile text made harmless: for Markdown, for plotly's labels, and JSON cut to what a page can show."""

from __future__ import annotations

import html
import json
import re
from typing import Any

# Everything that Markdown, Streamlit's directives (:red[…], :material/…:) or KaTeX ($…$) give a meaning.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~^$:&\"'=@/%])")
_ADDRESS = re.compile(r"(://|www)([^ ])", re.IGNORECASE)
_SAFE_INTEGER = 2**53 - 1  # beyond it a browser rounds
SHOWN_MOST = 60_000  # characters of JSON that a tree stays quick with
_STRING_MOST, _ITEMS_MOST, _DEPTH_MOST = 1_000, 100, 12
_NESTED_MOST = 60  # levels; nobody opens more, and Python's own stack ends somewhere


def markdown(text: object, most: int = 200) -> str:
    """A text for a place that reads Markdown: every mark is escaped, line ends are blanks, and it is cut.

    Addresses would become links even so; a mark without width keeps them apart.
    """
    line = _ADDRESS.sub("\\1\u200b\\2", " ".join(str(text).split()))
    line = line if len(line) <= most else line[: most - 1] + "…"
    return _MARKDOWN.sub(r"\\\1", line)


def plain(text: str) -> str:
    """A text as a label that reads Markdown shows it."""
    return markdown(text, 60)


def label(text: object, most: int = 40) -> str:
    """A text for plotly, whose labels read a few HTML tags."""
    line = " ".join(str(text).split())
    return html.escape(line if len(line) <= most else line[: most - 1] + "…", quote=True)


def dump(value: Any, *, indent: int | None = 2) -> str:
    """JSON as people read it; what is nested too deeply to be laid out stays on one line."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        return json.dumps(value, ensure_ascii=False)


def shown(value: Any) -> tuple[Any, bool]:
    """What a tree shows of a value, and whether that is all of it.

    A browser reads large integers as floats, so those are given as text, digits unharmed.
    """
    whole = len(dump(value, indent=None)) <= SHOWN_MOST
    cut = _Cutting(whole)
    return cut.of(value, 0), not cut.happened


class _Cutting:
    """A walk through a value that shortens it; `whole` values keep everything but unsafe numbers."""

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.happened = False
        self.left = SHOWN_MOST

    def of(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return self._dict(value, depth)
        if isinstance(value, list):
            return self._list(value, depth)
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _SAFE_INTEGER:
            return f"{value} (a number)"
        return value

    def _string(self, value: str) -> str:
        if self.whole or len(value) <= _STRING_MOST:
            self.left -= len(value)
            return value
        self.happened = True
        self.left -= _STRING_MOST
        return f"{value[:_STRING_MOST]}… ({len(value):,} characters in all)"

    def _full(self, depth: int, size: int) -> bool:
        deep = depth >= (_NESTED_MOST if self.whole else _DEPTH_MOST)
        full = size > 0 and (deep or (not self.whole and self.left <= 0))
        self.happened |= full
        return full

    def _dict(self, value: dict[str, Any], depth: int) -> Any:
        if self._full(depth, len(value)):
            return f"… ({len(value):,} fields)"
        kept = list(value.items()) if self.whole else list(value.items())[:_ITEMS_MOST]
        self.left -= sum(len(str(key)) + 4 for key, _ in kept)
        # Keys that are long are cut too; a number keeps two of them apart.
        found = {self._key(key, i): self.of(item, depth + 1) for i, (key, item) in enumerate(kept)}
        if len(kept) < len(value):
            self.happened = True
            found["…"] = f"{len(value) - len(kept):,} more fields"
        return found

    def _key(self, key: str, number: int) -> str:
        if self.whole or len(key) <= 200:
            return key
        self.happened = True
        return f"{key[:200]}… ({number})"

    def _list(self, value: list[Any], depth: int) -> Any:
        if self._full(depth, len(value)):
            return f"… ({len(value):,} items)"
        kept = value if self.whole else value[:_ITEMS_MOST]
        found = [self.of(item, depth + 1) for item in kept]
        if len(kept) < len(value):
            self.happened = True
            found.append(f"… ({len(value) - len(kept):,} more items)")
        return found
