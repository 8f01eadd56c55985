"""What a notebook shows of an object: one table, escaped, cut, with its caption and what must be known about it."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

ROWS_MOST = 200  # all of them are in the object
CELL_MOST = 200  # characters
_LINE = 48  # a shorter text keeps its line: ids, times and names are read and copied whole

# Without these classes JupyterLab would typeset whatever stands between two dollar signs.
_TABLE = '<table class="tex2jax_ignore mathjax_ignore">'


def table(
    columns: Sequence[str],
    rows: Iterable[Iterable[Any]],
    *,
    caption: str = "",
    notes: Iterable[str] = (),
    most: int = CELL_MOST,
    count: int | None = None,
) -> str:
    """Rows under their columns; the notes stand before them, so that nobody believes the rows without.

    `count` says how many rows there are where only some of them are given.
    """
    given = list(rows)
    shown, left = given[:ROWS_MOST], (len(given) if count is None else count) - ROWS_MOST
    more = (f"only the first {ROWS_MOST} rows are shown; {left:,} more are there: use to_pandas()",) if left > 0 else ()
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(_cell(value, most) for value in row) + "</tr>" for row in shown)
    title = _caption(caption)
    return f"{_notes((*notes, *more))}{_TABLE}{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def fields(values: Mapping[str, Any], *, caption: str = "", notes: Iterable[str] = (), most: int = CELL_MOST) -> str:
    """One thing: a row for each of its fields."""
    body = "".join(
        f'<tr><th style="white-space: nowrap">{html.escape(name)}</th>{_cell(value, most, align="left")}</tr>'
        for name, value in values.items()
    )
    return f"{_notes(notes)}{_TABLE}{_caption(caption)}<tbody>{body}</tbody></table>"


def sentence(text: str) -> str:
    """What stands where there are no rows."""
    return f"<p>{html.escape(text)}</p>"


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 event, 2 events."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _caption(text: str) -> str:
    return f'<caption style="text-align: left">{html.escape(text)}</caption>' if text else ""


def _notes(notes: Iterable[str]) -> str:
    return "".join(f"<p>⚠ {html.escape(note)}</p>" for note in notes)


def _cell(value: Any, most: int, *, align: str = "right") -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td style="text-align: {align}">{_number(value)}</td>'
    text = _cut(_text(value), most)
    wrap = "pre" if len(text) <= _LINE else "pre-wrap; min-width: 14em"
    return f'<td style="text-align: left; white-space: {wrap}">{html.escape(text)}</td>'


def _number(value: int | float) -> str:
    """Six digits of a fraction; the object has them all."""
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1e6 else f"{value:.6g}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict | list | tuple | bool):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"
