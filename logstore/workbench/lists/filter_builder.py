"""The form that makes a condition of a field, an operator and a value, and joins it to the expression."""

from __future__ import annotations

from typing import Any

import streamlit as st

from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.filters.tree import quoted
from logstore.workbench import url
from logstore.workbench.frame import Frame
from logstore.workbench.lists import filter_edits
from logstore.workbench.lists.payload_fields import OPERATORS, Known, columns, known

_EXAMPLES = {"number": "100", "boolean": "true", "string": "", "time": "2026-08-01T00:00:00Z", "other": ""}


def builder(frame: Frame, kind: Kind) -> None:
    """A field, an operator and a value make a condition; a click joins it to the expression."""
    with st.popover("Condition", icon=":material/add:"):
        offered = {field.name: field for field in [*known(frame, kind), *columns(kind)]}
        st.caption("Type to find a field: those of the payloads as far as writers have looked, then the columns.")
        name = st.selectbox("Field", list(offered), format_func=lambda name: _label(offered[name]), key="build field")
        field = offered.get(str(name)) or columns(kind)[0]
        operator = st.selectbox("Comparison", OPERATORS[field.type], key=f"build operator {field.type}")
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
            return view.select(where=filter_edits.joined(view.selection.where, kind, condition))
        except InvalidFilter:  # what is there is broken; the new condition goes to its end, where it can be seen
            return view.select(where=f"{view.selection.where} and {condition}")

    url.change(add)
