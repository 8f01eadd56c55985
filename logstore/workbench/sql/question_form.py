"""The form of a named question: a widget for each of its parameters, and its SQL to go on from."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from logstore.analysis import Parameter, Question
from logstore.errors import LogstoreError
from logstore.records import rfc3339
from logstore.workbench import cached, texts, url
from logstore.workbench.frame import Frame

_OPTIONAL = re.compile(r"\(\$(\w+)::\w+ IS NULL OR ([^()]+)\)")
PREFIX = url.QUESTION
_LABELS = {
    "since": ("From", "inclusive; empty means from the beginning"),
    "until": ("To", "exclusive; empty means to the end"),
    "tenant": ("Tenant", "empty means all"),
    "limit": ("Rows at most", None),
    "least": ("Leave out groups below", None),
    "minutes": ("Minutes of a window", None),
}


def given(question: Question) -> tuple[tuple[str, str], ...]:
    """The parameters of the URL that this question takes."""
    found = ((parameter.name, url.one(PREFIX + parameter.name)) for parameter in question.parameters)
    return tuple((name, value) for name, value in found if value)


def widgets(frame: Frame, question: Question) -> dict[str, str]:
    """A widget per parameter, with the URL's value; their keys by parameter."""
    keys = {}
    with st.container(horizontal=True, gap="small"):
        for parameter in question.parameters:
            text = url.one(PREFIX + parameter.name)
            try:
                value = parameter.read(text or None)
            except LogstoreError as error:
                st.warning(
                    f"The link's {parameter.name} cannot be read: {texts.plain(str(error))}",
                    icon=":material/link_off:",
                )
                value = parameter.default
            key = f"{question.name} {parameter.name} {text} {frame.zone_name}"
            _widget(frame, parameter, value, key)
            keys[parameter.name] = key
    return keys


def _widget(frame: Frame, parameter: Parameter, value: Any, key: str) -> None:
    label, help_ = _LABELS.get(parameter.name, (parameter.name, None))
    if parameter.kind == "time":
        wall = None if value is None else value.astimezone(frame.zone).replace(tzinfo=None)
        words = f"{label} ({frame.zone_name})"
        st.datetime_input(words, value=wall, key=key, help=help_, step=timedelta(minutes=1), width=215)
    elif parameter.kind == "integer":
        st.number_input(label, min_value=1, max_value=10**9 - 1, value=value, key=key, help=help_, width=160)
    elif parameter.name == "tenant":
        known = cached.names("tenants")
        options = known if value is None or value in known else [*known, value]
        index = None if value is None else options.index(value)
        st.selectbox(
            label, options, index=index, key=key, help=help_, placeholder="all", accept_new_options=True, width=215
        )
    else:
        st.text_input(label, value=value or "", key=key, help=help_, width=215)


def chosen(frame: Frame, question: Question, keys: dict[str, str]) -> dict[str, str | None]:
    """What the widgets hold, as the URL writes it; what is usual is left out."""
    found: dict[str, str | None] = {}
    for parameter in question.parameters:
        value = st.session_state.get(keys[parameter.name])
        if isinstance(value, datetime):
            value = rfc3339(value.replace(tzinfo=frame.zone))
        usual = value in (None, "", parameter.default)
        found[PREFIX + parameter.name] = None if usual else str(value)
    return found


def as_sql(question: Question, parameters: tuple[tuple[str, str], ...]) -> str:
    """The question's SQL with its values written in, for the editor, whose sandbox trusts no text anyway."""
    values = question.bind(dict(parameters))
    lines = [line for line in question.sql.strip().splitlines() if not re.match(r"-- (title|takes|name):", line)]
    # A condition whose parameter is not given says nothing: it goes, so that what is left reads well.
    sql = _OPTIONAL.sub(lambda match: "true" if values[match[1]] is None else match[2], "\n".join(lines))
    sql = re.sub(r"\s+AND true\b", "", re.sub(r"\btrue\s+AND\s+", "", sql))
    sql = re.sub(r"\s+WHERE true$", "", sql, flags=re.MULTILINE)
    return re.sub(r"\$(\w+)", lambda match: _literal(values[match[1]]), sql)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMPTZ '{rfc3339(value.astimezone(UTC))}'"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
