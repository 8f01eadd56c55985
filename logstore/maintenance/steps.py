"""A plan is data: steps with their exact SQL, sizes, locks and reasons, and a hash by which a stale one is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from logstore import display

# In the order in which a plan holds them: mending, making, and only then removing.
ACTIONS = (
    "attach",
    "finalise",
    "premake",
    "close",
    "export",
    "verify",
    "flip",
    "detach",
    "purge",
    "remove",
    "delete",
    "fold",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One thing to do. Doing it twice does it once."""

    action: str
    table: str
    partition: str  # empty where a step concerns no month
    sql: str
    lock: str
    reason: str
    lower: datetime | None = None
    upper: datetime | None = None
    rows: int = 0  # PostgreSQL's estimate while it is a table, exact once it is sealed
    bytes: int = 0

    @property
    def what(self) -> str:
        return f"{self.action} {self.partition}".rstrip()


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What maintenance would do at a moment; `hash` covers what is done and the catalogue it was made for.

    Rows and bytes are not in the hash, nor is folding: writers change them all the time, and a plan must not grow stale
    by that.
    """

    now: datetime
    steps: tuple[Step, ...]
    hash: str

    @classmethod
    def of(cls, steps: tuple[Step, ...], *, now: datetime, catalogue: list[Any]) -> Plan:
        substance = [(step.action, step.table, step.partition, step.sql) for step in steps if step.action != "fold"]
        text = json.dumps([substance, catalogue], default=str, ensure_ascii=False)
        return cls(now=now, steps=steps, hash=hashlib.sha256(text.encode()).hexdigest())

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: times as texts."""
        steps = [{name: _plain(value) for name, value in asdict(step).items()} for step in self.steps]
        return {"hash": self.hash, "now": self.now.isoformat(), "steps": steps}

    def _repr_html_(self) -> str:
        if not self.steps:
            return display.sentence("Nothing to do.")
        names = [field.name for field in fields(Step)]
        rows = [[getattr(step, name) for name in names] for step in self.steps]
        return display.table(names, rows, caption=f"plan {self.hash[:12]}", most=1000)


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime) else value
