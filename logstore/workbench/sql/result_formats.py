"""An answer on a page: its rows as a table, as a picture, and as a CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas
import plotly.graph_objects as go

from logstore.analysis import Answer
from logstore.export import harmless
from logstore.records import rfc3339
from logstore.workbench import charts, texts, times
from logstore.workbench.frame import Frame

_CELL_MOST = 300  # characters of a cell in the table; the CSV has all
_SAFE_INTEGER = 2**53 - 1  # beyond it a browser rounds
_DAY = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d.*)?$")
DRAWN_MOST = 1_000  # rows in a picture


def headings(columns: Sequence[str]) -> list[str]:
    """The names of the columns, each once: SQL allows the same name twice, tables do not."""
    found: list[str] = []
    for name in columns:
        fresh, number = name, 2
        while fresh in found:
            fresh, number = f"{name} ({number})", number + 1
        found.append(fresh)
    return found


def table(answer: Answer, frame: Frame) -> pandas.DataFrame:
    """The rows as a page shows them: numbers stay numbers, times are in the page's zone, all else is text."""
    names = headings(answer.columns)
    columns = {}
    for name, column in zip(names, answer.table.columns, strict=True):
        values = column.to_pylist()
        if not _are_numbers(values):
            values = [None if value is None else _shown(value, frame) for value in values]
        columns[name] = pandas.Series(values, dtype=object if not values else None)
    return pandas.DataFrame(columns, columns=names)


def numeric(answer: Answer) -> list[str]:
    """The columns that can be drawn upwards."""
    pairs = zip(headings(answer.columns), answer.table.columns, strict=True)
    return [name for name, column in pairs if _are_numbers(column.to_pylist()) and column.null_count < len(column)]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(
        value is None
        or isinstance(value, float)
        or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _SAFE_INTEGER)
        for value in values
    )


def _shown(value: Any, frame: Frame) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return times.show(value, frame.zone)
    text = _text(value)
    return text if len(text) <= _CELL_MOST else text[: _CELL_MOST - 1] + "…"


def _text(value: Any) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return rfc3339(value)
    if isinstance(value, (dict, list, tuple)):
        return texts.dump(_plain(value), indent=None)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else _text(value)


def as_csv(answer: Answer) -> bytes:
    """All rows; times in RFC 3339. A text that a spreadsheet would run gets an apostrophe in front, a number does not."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([harmless(name) for name in headings(answer.columns)])
    for row in answer.rows:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue().encode("utf-8", errors="replace")


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, (bool, int, float, Decimal, date)) and not isinstance(value, datetime):
        return value
    return harmless(_text(value))


def picture(shown: pandas.DataFrame, *, x: str, y: str, line: bool) -> Any:
    """The first rows of a table: one column against another, as bars or as a line."""
    drawn = shown.head(DRAWN_MOST)
    kind = _axis(drawn[x])
    across = list(drawn[x]) if kind == "linear" else [texts.label("" if v is None else v) for v in drawn[x]]
    pairs = list(zip(across, drawn[y], strict=True))
    if line:  # a line follows its axis, whatever the order of the rows
        pairs.sort(key=lambda pair: (pandas.isna(pair[0]), pair[0]))
    points = {"x": [a for a, _ in pairs], "y": [b for _, b in pairs], "hovertemplate": "%{x}<br>%{y:,}<extra></extra>"}
    figure = go.Figure()
    if line:
        figure.add_scatter(mode="lines+markers", line={"color": _COLOUR, "width": 2}, **points)
    else:
        figure.add_bar(marker={"color": _COLOUR}, **points)
        figure.update_layout(barmode="stack")
    charts.dressed(figure, height=320)
    figure.update_xaxes(title=texts.label(x), type=kind)
    figure.update_yaxes(title=texts.label(y), tickformat=",")
    return figure


def _axis(values: pandas.Series[Any]) -> str:
    """What plotly shall take the values for; left alone it would take codes such as "404" for numbers."""
    if pandas.api.types.is_numeric_dtype(values):
        return "linear"
    return "date" if all(isinstance(value, str) and _DAY.match(value) for value in values) else "category"


_COLOUR = "#5b84d6"
