"""The filters of a list: menus of the names that occur, bound to the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from logstore.cursor import Kind
from logstore.records import STATUSES
from logstore.workbench import cached, signs, url
from logstore.workbench.frame import Frame
from logstore.workbench.record_table import STATUS

FIELDS: dict[Kind, tuple[str, ...]] = {
    "event": ("tenant_ids", "topics", "event_ids"),
    "attempt": ("tenant_ids", "destination_ids", "topics", "event_ids", "status"),
}
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
            st.button("Clear the filters", icon=":material/filter_alt_off:", on_click=url.change, args=(act,))


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
        key=url.bound(field, values),
        on_change=_chosen,
        args=(field,),
        accept_new_options=True,
        placeholder="any" if known else "paste one",
        width=145 if field == "event_ids" else 180,
    )


def _chosen(field: str) -> None:
    values = tuple(value.strip() for value in st.session_state[field])
    url.change(lambda view: view.select(**{field: tuple(value for value in values if value)}))


def _status(frame: Frame) -> None:
    st.segmented_control(
        "Outcome",
        list(STATUSES),
        key=url.bound("status", frame.view.selection.status),
        format_func=lambda status: signs.coloured(STATUS[status]),
        on_change=_status_chosen,
    )


def _status_chosen() -> None:
    value: Any = st.session_state["status"]
    url.change(lambda view: view.select(status=value))
