"""The filters of a list: menus of the names that occur, bound to the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from logstore import filters as language
from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.records import STATUSES
from logstore.workbench import cached, payload_fields, texts
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.tables import STATUS

FIELDS: dict[Kind, tuple[str, ...]] = {
    "event": ("tenant_ids", "topics", "event_ids"),
    "attempt": ("tenant_ids", "destination_ids", "topics", "event_ids", "status"),
}
_HELP = """`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `contains`, `startswith`, `endswith`, `exists`;
joined by `and`, `or`, `not` and parentheses. Text stands in double quotes. Fields are columns or paths:
`data.customer.id`, `metadata.region`, `response_data.status`; a part with other signs is quoted: `data.'request-id'`."""
_LABELS = {"tenant_ids": "Tenant", "destination_ids": "Destination", "topics": "Topic", "event_ids": "Event id"}


def filters(frame: Frame, names: Sequence[str]) -> None:
    """A menu for each of these fields of the selection, and the way to clear them."""
    selection = frame.view.selection
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for field in names:
            if field == "status":
                _status(frame)
            else:
                _any_of(frame, field, _LABELS[field], _known(frame, field))
        if selection.where or any(getattr(selection, field) for field in names):
            cleared = {field: None if field == "status" else () for field in names}
            act = lambda view: view.select(**cleared, where=None)  # noqa: E731 - a callback's argument
            st.button("Clear the filters", icon=":material/filter_alt_off:", on_click=frames.change, args=(act,))


def expression(frame: Frame, kind: Kind) -> None:
    """A box for a filter expression, its mistake under the right column, and what it costs."""
    text = frame.view.selection.where or ""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Filter",
            key=frames.bound("where", text),
            on_change=_written,
            placeholder='data.amount > 100 and not metadata.region in ["eu", "us"]',
            help=_HELP,
            max_chars=4096,
        )
        payload_fields.builder(frame, kind)
    if not text:
        return
    try:
        language.parse(text, kind)
    except InvalidFilter as mistake:
        st.code(f"{text}\n{' ' * (mistake.column - 1)}↑ {mistake}", language=None, wrap_lines=True)
        payload_fields.meant(frame, kind, text)
        st.caption(_suggestions(frame, kind))
        raise
    payload_fields.meant(frame, kind, text)
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


def _suggestions(frame: Frame, kind: Kind) -> str:
    """Some fields that the chosen topics have, to spare a guess."""
    some = ", ".join(field.name for field in payload_fields.known(frame, kind)[:12])
    return texts.markdown(
        f"Fields that occur: {some}." if some else "Columns: tenant_id, topic, code, status, time.", 1000
    )


def _written() -> None:
    value = str(st.session_state["where"]).strip()
    frames.change(lambda view: view.select(where=value or None))


def _known(frame: Frame, field: str) -> list[str]:
    tenants = frame.view.selection.tenant_ids
    if field == "destination_ids" and tenants:
        return cached.names("destinations", tenants=tenants)
    what = {"tenant_ids": "tenants", "topics": "topics", "destination_ids": "all_destinations"}.get(field)
    return cached.names(what) if what else []


def _any_of(frame: Frame, field: str, label: str, known: list[str]) -> None:
    values = list(getattr(frame.view.selection, field))
    st.multiselect(
        label,
        list(dict.fromkeys([*known, *values])),
        key=frames.bound(field, values),
        on_change=_chosen,
        args=(field,),
        accept_new_options=True,
        placeholder="any" if known else "paste one",
        width=195,
    )


def _chosen(field: str) -> None:
    values = tuple(value.strip() for value in st.session_state[field])
    frames.change(lambda view: view.select(**{field: tuple(value for value in values if value)}))


def _status(frame: Frame) -> None:
    st.segmented_control(
        "Outcome",
        list(STATUSES),
        key=frames.bound("status", frame.view.selection.status),
        format_func=lambda status: STATUS[status],
        on_change=_status_chosen,
    )


def _status_chosen() -> None:
    value: Any = st.session_state["status"]
    frames.change(lambda view: view.select(status=value))
