"""The fields of a topic's payloads: what they hold, what changed, and how to filter on one or index it."""

from __future__ import annotations

import shlex
from typing import Any

import pandas
import streamlit as st

from logstore import fields
from logstore.cursor import Kind
from logstore.fields import Field
from logstore.workbench import cached, empty_lists, maintenance_progress, record_details, signs, times, url
from logstore.workbench.counts import lookups
from logstore.workbench.fields.descriptions import (
    CHANGED,
    SEVERAL,
    STEADY,
    VANISHED,
    expression,
    name_of,
    sentence,
    state_of,
    types_of,
)
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import PAGES
from logstore.workbench.view import grouped

_COUNTED_MOST = 64  # values that the catalogue counts exactly


def page(frame: Frame) -> None:
    """One topic, its fields, and the field that is open."""
    known = _topics(cached.address())
    if not known:
        empty_lists.empty_log("No topic has been seen yet.")
        return
    topic = next(iter(frame.view.selection.topics), known[0])
    st.selectbox(
        "Topic",
        known if topic in known else [*known, topic],
        key=url.bound("topic", topic),
        on_change=lambda: url.change(lambda view: view.select(topics=(st.session_state["topic"],))),
        width=360,
    )
    found = _catalogue(cached.address(), topic)
    if topic not in known or not found:
        words = "No payload of this topic has been looked at" if topic in known else "No record has this topic"
        st.info(f"{words}; insert or load records of it, or choose another topic.", icon=":material/inbox:")
        return
    st.markdown(_summary(found))
    st.caption("As far as writers have looked: every insert and every load looks at a sample of its records.")
    _table(frame, found)
    chosen = next((field for field in found if name_of(field) == frame.view.open), None)
    if chosen is not None:
        _field(frame, chosen)
    elif frame.view.open is not None:
        st.info(
            "The link names a field that this topic does not have; choose one in the table.", icon=":material/link_off:"
        )
    else:
        st.caption("Choose a row to see how to filter on it and how to index it.")


@st.cache_data(ttl=10, max_entries=20, show_spinner=False)
def _topics(address: str) -> list[str]:
    return [row["name"] for row in fields.topics(cached.store().database)]


@st.cache_data(ttl=10, max_entries=50, show_spinner=False)
def _catalogue(address: str, topic: str) -> list[Field]:
    """The fields of a topic, those first that somebody should look at."""
    found = fields.catalogue(cached.store().database, topic)
    return sorted(found, key=lambda field: state_of(field) == STEADY)


@st.cache_data(ttl=3, max_entries=200, show_spinner=False)
def _parts(address: str, column: str, path: tuple[str, ...]) -> dict[str, bool]:
    """The months that a field's index is made of: is its part there?"""
    found: dict[str, bool] = {}
    for parent, columns in fields.COLUMNS.items():
        if column in columns:
            index = fields.index_name(parent, column, path)
            found |= dict(lookups.look_up(cached.store(), "parts_of_index", parent=parent, index=index))
    return found


def _summary(found: list[Field]) -> str:
    states = [state_of(field) for field in found]
    said = [f"**{len(found):,} {'field' if len(found) == 1 else 'fields'}**"]
    for sign, one, many in (
        (CHANGED, "changed its type", "changed their type"),
        (SEVERAL, "has several types at once", "have several types at once"),
        (VANISHED, "vanished", "vanished"),
    ):
        count = states.count(sign)
        if count:
            said.append(f"{sign.split()[0]} {count:,} {one if count == 1 else many}")
    return " · ".join(said if len(said) > 1 else [*said, f"{signs.GOOD} all steady"])


# The table


def _table(frame: Frame, found: list[Field]) -> None:
    shown = pandas.DataFrame(
        {
            "field": [name_of(field) for field in found],
            "state": [state_of(field) for field in found],
            "types": [", ".join(types_of(field)) or "null" for field in found],
            "rows": [field.rows for field in found],
            "nulls": [field.nulls for field in found],
            "distinct": [_values(field) for field in found],
            "longest": [f"{field.longest:,}" if field.longest else "" for field in found],
            "index": [_index(field) for field in found],
            "last": [times.ago(field.last_seen, frame.now) for field in found],
            "first": [times.ago(field.first_seen, frame.now) for field in found],
        }
    )
    key = f"fields {found[0].topic} {len(found)}"
    open_row = [i for i, field in enumerate(found) if name_of(field) == frame.view.open]
    st.dataframe(
        signs.tinted(shown, ("state",)),
        key=key,
        hide_index=True,
        height="content" if len(found) <= 15 else 560,
        column_config=_CONFIG,
        on_select=lambda: _chosen(key, found),
        selection_mode="single-row",
        selection_default={"selection": {"rows": open_row, "columns": [], "cells": []}},
    )


def _index(field: Field) -> str:
    if not field.indexed:
        return "no"
    parts = _parts(cached.address(), field.column, field.path)
    return (
        f"{signs.GOOD} indexed"
        if all(parts.values())
        else f"{signs.GOING} {sum(parts.values())} of {len(parts)} months"
    )


def _values(field: Field) -> str:
    """How many values there were; an estimate from where on the catalogue keeps only some of their hashes."""
    most = min(field.distinct, field.rows)
    return "" if most == 0 else f"about {most:,}" if most >= _COUNTED_MOST else str(most)


_CONFIG: dict[str, Any] = {
    "field": st.column_config.TextColumn("field", width=250),
    "state": st.column_config.TextColumn("state", width=135),
    "types": st.column_config.TextColumn("types", width=130, help="the newest first"),
    "rows": st.column_config.NumberColumn("rows seen", format="localized", width=90, help="records of the samples"),
    "nulls": st.column_config.NumberColumn("nulls", format="localized", width=70, help="of the rows seen"),
    "distinct": st.column_config.TextColumn(
        "values", width=100, alignment="right", help="how many different ones, about"
    ),
    "longest": st.column_config.TextColumn("longest, bytes", width=110, alignment="right"),
    "index": st.column_config.TextColumn("index", width=95),
    "last": st.column_config.TextColumn("last seen", width=110),
    "first": st.column_config.TextColumn("first seen", width=110),
}


def _chosen(key: str, found: list[Field]) -> None:
    state: Any = st.session_state.get(key) or {}
    rows = state.get("selection", {}).get("rows", [])
    name = name_of(found[rows[0]]) if rows and rows[0] < len(found) else None
    url.change(lambda view: view.but(open=name))


# One field


def _field(frame: Frame, field: Field) -> None:
    kind: Kind = "attempt" if field.column == "response_data" else "event"
    with st.container(border=True):
        st.markdown(sentence(frame, field))
        zone = frame.zone_name
        facts = {"field": name_of(field), "topic": field.topic}
        facts |= {f"as {type_}, last": f"{frame.show(time)} {zone}" for type_, time in types_of(field).items()}
        facts |= {"first seen": f"{frame.show(field.first_seen)} {zone}"}
        record_details.facts(facts)
        st.caption("Filter on it, for instance:")
        where = expression(field, kind)
        st.code(where, language=None, wrap_lines=True)
        params = _link(frame, field, where)
        for name in ("Events", "Attempts") if kind == "event" else ("Attempts",):
            label = f"Show the {name.lower()} that match"
            st.page_link(PAGES[name][0], label=label, icon=PAGES[name][1], query_params=params)
        missing = _missing(field)
        if missing:
            st.info(
                f"The index is being built; still to do: {maintenance_progress.some(missing)}.",
                icon=":material/hourglass_top:",
            )
        st.caption(_index_words(field, missing))
        verb = "drop" if field.indexed and not missing else "add"
        command = ["python", "-m", "logstore", "index", verb, field.topic, name_of(field)]
        st.code(shlex.join(command), language="bash", wrap_lines=True)


def _missing(field: Field) -> list[str]:
    """The months that an index lacks, in the order in which they are built."""
    parts = _parts(cached.address(), field.column, field.path) if field.indexed else {}
    return [month for month, there in parts.items() if not there]


def _index_words(field: Field, missing: list[str]) -> str:
    if missing:
        return "Until then a filter on it reads the rows of those months. If nothing is at it any more, this goes on:"
    if field.indexed:
        return "It is indexed: comparing it with = and a text finds its rows at once. To give the index up:"
    return "It is not indexed: a filter on it reads every row of the range. To index it, month by month while others write:"


def _link(frame: Frame, field: Field, where: str) -> dict[str, list[str]]:
    """A list in which the field occurs: over a range that holds the newest record that had it."""
    view = empty_lists.there(frame.view, field.last_seen, frame).select(topics=(field.topic,), where=where)
    return grouped(view.carried("topics", "where"))
