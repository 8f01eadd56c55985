"""The records of the log, which of them are meant, and a page of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from logstore import display
from logstore.errors import InvalidRecord, InvalidSelection

if TYPE_CHECKING:
    import pandas

Json = Any  # what json.loads returns

STATUSES = ("success", "failed")
TIERS = ("hot", "cold")
_ORDERS = {"desc": "newest", "asc": "oldest"}
_CELL_MOST = 80  # of a payload on a page
_RECORD_MOST = 2000  # of a payload of a record by itself

# A btree entry holds at most 2 704 bytes; the widest index is (tenant, destination or topic, time, id).
KEY_BYTES = 512
ID_BYTES = 1200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(time: datetime) -> int:
    """An aware time as whole microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC time of whole microseconds since 1970; OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=micros)


def _utc(time: object, name: str, error: type[Exception]) -> datetime:
    if not isinstance(time, datetime):
        raise error(f"{name} must be a datetime, not {type(time).__name__}")
    if time.utcoffset() is None:
        raise error(f"{name} must carry a time zone; {time.isoformat()} has none: add tzinfo=datetime.UTC")
    return time.astimezone(UTC)


def _check_text(value: object, name: str, *, most: int, empty: bool = False) -> None:
    if not isinstance(value, str):
        raise InvalidRecord(f"{name} must be text, not {type(value).__name__}")
    if not value and not empty:
        raise InvalidRecord(f"{name} must not be empty")
    if "\x00" in value:
        raise InvalidRecord(f"{name} holds a NUL character, which PostgreSQL cannot store")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidRecord(f"{name} is not valid Unicode (a lone surrogate)") from None
    if size > most:
        raise InvalidRecord(f"{name} has {size} bytes; at most {most} fit into the indexes")


def _check_bool(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise InvalidRecord(f"{name} must be True or False, not {value!r}")


class _Record:
    """What events and attempts share: a quick way in for rows that the database has checked already."""

    __slots__ = ()
    columns: ClassVar[tuple[str, ...]]

    @classmethod
    def _rows(cls, rows: Iterable[Sequence[Any]]) -> list[Self]:
        """Records of rows in the order of `columns`, without checking them again."""
        setters = [cls.__dict__[name].__set__ for name in cls.columns]
        made = []
        for row in rows:
            record = object.__new__(cls)
            for put, value in zip(setters, row, strict=True):
                put(record, value)
            made.append(record)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON-ready data, in the order of the table's columns."""
        row = {name: getattr(self, name) for name in self.columns}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}

    def to_json(self, *, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def _repr_html_(self) -> str:
        shown = self.to_dict() | {name: getattr(self, name) for name in self.columns if name in _TIMES}
        return display.fields(shown, caption=type(self).__name__, most=_RECORD_MOST)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event(_Record):
    """Something that happened and was published; `destination_id` is the publish input, mostly empty."""

    columns: ClassVar[tuple[str, ...]] = (
        "id",
        "tenant_id",
        "destination_id",
        "time",
        "topic",
        "eligible_for_retry",
        "data",
        "metadata",
    )

    id: str
    tenant_id: str
    time: datetime
    topic: str
    data: Json
    metadata: Json = field(default_factory=dict)
    destination_id: str = ""
    eligible_for_retry: bool = True

    def __post_init__(self) -> None:
        _check_text(self.id, "Event.id", most=ID_BYTES)
        _check_text(self.tenant_id, "Event.tenant_id", most=KEY_BYTES)
        _check_text(self.topic, "Event.topic", most=KEY_BYTES)
        _check_text(self.destination_id, "Event.destination_id", most=KEY_BYTES, empty=True)
        _check_bool(self.eligible_for_retry, "Event.eligible_for_retry")
        object.__setattr__(self, "time", _utc(self.time, "Event.time", InvalidRecord))


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt(_Record):
    """One try to deliver an event to one destination, with the event inside, so that reading needs no join."""

    columns: ClassVar[tuple[str, ...]] = (
        "id",
        "event_id",
        "tenant_id",
        "destination_id",
        "topic",
        "status",
        "time",
        "attempt_number",
        "manual",
        "code",
        "response_data",
        "event_time",
        "eligible_for_retry",
        "event_data",
        "event_metadata",
    )

    id: str
    event_id: str
    tenant_id: str
    destination_id: str
    topic: str
    status: str
    time: datetime
    attempt_number: int
    event_time: datetime
    event_data: Json
    event_metadata: Json = field(default_factory=dict)
    eligible_for_retry: bool = True
    manual: bool = False
    code: str | None = None
    response_data: Json = None

    def __post_init__(self) -> None:
        _check_text(self.id, "Attempt.id", most=ID_BYTES)
        _check_text(self.event_id, "Attempt.event_id", most=ID_BYTES)
        _check_text(self.tenant_id, "Attempt.tenant_id", most=KEY_BYTES)
        _check_text(self.destination_id, "Attempt.destination_id", most=KEY_BYTES, empty=True)
        _check_text(self.topic, "Attempt.topic", most=KEY_BYTES)
        if self.code is not None:
            _check_text(self.code, "Attempt.code", most=KEY_BYTES, empty=True)
        if self.status not in STATUSES:
            raise InvalidRecord(f"Attempt.status is {self.status!r}; it must be one of {', '.join(STATUSES)}")
        number = self.attempt_number
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
            raise InvalidRecord(f"Attempt.attempt_number must be a whole number from 0 to 2147483647, not {number!r}")
        _check_bool(self.manual, "Attempt.manual")
        _check_bool(self.eligible_for_retry, "Attempt.eligible_for_retry")
        object.__setattr__(self, "time", _utc(self.time, "Attempt.time", InvalidRecord))
        object.__setattr__(self, "event_time", _utc(self.event_time, "Attempt.event_time", InvalidRecord))

    @classmethod
    def of(cls, event: Event, *, id: str, destination_id: str, status: str, time: datetime, **more: Any) -> Self:
        """An attempt at delivering this event; `more` are the other fields of an attempt."""
        return cls(
            id=id,
            event_id=event.id,
            tenant_id=event.tenant_id,
            destination_id=destination_id,
            topic=event.topic,
            status=status,
            time=time,
            attempt_number=more.pop("attempt_number", 1),
            event_time=event.time,
            event_data=event.data,
            event_metadata=event.metadata,
            eligible_for_retry=event.eligible_for_retry,
            **more,
        )

    @property
    def event(self) -> Event:
        """The event inside; its `destination_id` is where this attempt went."""
        return Event(
            id=self.event_id,
            tenant_id=self.tenant_id,
            destination_id=self.destination_id,
            time=self.event_time,
            topic=self.topic,
            eligible_for_retry=self.eligible_for_retry,
            data=self.event_data,
            metadata=self.event_metadata,
        )


RecordT = TypeVar("RecordT", Event, Attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeFilter:
    """Bounds on a record's own time; all optional, ANDed."""

    gte: datetime | None = None
    lte: datetime | None = None
    gt: datetime | None = None
    lt: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("gte", "lte", "gt", "lt"):
            bound = getattr(self, name)
            if bound is not None:
                object.__setattr__(self, name, _utc(bound, f"TimeFilter.{name}", InvalidSelection))

    def bounds(self) -> list[tuple[str, datetime]]:
        """The bounds that are set, as (operator, time)."""
        pairs = ((">=", self.gte), ("<=", self.lte), (">", self.gt), ("<", self.lt))
        return [(operator, bound) for operator, bound in pairs if bound is not None]


_TUPLES = ("tenant_ids", "event_ids", "destination_ids", "topics")
_BOUNDS = ("gte", "lte", "gt", "lt")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which records are meant: every field optional, all of them ANDed; a tuple means any of its values."""

    tenant_ids: tuple[str, ...] = ()
    event_ids: tuple[str, ...] = ()
    destination_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    status: str | None = None
    time: TimeFilter = TimeFilter()
    where: str | None = None

    query_names: ClassVar[tuple[str, ...]] = (*_TUPLES, "status", *(f"time.{b}" for b in _BOUNDS), "where")

    def __post_init__(self) -> None:
        for name in _TUPLES:
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InvalidSelection(f"Selection.{name} takes a tuple of texts: write {name}=({given!r},)")
            values = tuple(dict.fromkeys(given))  # any of: the same value twice means it once
            if not all(isinstance(value, str) for value in values):
                raise InvalidSelection(f"Selection.{name} takes texts only, not {values!r}")
            if any("\x00" in value for value in values):
                raise InvalidSelection(f"Selection.{name} holds a NUL character, which no stored text has")
            object.__setattr__(self, name, values)
        if self.status is not None and self.status not in STATUSES:
            raise InvalidSelection(f"unknown status {self.status!r}: use one of {', '.join(STATUSES)}")
        if not isinstance(self.time, TimeFilter):
            raise InvalidSelection("Selection.time takes a TimeFilter, such as TimeFilter(gte=…)")
        if self.where is not None and not isinstance(self.where, str):
            raise InvalidSelection("Selection.where takes a filter expression as text")

    def but(self, **changes: Any) -> Selection:
        """The same selection with some fields changed."""
        return replace(self, **changes)

    def to_query(self) -> list[tuple[str, str]]:
        """As pairs for a URL: named as the fields, repeated for tuples, times in RFC 3339."""
        pairs = [(name, value) for name in _TUPLES for value in getattr(self, name)]
        if self.status is not None:
            pairs.append(("status", self.status))
        for name in _BOUNDS:
            bound = getattr(self.time, name)
            if bound is not None:
                pairs.append((f"time.{name}", rfc3339(bound)))
        if self.where is not None:
            pairs.append(("where", self.where))
        return pairs

    @classmethod
    def from_query(cls, pairs: Iterable[tuple[str, str]]) -> Selection:
        """The selection that `to_query` wrote; an unknown name or an unreadable time is refused."""
        tuples: dict[str, list[str]] = {name: [] for name in _TUPLES}
        bounds: dict[str, datetime] = {}
        single: dict[str, str] = {}
        for name, value in pairs:
            if name in tuples:
                tuples[name].append(value)
            elif name.removeprefix("time.") in _BOUNDS and name.startswith("time."):
                bounds[name.removeprefix("time.")] = parse_rfc3339(value)
            elif name in ("status", "where"):
                if name in single and single[name] != value:
                    raise InvalidSelection(f"{name} is given twice with different values; keep one")
                single[name] = value
            else:
                raise InvalidSelection(f"unknown name {name!r}; known are {', '.join(cls.query_names)}")
        return cls(
            **{name: tuple(values) for name, values in tuples.items()},
            status=single.get("status"),
            time=TimeFilter(**bounds),
            where=single.get("where"),
        )


def rfc3339(time: datetime) -> str:
    """A time as RFC 3339 in UTC, with microseconds only when it has some."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime:
    """The aware time of an RFC 3339 text."""
    try:
        time = datetime.fromisoformat(text)
        if time.utcoffset() is None:
            raise InvalidSelection(f"the time {text!r} lacks its zone: write it like {time.isoformat()}Z, which is UTC")
        return _utc(time, f"the time {text!r}", InvalidSelection)
    except (ValueError, OverflowError):
        raise InvalidSelection(f"{text!r} is not a time: write it like 2026-08-01T12:00:00Z") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[RecordT]):
    """One page of records, the cursors to its neighbours, and where each record came from."""

    data: tuple[RecordT, ...]
    next: str | None = None
    prev: str | None = None
    tiers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    order: str = "desc"
    kind: type[RecordT] | None = field(default=None, repr=False)  # what an empty page is a page of
    # How to fetch a neighbour; kept out of comparison, because two equal pages are equal however they were read.
    turn: Callable[..., Page[RecordT]] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[RecordT]:
        return iter(self.data)

    def older(self) -> Page[RecordT] | None:
        """The neighbouring page of older records, or None at the end of the list."""
        return self._turn("next" if self.order == "desc" else "prev")

    def newer(self) -> Page[RecordT] | None:
        """The neighbouring page of newer records, or None at the end of the list."""
        return self._turn("prev" if self.order == "desc" else "next")

    def _turn(self, direction: str) -> Page[RecordT] | None:
        cursor = getattr(self, direction)
        if cursor is None or self.turn is None:
            return None
        return self.turn(**{direction: cursor})

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with the table's columns and `tier`; times are datetime64[us, UTC]."""
        import pandas

        columns = (self.kind or type(self.data[0])).columns if self.kind or self.data else ()
        frame = pandas.DataFrame([[getattr(r, c) for c in columns] for r in self.data], columns=list(columns))
        for name in ("time", "event_time"):
            if name in frame:
                frame[name] = frame[name].astype("datetime64[us, UTC]")
        if self.tiers:
            frame["tier"] = list(self.tiers)
        return frame

    def _repr_html_(self) -> str:
        return _shown(self)


def _shown(page: Page[Any]) -> str:
    """A page as a notebook shows it: its caption says what it holds and which ways lead on."""
    noun = (page.kind or type(page.data[0])).__name__.lower() if page.kind or page.data else "record"
    after, before = ("older", "newer") if page.order == "desc" else ("newer", "older")
    more = [f"{way}() has more" for way, cursor in ((before, page.prev), (after, page.next)) if cursor is not None]
    words = "; ".join([f"{display.counted(len(page), noun)}, {_ORDERS[page.order]} first", *more])
    columns = _SHOWN[type(page.data[0])] if page.data else ()
    rows = [[*(getattr(record, name) for name in columns), tier] for record, tier in zip_longest(page.data, page.tiers)]
    return display.table([*columns, "tier"] if rows else (), rows, caption=words, notes=page.warnings, most=_CELL_MOST)


# What fits beside each other; a record by itself shows all of its fields, and `to_pandas()` has them.
_SHOWN: dict[type[Any], tuple[str, ...]] = {
    Event: ("time", "id", "tenant_id", "topic", "data"),
    Attempt: ("time", "status", "code", "attempt_number", "topic", "tenant_id", "destination_id", "id", "event_id"),
}
_TIMES = ("time", "event_time")


assert tuple(sorted(f.name for f in fields(Event))) == tuple(sorted(Event.columns))
assert tuple(sorted(f.name for f in fields(Attempt))) == tuple(sorted(Attempt.columns))
