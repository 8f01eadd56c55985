"""Time as people read it: ranges by name, zones, widths of bars, and how long ago."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from logstore.records import TimeFilter, from_micros, to_micros

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

RANGES: dict[str, timedelta | None] = {
    "1h": _HOUR,
    "24h": _DAY,
    "7d": 7 * _DAY,
    "30d": 30 * _DAY,
    "90d": 90 * _DAY,
    "all": None,
}
RANGE_LABELS = {"1h": "1 h", "24h": "24 h", "7d": "7 d", "30d": "30 d", "90d": "90 d", "all": "All"}
BARS_MOST = 120
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAYS = (1, 2, 7, 14, 30, 90, 365, 3650, 36500)
WIDTHS = (*(timedelta(seconds=s) for s in _SECONDS), *(timedelta(days=d) for d in _DAYS))


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time with both ends, for what is counted: lower inclusive, upper exclusive."""

    lower: datetime
    upper: datetime

    @property
    def span(self) -> timedelta:
        return self.upper - self.lower


def zone_of(name: str, browser: str | None) -> tzinfo:
    """The zone that times are shown in; a browser that names none, or one we do not know, gets UTC."""
    if name != "browser" or not browser:
        return UTC
    try:
        return ZoneInfo(browser)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def since(name: str, now: datetime) -> TimeFilter:
    """The lower bound of a named range; `now` is cut, so that a page asks the same question for a while."""
    span = RANGES[name]
    return TimeFilter() if span is None else TimeFilter(gte=cut(now) - span)


def cut(now: datetime) -> datetime:
    return from_micros(to_micros(now) // 10_000_000 * 10_000_000)


def window_of(time: TimeFilter, *, extent: tuple[datetime, datetime] | None, now: datetime) -> Window:
    """Both ends of a filter; what it leaves open is closed by the data's own extent, or by now."""
    first, last = extent or (cut(now) - _DAY, cut(now))
    tick = timedelta(microseconds=1)
    lowers = [bound for bound in (time.gte, time.gt and time.gt + tick) if bound]
    uppers = [bound for bound in (time.lt, time.lte and time.lte + tick) if bound]
    lower = max(lowers) if lowers else first
    upper = min(uppers) if uppers else max(last + tick, cut(now)) if lowers else last + tick
    return Window(lower, max(upper, lower + tick))


def bar_width(span: timedelta) -> timedelta:
    """The narrowest round width that needs no more than BARS_MOST bars."""
    return next((width for width in WIDTHS if span / width <= BARS_MOST), WIDTHS[-1])


def bar_origin(lower: datetime, width: timedelta, zone: tzinfo) -> datetime:
    """Where the first bar starts: at or before `lower`, on a round time of the zone's clock."""
    local = lower.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    if width >= _DAY:
        return midnight.astimezone(UTC)
    start = midnight.astimezone(UTC)
    return start + (lower - start) // width * width


def bar_starts(origin: datetime, upper: datetime, width: timedelta) -> list[datetime]:
    """The start of every bar up to `upper`, quiet ones too."""
    count = -((origin - upper) // width)
    return [origin + i * width for i in range(max(count, 1))]


def show(time: datetime, zone: tzinfo) -> str:
    """A time in the zone, to the millisecond: what a log is read by."""
    return time.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def show_short(time: datetime, zone: tzinfo) -> str:
    """A time in the zone, to the minute."""
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M}"


def span(duration: timedelta) -> str:
    """A duration in its largest unit that says enough: `350 ms`, `12 s`, `4 min`, `3 h`, `5 days`."""
    seconds = abs(duration.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit, until in ((1, "s", 60), (60, "min", 3600), (3600, "h", 48 * 3600)):
        if seconds < until:
            return f"{_short(seconds / size)} {unit}"
    days = _short(seconds / 86400)
    return "1 day" if days == "1" else f"{days} days"


def _short(number: float) -> str:
    """Two digits, and no zero after the point."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")


def ago(time: datetime, now: datetime) -> str:
    return f"{span(now - time)} ago" if time <= now else f"in {span(time - now)}"
