"""The named SQL statements of sql/: `-- name: list_partitions` starts one, the next name ends it."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from logstore.settings import ROOT

_NAME = re.compile(r"^-- name: (\w+)[^\n]*\n", re.MULTILINE)


@cache
def statements(engine: Literal["postgres", "duckdb"], module: str) -> dict[str, str]:
    """The statements of sql/<engine>/<module>.sql by name."""
    text = (ROOT / "sql" / engine / f"{module}.sql").read_text()
    pieces = _NAME.split(text)[1:]
    return {name: body.strip().rstrip(";") for name, body in zip(pieces[::2], pieces[1::2], strict=True)}
