"""Settings: environment variables, read once when a store is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from logstore.errors import InvalidSetting

ROOT = Path(__file__).resolve().parent.parent
ROLES = ("reader", "operator")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a store needs to know about its surroundings; each field is one variable of the README's table."""

    home: Path = Path("var")  # LOGSTORE_HOME
    dsn: str | None = None  # LOGSTORE_DSN
    archive: Path = Path("var/archive")  # LOGSTORE_ARCHIVE
    inbox: Path = Path("var/inbox")  # LOGSTORE_INBOX
    oldest: date | None = None  # LOGSTORE_OLDEST; None: ten years back
    ahead: int = 2  # LOGSTORE_AHEAD, days
    undo_days: int = 7  # LOGSTORE_UNDO_DAYS
    role: str = "operator"  # LOGSTORE_ROLE
    spark_master: str = "local[*]"  # LOGSTORE_SPARK_MASTER
    spark_memory: str = "2g"  # LOGSTORE_SPARK_MEMORY

    @classmethod
    def read(cls, env: Mapping[str, str] | None = None) -> Settings:
        """The settings of an environment; a value that cannot be read is refused, not replaced."""
        env = os.environ if env is None else env
        given = {key.removeprefix("LOGSTORE_"): value for key, value in env.items() if key.startswith("LOGSTORE_")}
        home = Path(given.get("HOME") or "var").expanduser().absolute()
        dsn = given.get("DSN") or None
        role = given.get("ROLE") or ("operator" if dsn is None else "reader")
        if role not in ROLES:
            raise InvalidSetting(f"LOGSTORE_ROLE is {role!r}; use one of {', '.join(ROLES)}")
        return cls(
            home=home,
            dsn=dsn,
            archive=Path(given.get("ARCHIVE") or home / "archive").expanduser().absolute(),
            inbox=Path(given.get("INBOX") or home / "inbox").expanduser().absolute(),
            oldest=_day(given, "OLDEST"),
            ahead=_number(given, "AHEAD", 2),
            undo_days=_number(given, "UNDO_DAYS", 7),
            role=role,
            spark_master=given.get("SPARK_MASTER") or "local[*]",
            spark_memory=_size(given, "SPARK_MEMORY", "2g"),
        )

    def oldest_day(self, now: datetime) -> datetime:
        """The first moment that a record may have."""
        day = self.oldest or _ten_years_before(now.astimezone(UTC).date())
        return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _ten_years_before(day: date) -> date:
    return date(day.year - 10, day.month, 1)


def _day(given: Mapping[str, str], name: str) -> date | None:
    text = given.get(name)
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidSetting(f"LOGSTORE_{name} is {text!r}; write a date like 2020-01-31") from None


def _size(given: Mapping[str, str], name: str, default: str) -> str:
    text = given.get(name) or default
    if not re.fullmatch(r"\d+[kmgt]b?", text, re.ASCII | re.IGNORECASE):
        raise InvalidSetting(f"LOGSTORE_{name} is {text!r}; write a size like 2g or 1500m")
    return text


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise InvalidSetting(f"LOGSTORE_{name} is {text!r}; write a whole number of days")
    return int(text)
