"""The rows of one page: the table, the ids that lead on, and the attempt that is open."""

from __future__ import annotations

from typing import Any

import streamlit as st

from logstore.cursor import Kind
from logstore.records import Attempt, Page
from logstore.workbench import cached, details, measures, tables
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame

_ROW_PIXELS, _ROWS_SEEN = 35, 16


def rows(frame: Frame, kind: Kind, page: Page[Any]) -> None:
    """The table of a page; a click on an id goes there, a chosen row opens."""
    names = tables.chosen(kind, frame.view.columns)
    # A new page is a new table: nothing stays chosen from the old one, which stays on screen until this one is there.
    key = f"rows {kind} {page.data[0].id} {page.data[-1].id} {len(page)} {','.join(names)}"
    outcomes = outcomes_of(page) if "outcome" in names else None
    open_row = [i for i, record in enumerate(page.data) if record.id == frame.view.open]
    st.dataframe(
        tables.table(frame, kind, page.data, names, outcomes),
        key=key,
        hide_index=True,
        height=_ROW_PIXELS * (min(len(page), _ROWS_SEEN) + 1) + 3,
        column_config=tables.config(frame, kind, names, key),
        on_select=lambda: _chosen(key, kind, page),
        selection_mode="single-row",
        selection_default={"selection": {"rows": open_row, "columns": [], "cells": []}},
    )
    click = tables.clicked(kind, names, key)
    if click is not None and click[1] < len(page):
        _follow(frame, click[0], page.data[click[1]])
    if kind == "attempt" and frame.view.open is not None:
        attempt = page.data[open_row[0]] if open_row else cached.store().retrieve_attempt(frame.view.open)
        details.attempt(frame, attempt)


def _chosen(key: str, kind: Kind, page: Page[Any]) -> None:
    state: Any = st.session_state.get(key) or {}
    found = state.get("selection", {}).get("rows", [])
    record = page.data[found[0]] if found and found[0] < len(page) else None
    if kind == "event":
        st.session_state["asked"] = record.id if record else ""
    else:
        frames.change(lambda view: view.but(open=record.id if record else None))


def _follow(frame: Frame, column: str, record: Any) -> None:
    carried = frame.view.carried()
    if column == "destination":
        pairs = [("tenant_ids", record.tenant_id), ("destination_ids", record.destination_id)]
        frames.go("Destinations", [*carried, *pairs])
    event_id = record.event_id if isinstance(record, Attempt) else record.id
    frames.go("Event", [*carried, ("id", event_id), ("tenant", record.tenant_id)])


def outcomes_of(page: Page[Any]) -> dict[tuple[str, str], str]:
    """What became of the events of a page, by (tenant, id)."""
    found = measures.look_up(cached.store(), "outcomes_of_events", events=[event.id for event in page])
    return {(tenant, event): _outcome(tried, reached) for event, tenant, tried, reached, _ in found}


def _outcome(tried: int, reached: int) -> str:
    mark = "✓ delivered to" if tried == reached else "✗ reached"
    return f"{mark} {reached} of {tried}"
