"""The box for a filter expression: its mistakes, names that were probably meant, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

import streamlit as st

from logstore import filters as language
from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.workbench import cached, texts, url
from logstore.workbench.frame import Frame
from logstore.workbench.lists import filter_builder, filter_edits, payload_fields

_HELP = """`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `contains`, `startswith`, `endswith`, `exists`;
joined by `and`, `or`, `not` and parentheses. Text stands in double quotes. Fields are columns or paths:
`data.customer.id`, `metadata.region`, `response_data.status`; a part with other signs is quoted: `data.'request-id'`."""


def expression(frame: Frame, kind: Kind) -> bool:
    """A box for a filter expression, its mistake under the right column, and what it costs; whether it can be read."""
    text = frame.view.selection.where or ""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Filter",
            key=url.bound("where", text),
            on_change=_written,
            placeholder='data.amount > 100 and not metadata.region in ["eu", "us"]',
            help=_HELP,
            max_chars=4096,
        )
        filter_builder.builder(frame, kind)
    if not text:
        return True
    try:
        language.parse(text, kind)
    except InvalidFilter as mistake:
        st.code(f"{text}\n{' ' * (mistake.column - 1)}↑ {mistake}", language=None, wrap_lines=True)
        meant(frame, kind, text)
        st.caption(_suggestions(frame, kind))
        st.error(
            "The filter has a mistake, so nothing is listed: correct it, or clear the filters.",
            icon=":material/warning:",
        )
        return False
    meant(frame, kind, text)
    with st.expander("What this filter costs", icon=":material/query_stats:"):
        found = cached.store().explain(frame.view.asked(frame.now), kind)
        st.caption(texts.markdown(f"Index: {found.index}.", 2000))
        months = f"{found.partitions_read} months in PostgreSQL and {found.segments_read} segments of the archive"
        pruned = found.partitions_pruned + found.segments_pruned
        st.caption(f"Reads {months}; {pruned} are left out by their times. About {found.estimated_rows} rows.")
        hot, archive, tree = st.tabs(["PostgreSQL", "DuckDB, for the archive", "As it was understood"])
        hot.code(found.postgres, language="sql", wrap_lines=True)
        archive.code(found.duckdb, language="sql", wrap_lines=True)
        tree.code(found.tree, language=None, wrap_lines=True)
    return True


def _suggestions(frame: Frame, kind: Kind) -> str:
    """Some fields that the chosen topics have, to spare a guess."""
    some = ", ".join(field.name for field in payload_fields.known(frame, kind)[:12])
    return texts.markdown(
        f"Fields that occur: {some}." if some else "Columns: tenant_id, topic, code, status, time.", 1000
    )


def _written() -> None:
    value = str(st.session_state["where"]).strip()
    url.change(lambda view: view.select(where=value or None))


def meant(frame: Frame, kind: Kind, text: str) -> None:
    """Where an expression names a field that no payload is known to have, but one of nearly that name: offer it."""
    names = [field.name for field in payload_fields.known(frame, kind)]
    for wrong, near in misspelt(text, kind, names):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            asked, right = (texts.markdown(name, 80) for name in (wrong, near))
            st.caption(
                f":material/spellcheck: No payload is known to have {asked}. Did you mean {right}?", width="content"
            )
            act = filter_edits.renamed(text, wrong, near)
            st.button(f"Use {right}", key=f"use {wrong}", on_click=_write, args=(act,))


def _write(text: str) -> None:
    url.change(lambda view: view.select(where=text))


def misspelt(text: str, kind: Kind, names: Sequence[str]) -> list[tuple[str, str]]:
    """The fields of an expression that are not among the known names, each with the one that was probably meant."""
    try:
        asked = [str(field) for field in filter_edits.fields_of(language.parse(text, kind)) if field.path]
    except InvalidFilter as mistake:
        found = re.compile(r"[^\W\d]\w*").match(text, mistake.column - 1)
        return _nearest(found.group(), names) if found and "unknown field" in str(mistake) else []
    unseen = [name for name in asked if name not in names]
    pairs = [(name, near) for name in unseen for near in get_close_matches(name, names, n=1, cutoff=0.75)]
    return [(wrong, right) for wrong, right in pairs if filter_edits.renamed(text, wrong, right) != text]


def _nearest(name: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Of a name that is no column: the payload's field that ends in it, or nearly so."""
    ends = {full.rsplit(".", 1)[-1]: full for full in reversed(names)}
    return [(name, ends[near]) for near in get_close_matches(name, list(ends), n=1, cutoff=0.75)]
