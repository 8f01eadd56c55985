"""The fields that payloads are known to have, and the columns of the records themselves: what can be named in a filter."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from logstore import fields as catalog
from logstore.cursor import Kind
from logstore.filters.mistakes import COLUMNS
from logstore.filters.tree import COLUMN_TYPES
from logstore.workbench import cached
from logstore.workbench.frame import Frame

OPERATORS = {
    "number": (">=", "<=", ">", "<", "=", "!=", "exists"),
    "boolean": ("=", "!=", "exists"),
    "string": ("=", "!=", "contains", "startswith", "endswith", "exists"),
    "time": (">=", "<", "exists"),
    "other": ("exists",),
}
_TYPES = {"text": "string", "integer": "number", "boolean": "boolean", "time": "time"}
_MOST = 500  # fields that are offered


@dataclass(frozen=True, slots=True)
class Known:
    """A field that can be named in a filter: its name there, its type, and whether an index serves it."""

    name: str
    type: str
    indexed: bool = False


def known(frame: Frame, kind: Kind) -> list[Known]:
    """The fields of the payloads of the chosen topics, or of all of them; the commonest first."""
    found = _known(cached.address(), frame.view.selection.topics)
    return [field for field in found if kind == "attempt" or not field.name.startswith("response_data.")]


@st.cache_data(ttl=30, max_entries=100, show_spinner=False)
def _known(address: str, topics: tuple[str, ...]) -> list[Known]:
    database = cached.store().database
    seen = [field for topic in topics or (None,) for field in catalog.catalogue(database, topic)]
    seen.sort(key=lambda field: (field.vanished, -field.rows, field.name))
    unique: dict[str, Known] = {}
    for field in seen:
        types = [name for name in field.types if name != "null"]
        type_ = types[0] if len(types) == 1 and types[0] in OPERATORS else "other" if len(types) == 1 else "string"
        unique.setdefault(field.name, Known(field.name, type_, field.indexed))
    return list(unique.values())[:_MOST]


def as_column(name: str) -> str:
    """A field's name as the URL's list of columns holds it, in which commas part the names."""
    return name.replace(",", "\\u002c")


def columns(kind: Kind) -> list[Known]:
    """The columns of the records themselves."""
    names = [name for name in COLUMNS[kind] if COLUMN_TYPES[name] in _TYPES]
    return [Known(name, _TYPES[COLUMN_TYPES[name]]) for name in names]
