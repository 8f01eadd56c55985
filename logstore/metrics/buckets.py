"""Which bucket a time falls into: one rule in Python, and the same rule as SQL for every engine.

A granularity is a number and a unit: `15m`, `1d`, `2M`. Buckets are counted in UTC: seconds, minutes, hours and days from
1970-01-01, weeks from Sunday 1970-01-04, months from January 1970. So `1d`, `1w` and `1M` are the natural day, the week that
starts on Sunday, and the calendar month.

Engines divide towards zero, or not, and some print in their session's zone. So their SQL counts from an origin that lies
before every time, in whole microseconds or months: nothing is negative, and no zone is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, Integer, Interval, cast, extract, func, literal, literal_column

from logstore.errors import InvalidSelection
from logstore.records import from_micros, to_micros

MOST = {"s": 60, "m": 60, "h": 24, "d": 31, "w": 4, "M": 12}
SECOND = 1_000_000
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
_WIDTH = {"s": SECOND, "m": 60 * SECOND, "h": HOUR, "d": DAY, "w": 7 * DAY}
_SUNDAY = 3 * DAY  # 1970-01-04
_EARLIEST = to_micros(datetime.min.replace(tzinfo=UTC))
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the calendar repeats
_EPOCH_MONTH = 1970 * 12


@dataclass(frozen=True, slots=True)
class Granularity:
    """The width of buckets; all times here are microseconds since 1970."""

    number: int
    unit: str

    @classmethod
    def parse(cls, text: str) -> Granularity:
        match = re.fullmatch(r"([1-9][0-9]{0,2})([smhdwM])", text) if isinstance(text, str) else None
        if match is None or int(match.group(1)) > MOST[match.group(2)]:
            legal = ", ".join(f"1{unit} to {most}{unit}" for unit, most in MOST.items())
            raise InvalidSelection(f"{text!r} is no granularity: use {legal}")
        return cls(int(match.group(1)), match.group(2))

    def __str__(self) -> str:
        return f"{self.number}{self.unit}"

    @property
    def width(self) -> int | None:
        """In microseconds; None for months, which differ."""
        return None if self.unit == "M" else self.number * _WIDTH[self.unit]

    def bucket(self, micros: int) -> int:
        """The start of the bucket that holds a time. This is the rule; everything else is tested against it."""
        if self.width is None:
            return _month_start(self._month(micros))
        zero = _SUNDAY if self.unit == "w" else 0
        return (micros - zero) // self.width * self.width + zero

    def after(self, start: int) -> int:
        """The start of the next bucket."""
        return _month_start(self._month(start) + self.number) if self.width is None else start + self.width

    def count(self, start: int, end: int) -> int:
        """How many buckets meet [start, end), without listing them."""
        if self.width is None:
            return (self._month(end - 1) - self._month(start)) // self.number + 1
        return (self.bucket(end - 1) - self.bucket(start)) // self.width + 1

    def starts(self, start: int, end: int) -> list[int]:
        """The starts of the buckets that meet [start, end)."""
        if self.width is not None:
            return list(range(self.bucket(start), end, self.width))
        first = self._month(start)
        return [_month_start(first + i * self.number) for i in range(self.count(start, end))]

    def _month(self, micros: int) -> int:
        """The number since year 0 of the first month of the bucket."""
        day = from_micros(micros)
        since = day.year * 12 + day.month - 1 - _EPOCH_MONTH
        return since // self.number * self.number + _EPOCH_MONTH

    @property
    def origin(self) -> int:
        """The first start of a bucket in the year 1: microseconds, or for months their number since year 0."""
        if self.width is None:
            return 12 + (_EPOCH_MONTH - 12) % self.number
        zero = _SUNDAY if self.unit == "w" else 0
        return zero - (zero - _EARLIEST) // self.width * self.width


def _month_start(number: int) -> int:
    year, month = divmod(number, 12)
    cycles, year = divmod(year - 2000, _CYCLE_YEARS)  # also right beyond the year 9999, where a last bucket may end
    days = date(2000 + year, month + 1, 1).toordinal() - date(1970, 1, 1).toordinal()
    return (days + cycles * _CYCLE_DAYS) * DAY


def to_postgres(time: Any, granularity: Granularity) -> Any:
    """The start of a time's bucket, as timestamptz."""
    if granularity.width is not None:
        width = literal(timedelta(microseconds=granularity.width), Interval)
        return func.date_bin(width, time, literal(from_micros(granularity.origin), DateTime(timezone=True)))
    utc = func.timezone("UTC", time)
    since = cast(extract("year", utc), Integer) * 12 + cast(extract("month", utc), Integer) - 1 - granularity.origin
    months = since - since % granularity.number + granularity.origin - _EPOCH_MONTH
    start: Any = literal_column("timestamp '1970-01-01'") + func.make_interval(0, months)
    return func.timezone("UTC", start)


def to_duckdb(granularity: Granularity, time: str = "time") -> str:
    """The start of a time's bucket, as microseconds since 1970."""
    number, origin = granularity.number, granularity.origin
    if granularity.width is not None:
        return f"(epoch_us({time}) - {origin}) // {granularity.width} * {granularity.width} + {origin}"
    utc = f"make_timestamp(epoch_us({time}))"
    months = f"((year({utc}) * 12 + month({utc}) - 1 - {origin}) // {number} * {number} + {origin} - {_EPOCH_MONTH})"
    return f"epoch_us(TIMESTAMP '1970-01-01' + to_months({months}::INTEGER))"


def to_spark(granularity: Granularity, time: str = "time") -> str:
    """The start of a time's bucket, as microseconds since 1970; text only, so that nothing here needs Spark."""
    number, origin = granularity.number, granularity.origin
    if granularity.width is not None:
        return f"(unix_micros({time}) - {origin}) div {granularity.width} * {granularity.width} + {origin}"
    since = f"(unix_micros({time}) - {_EARLIEST}) div {DAY}"  # days; `/` would go through a double
    day = f"date_from_unix_date(cast({since} + {_EARLIEST // DAY} AS int))"
    months = f"((year({day}) * 12 + month({day}) - 1 - {origin}) div {number} * {number} + {origin} - {_EPOCH_MONTH})"
    return f"unix_date(add_months(DATE '1970-01-01', cast({months} AS int))) * {DAY}"
