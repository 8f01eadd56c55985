"""The filters of a list: menus of the names that occur, bound to the view."""

from __future__ import annotations

from typing import Any

import streamlit as st

from logstore.cursor import Kind
from logstore.records import STATUSES
from logstore.workbench import cached, empty
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.tables import STATUS


def filters(frame: Frame, kind: Kind) -> None:
    """Tenant, topic, event id; and for attempts destination and status."""
    selection = frame.view.selection
    columns = st.columns([1, 1, 1, 1, 0.9] if kind == "attempt" else [1, 1, 1])
    tenants = tuple(selection.tenant_ids)
    with columns[0]:
        _any_of(frame, "tenant_ids", "Tenant", cached.names("tenants"))
    with columns[1]:
        _any_of(frame, "topics", "Topic", cached.names("topics"))
    with columns[2]:
        _any_of(frame, "event_ids", "Event id", [])
    if kind == "attempt":
        with columns[3]:
            known = cached.names("destinations", tenants=tenants) if tenants else cached.names("all_destinations")
            _any_of(frame, "destination_ids", "Destination", known)
        with columns[4]:
            _status(frame)
    if selection.where:
        st.caption("The link carries a filter expression:")
        st.code(selection.where, language=None)
    given = any((selection.tenant_ids, selection.topics, selection.event_ids, selection.destination_ids))
    if given or selection.status or selection.where:
        st.button("Clear the filters", icon=":material/filter_alt_off:", on_click=frames.change, args=(empty.clear,))


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
