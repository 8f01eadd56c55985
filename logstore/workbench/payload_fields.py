"""The fields that payloads are known to have: offered to build conditions, as columns, and when a name is misspelt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import streamlit as st

from logstore import fields as catalog
from logstore import filters as language
from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.filters.mistakes import COLUMNS
from logstore.filters.tree import COLUMN_TYPES, quoted
from logstore.workbench import cached, conditions, texts
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame

_OPERATORS = {
    "number": (">=", "<=", ">", "<", "=", "!=", "exists"),
    "boolean": ("=", "!=", "exists"),
    "string": ("=", "!=", "contains", "startswith", "endswith", "exists"),
    "time": (">=", "<", "exists"),
    "other": ("exists",),
}
_TYPES = {"text": "string", "integer": "number", "boolean": "boolean", "time": "time"}
_EXAMPLES = {"number": "100", "boolean": "true", "string": "", "time": "2026-08-01T00:00:00Z", "other": ""}
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
        type_ = types[0] if len(types) == 1 and types[0] in _OPERATORS else "other" if len(types) == 1 else "string"
        unique.setdefault(field.name, Known(field.name, type_, field.indexed))
    return list(unique.values())[:_MOST]


def as_column(name: str) -> str:
    """A field's name as the URL's list of columns holds it, in which commas part the names."""
    return name.replace(",", "\\u002c")


def columns(kind: Kind) -> list[Known]:
    """The columns of the records themselves."""
    names = [name for name in COLUMNS[kind] if COLUMN_TYPES[name] in _TYPES]
    return [Known(name, _TYPES[COLUMN_TYPES[name]]) for name in names]


def builder(frame: Frame, kind: Kind) -> None:
    """A field, an operator and a value make a condition; a click joins it to the expression."""
    with st.popover("Condition", icon=":material/add:"):
        offered = {field.name: field for field in [*known(frame, kind), *columns(kind)]}
        st.caption("Type to find a field: those of the payloads as far as writers have looked, then the columns.")
        name = st.selectbox("Field", list(offered), format_func=lambda name: _label(offered[name]), key="build field")
        field = offered.get(str(name)) or columns(kind)[0]
        operator = st.selectbox("Comparison", _OPERATORS[field.type], key=f"build operator {field.type}")
        value = ""
        if operator != "exists":
            value = st.text_input("Value", _EXAMPLES[field.type], key=f"build value {field.type}", max_chars=500)
        condition = written(field, str(operator), value)
        st.code(condition, language=None, wrap_lines=True)
        st.button("Add to the filter", type="primary", on_click=_add, args=(condition, kind), key="build add")


def _label(field: Known) -> str:
    words = "object or list" if field.type == "other" else field.type
    return f"{field.name} · {words}{' · indexed' if field.indexed else ''}"


def written(field: Known, operator: str, value: str) -> str:
    """A condition as the language writes it; a text is quoted by its rules."""
    if operator == "exists":
        return f"{field.name} exists"
    bare = field.type in ("number", "boolean") and value.strip()
    return f"{field.name} {operator} {value.strip() if bare else quoted(value)}"


def _add(condition: str, kind: Kind) -> None:
    def add(view: Any) -> Any:
        try:
            return view.select(where=conditions.joined(view.selection.where, kind, condition))
        except InvalidFilter:  # what is there is broken; the new condition goes to its end, where it can be seen
            return view.select(where=f"{view.selection.where} and {condition}")

    frames.change(add)


def meant(frame: Frame, kind: Kind, text: str) -> None:
    """Where an expression names a field that no payload is known to have, but one of nearly that name: offer it."""
    names = [field.name for field in known(frame, kind)]
    for wrong, near in misspelt(text, kind, names):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            asked, right = (texts.markdown(name, 80) for name in (wrong, near))
            st.caption(
                f":material/spellcheck: No payload is known to have {asked}. Did you mean {right}?", width="content"
            )
            act = conditions.renamed(text, wrong, near)
            st.button(f"Use {right}", key=f"use {wrong}", on_click=_write, args=(act,))


def _write(text: str) -> None:
    frames.change(lambda view: view.select(where=text))


def misspelt(text: str, kind: Kind, names: Sequence[str]) -> list[tuple[str, str]]:
    """The fields of an expression that are not among the known names, each with the one that was probably meant."""
    try:
        asked = [str(field) for field in conditions.fields_of(language.parse(text, kind)) if field.path]
    except InvalidFilter as mistake:
        found = re.compile(r"[^\W\d]\w*").match(text, mistake.column - 1)
        return _nearest(found.group(), names) if found and "unknown field" in str(mistake) else []
    unseen = [name for name in asked if name not in names]
    pairs = [(name, near) for name in unseen for near in get_close_matches(name, names, n=1, cutoff=0.75)]
    return [(wrong, right) for wrong, right in pairs if conditions.renamed(text, wrong, right) != text]


def _nearest(name: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Of a name that is no column: the payload's field that ends in it, or nearly so."""
    ends = {full.rsplit(".", 1)[-1]: full for full in reversed(names)}
    return [(name, ends[near]) for near in get_close_matches(name, list(ends), n=1, cutoff=0.75)]
