"""The view: everything that a page shows, written in its URL and read back from it.

Names are those of `Selection.to_query()` and a few more. What is unreadable is refused by name, never replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from logstore.errors import InvalidSelection
from logstore.records import Selection, TimeFilter
from logstore.workbench import times

ZONES = ("utc", "browser")
LIMITS = (25, 50, 100, 200, 500)
DEFAULT_RANGE, DEFAULT_LIMIT = "7d", 50
_YEARS = range(1700, 2200)  # beyond them zones and pictures cannot count
_SINGLE = ("range", "zone", "limit", "next", "prev", "open", "id", "tenant", "columns", "everything")
NAMES = (*Selection.query_names, *_SINGLE)
# What a link to another page takes along: where in time one looks, and how times are written.
CARRIED = ("range", "time.gte", "time.lte", "time.gt", "time.lt", "zone")

Pairs = Iterable[tuple[str, str]]


class UnreadableLink(InvalidSelection):
    """A parameter of the URL cannot be read; `name` says which one, so that a page can offer to drop it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Which records, which page of them, and how they are shown."""

    selection: Selection = field(default_factory=Selection)  # its time is set only when the range is absolute
    range: str | None = DEFAULT_RANGE  # None: absolute, or open
    zone: str = "utc"
    limit: int = DEFAULT_LIMIT
    next: str | None = None
    prev: str | None = None
    open: str | None = None  # the row whose detail is shown
    id: str | None = None  # the event of the event page
    tenant: str | None = None  # whose event, or whose open row, where ids repeat
    columns: tuple[str, ...] = ()  # empty: the page's own choice
    everything: bool = False  # also count what has to read very many records

    @classmethod
    def from_query(cls, pairs: Pairs) -> View:
        """The view of a URL; raises UnreadableLink."""
        known: list[tuple[str, str]] = []
        single: dict[str, str] = {}
        for name, value in pairs:
            if name in Selection.query_names:
                known.append((name, value))
            elif name in _SINGLE:
                single[name] = value
        selection = _selection(known)
        absolute = bool(selection.time.bounds())
        if absolute and "range" in single:
            raise UnreadableLink("range", "The link names a range and exact times as well; one of them must go.")
        if "next" in single and "prev" in single:
            raise UnreadableLink("prev", "The link names next and prev, two places in the list; one of them must go.")
        return cls(
            selection=selection,
            range=None if absolute else _one_of("range", single.get("range", DEFAULT_RANGE), times.RANGES),
            zone=_one_of("zone", single.get("zone", "utc"), ZONES),
            limit=_limit(single.get("limit")),
            next=single.get("next"),
            prev=single.get("prev"),
            open=single.get("open"),
            id=single.get("id"),
            tenant=single.get("tenant"),
            columns=tuple(name for name in single.get("columns", "").split(",") if name),
            everything=single.get("everything") == "1",
        )

    def to_query(self) -> list[tuple[str, str]]:
        """As pairs for a URL; what has its usual value is left out."""
        pairs = self.selection.to_query()
        if self.range not in (None, DEFAULT_RANGE):
            pairs.append(("range", str(self.range)))
        if self.zone != "utc":
            pairs.append(("zone", self.zone))
        if self.limit != DEFAULT_LIMIT:
            pairs.append(("limit", str(self.limit)))
        for name in ("next", "prev", "open", "id", "tenant"):
            value = getattr(self, name)
            if value is not None:
                pairs.append((name, value))
        if self.columns:
            pairs.append(("columns", ",".join(self.columns)))
        if self.everything:
            pairs.append(("everything", "1"))
        return pairs

    def but(self, **changes: Any) -> View:
        """The same view with some fields changed."""
        return replace(self, **changes)

    def select(self, **changes: Any) -> View:
        """The same view with another selection; the place in the list is kept, the open row is not."""
        return replace(self, selection=self.selection.but(**changes)).opened(None)

    def over(self, range_: str | None, time: TimeFilter = TimeFilter()) -> View:
        """The same view over another time: from its newest page, because the old place may lie outside.

        How much there is to read is another question then, so whoever wants everything says so again.
        """
        selection = self.selection.but(time=time)
        return replace(self, selection=selection, range=range_, everything=False).at()

    def at(self, *, next: str | None = None, prev: str | None = None) -> View:
        """The same view at another place of the list; with neither cursor the newest page."""
        return replace(self, next=next, prev=prev).opened(None)

    def opened(self, id: str | None, tenant: str | None = None) -> View:
        """The same view with this row open; None closes the one that is."""
        return replace(self, open=id, tenant=tenant)

    def asked(self, now: datetime) -> Selection:
        """The selection with the named range worked out."""
        return self.selection if self.range is None else self.selection.but(time=times.since(self.range, now))

    def carried(self, *more: str) -> list[tuple[str, str]]:
        """The pairs that a link to another page takes along."""
        return [(name, value) for name, value in self.to_query() if name in (*CARRIED, *more)]


def grouped(pairs: Pairs) -> dict[str, list[str]]:
    """Pairs as Streamlit takes them: each name once, with all its values."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _selection(pairs: list[tuple[str, str]]) -> Selection:
    for name in dict.fromkeys(name for name, _ in pairs):
        try:
            Selection.from_query([pair for pair in pairs if pair[0] == name])
        except InvalidSelection as error:
            raise UnreadableLink(name, f"The link's {name} cannot be read: {error}.") from error
    selection = Selection.from_query(pairs)
    for name in ("gte", "lte", "gt", "lt"):
        bound = getattr(selection.time, name)
        if bound is not None and bound.year not in _YEARS:
            raise UnreadableLink(
                f"time.{name}", f"The link's time.{name} is in the year {bound.year}; no log reaches so far."
            )
    return selection


def _one_of(name: str, value: str, known: Iterable[str]) -> str:
    if value not in known:
        raise UnreadableLink(name, f"The link's {name} is {value!r}; it can be {', '.join(known)}.")
    return value


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise UnreadableLink("limit", f"The link's limit is {text!r}; a page holds 1 to 1000 rows.")
    return int(text)
