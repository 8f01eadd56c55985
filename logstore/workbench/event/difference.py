"""What differs between two JSON values: which paths changed, and a text's lines side by side; pure and bounded.

Payloads are of any size and shape. So every walk here counts its steps and stops at a limit, and says that it did.
"""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from logstore.workbench import texts

CHANGES_MOST = 200
STEPS_MOST = 200_000  # values that are looked at; a megabyte of JSON has about as many
LINES_MOST = 400  # on each side, after what both begin and end with; difflib is quadratic
_LINE_MOST, _VALUE_MOST, _KEY_MOST = 160, 300, 80
_TEXT_LEAST = 80  # characters of a string that is worth its own comparison by lines


class _Absent:
    """Not there, which is something else than null."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """One path with what stood there before and after."""

    path: str
    before: Any
    after: Any

    @property
    def words(self) -> str:
        if self.before is ABSENT:
            return "added"
        return "removed" if self.after is ABSENT else "changed"

    @property
    def texts(self) -> tuple[str, str] | None:
        """Both sides, when they are texts that are better compared by lines."""
        if isinstance(self.before, str) and isinstance(self.after, str):
            longest = max(len(self.before), len(self.after))
            if longest > _TEXT_LEAST or "\n" in self.before + self.after:
                return self.before, self.after
        return None


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes in the order of the document, and whether there may be more."""

    changes: tuple[Change, ...]
    whole: bool


def difference(before: Any, after: Any, *, most: int = CHANGES_MOST, steps: int = STEPS_MOST) -> Difference:
    """The smallest parts that differ. Lists are compared item by item after what both begin and end with."""
    walk = _Walk(steps)
    found: list[Change] = []
    for change in walk.through(before, after):
        if len(found) == most:
            return Difference(tuple(found), False)
        found.append(change)
    return Difference(tuple(found), walk.left > 0)


class _Walk:
    """A walk through two values at once, on its own stack: JSON may be nested deeper than Python's reaches."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def through(self, before: Any, after: Any) -> Iterator[Change]:
        waiting: list[tuple[str, Any, Any]] = [("", before, after)]
        while waiting and self.left > 0:
            self.left -= 1
            path, old, new = waiting.pop()
            if isinstance(old, dict) and isinstance(new, dict):
                names = list(dict.fromkeys((*old, *new)))
                parts = [(_inside(path, name), old.get(name, ABSENT), new.get(name, ABSENT)) for name in names]
                waiting += reversed(parts)
            elif isinstance(old, list) and isinstance(new, list):
                waiting += reversed(self._items(path, old, new))
            elif not _equal(old, new):
                yield Change(path or "the whole", old, new)

    def _items(self, path: str, old: list[Any], new: list[Any]) -> list[tuple[str, Any, Any]]:
        shorter = min(len(old), len(new))
        first = 0
        while first < shorter and self._same(old[first], new[first]):
            first += 1
        last = 0
        while last < shorter - first and self._same(old[-1 - last], new[-1 - last]):
            last += 1
        olds, news = old[first : len(old) - last], new[first : len(new) - last]
        return [
            (f"{path}[{first + i}]", olds[i] if i < len(olds) else ABSENT, news[i] if i < len(news) else ABSENT)
            for i in range(max(len(olds), len(news)))
        ]

    def _same(self, old: Any, new: Any) -> bool:
        """Whether two values are the same JSON; no, when the steps have run out."""
        waiting = [(old, new)]
        while waiting:
            self.left -= 1
            one, other = waiting.pop()
            if self.left <= 0:
                return False
            if isinstance(one, dict) and isinstance(other, dict):
                if one.keys() != other.keys():
                    return False
                waiting += [(value, other[name]) for name, value in one.items()]
            elif isinstance(one, list) and isinstance(other, list):
                if len(one) != len(other):
                    return False
                waiting += zip(one, other, strict=True)
            elif not _equal(one, other):
                return False
        return True


def _equal(old: Any, new: Any) -> bool:
    """Python takes True for 1 and 1 for 1.0; a reader of JSON does not."""
    if type(old) is not type(new):
        return False
    return bool(old == new) or (old != old and new != new)


def _inside(path: str, name: str) -> str:
    """A path as the filter language writes it: a key that is no plain word stands in quotes."""
    name = name if len(name) <= _KEY_MOST else name[: _KEY_MOST - 1] + "…"
    part = (
        name if name.isidentifier() and name.isascii() else "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    )
    return f"{path}.{part}" if path else part


def said(value: Any, most: int = _VALUE_MOST) -> str:
    """One side of a change as a line of text."""
    if value is ABSENT:
        return "(not there)"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "… (nested too deeply to show)"
    return text if len(text) <= most else text[: most - 1] + "…"


def unified(before: str, after: str, names: tuple[str, str] = ("before", "after")) -> str:
    """The lines that differ, each with its sign, with three lines around; empty when none do."""
    olds, news = _lines(before), _lines(after)
    first = _common(olds, news)
    last = _common(olds[first:][::-1], news[first:][::-1])
    around = max(first - 3, 0)
    old, cut_old = _part(olds, around, max(last - 3, 0))
    new, cut_new = _part(news, around, max(last - 3, 0))
    from_, to = (" ".join(name.split())[:80] for name in names)
    shown = list(difflib.unified_diff(old, new, from_, to, lineterm="", n=3))
    if around:  # difflib counts from the part that it was given
        shown = [_moved(line, around) for line in shown]
    if cut_old or cut_new:
        shown.append(f"… only the first {LINES_MOST} lines that differ are compared")
    return "\n".join(shown)


def laid_out(text: str) -> str:
    """A body as lines: JSON indented, tags apart; anything else as it is."""
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return texts.dump(json.loads(text))
    return text.replace("><", ">\n<")


def _lines(text: str) -> list[str]:
    """Lines no longer than a screen; cutting them would hide what differs at their ends."""
    return [line[i : i + _LINE_MOST] for line in text.splitlines() for i in range(0, max(len(line), 1), _LINE_MOST)]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))  # noqa: B905


def _part(lines: list[str], first: int, last: int) -> tuple[list[str], bool]:
    part = lines[first : len(lines) - last]
    return part[:LINES_MOST], len(part) > LINES_MOST


def _moved(line: str, by: int) -> str:
    if not line.startswith("@@ "):
        return line
    _, old, new, _ = line.split(" ")
    return f"@@ {_shifted(old, by)} {_shifted(new, by)} @@"


def _shifted(span: str, by: int) -> str:
    start, comma, length = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{length}"
