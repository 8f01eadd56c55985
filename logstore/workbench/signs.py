"""Signs that stand before words and say how something is, and their colours; the words say it as well.

Only signs of the workbench's own font: emoji are empty boxes on a machine that has no font for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas
import streamlit as st

GOOD, BAD, WARN, GOING, NONE, UNKNOWN = "✔", "✘", "▲", "◌", "○", "?"
_NAMES = {GOOD: "green", BAD: "red", WARN: "orange", NONE: "gray", UNKNOWN: "gray"}
# As in .streamlit/config.toml, whose names for them tables do not know.
_LIGHT = {GOOD: "#1a7f5a", BAD: "#c2362b", WARN: "#b86200"}
_DARK = {GOOD: "#4cc79a", BAD: "#ff7b6e", WARN: "#f0a04b"}


def coloured(text: str) -> str:
    """A text that begins with a sign, for a place that reads Markdown: the sign in its colour."""
    colour = _NAMES.get(text[:1])
    return f":{colour}[{text[0]}]{text[1:]}" if colour else text


def tinted(table: pandas.DataFrame, columns: Sequence[str]) -> Any:
    """A table whose cells in these columns have the colour of the sign that they begin with."""
    here: list[Hashable] = [name for name in columns if name in table]
    tints = _DARK if st.context.theme.type == "dark" else _LIGHT
    return table.style.map(lambda text: f"color: {tint}" if (tint := tints.get(str(text)[:1])) else "", subset=here)


def percent(table: pandas.DataFrame, column: str) -> Any:
    """A table with a column of rates as people compare them: `8.0%` below `23.4%`."""
    return table.style.format({column: "{:.1%}"})
