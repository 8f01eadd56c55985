"""The rows of one page: the table, the ids that lead on, and the attempt that is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from logstore.cursor import Kind
from logstore.errors import TooBroad
from logstore.records import Attempt, Page
from logstore.workbench import cached, record_details, record_table, signs, texts, url
from logstore.workbench.counts import page_outcomes
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import go_to_event

_ROWS_SEEN, _HEIGHT = 15, 560
_UNKNOWN = f"{signs.UNKNOWN} unknown"


def rows(
    frame: Frame,
    kind: Kind,
    page: Page[Any],
    *,
    without: Sequence[str] = (),
    narrow: Callable[[Any, str], None] | None = None,
) -> None:
    """The table of a page; a click on an id goes there, a chosen row opens.

    `without` are columns that say nothing here; `narrow` acts on a clicked tenant or destination, if not by a filter.
    """
    names = record_table.chosen(kind, frame.view.columns, without)
    # A new page is a new table: nothing stays chosen from the old one, which stays on screen until this one is there.
    # And so is one whose row was closed: it would keep the row chosen, and a click on it would open nothing.
    key = f"rows {kind} {page.data[0].id} {page.data[-1].id} {len(page)} {','.join(names)} {record_details.closed()}"
    outcomes = outcomes_of(page) if "outcome" in names else None
    open_row = [i for i, record in enumerate(page.data) if _is_open(frame, record)][:1]
    st.dataframe(
        signs.tinted(record_table.table(frame, kind, page, names, outcomes), ("status", "outcome")),
        key=key,
        hide_index=True,
        height="content" if len(page) <= _ROWS_SEEN else _HEIGHT,
        column_config=record_table.config(frame, kind, names, key),
        on_select=lambda: _chosen(key, kind, page),
        selection_mode="single-row",
        selection_default={"selection": {"rows": open_row, "columns": [], "cells": []}},
    )
    follow = st.session_state.pop("follow", None)
    if follow is not None:
        go_to_event(follow.id, follow.tenant_id)
    click = record_table.clicked(kind, names, key)
    if click is not None and click[1] < len(page):
        _follow(frame, click[0], page.data[click[1]], narrow)
    opened(frame, kind, page)


def opened(frame: Frame, kind: Kind, page: Page[Any]) -> None:
    """The attempt that the URL names, wherever it is."""
    open_ = frame.view.open
    if kind == "attempt" and open_ is not None:
        here = next((attempt for attempt in page.data if _is_open(frame, attempt)), None)
        record_details.attempt(frame, here or cached.store().retrieve_attempt(open_, tenant_id=_owner(frame)))


def _is_open(frame: Frame, record: Any) -> bool:
    return record.id == frame.view.open and _owner(frame) in (None, record.tenant_id)


def _owner(frame: Frame) -> str | None:
    """Whose the open row is, as far as the URL says: an id may be in use at several tenants."""
    tenants = frame.view.selection.tenant_ids
    return tenants[0] if len(tenants) == 1 else frame.view.tenant


def _chosen(key: str, kind: Kind, page: Page[Any]) -> None:
    state: Any = st.session_state.get(key) or {}
    found = state.get("selection", {}).get("rows", [])
    record = page.data[found[0]] if found and found[0] < len(page) else None
    if kind == "event":
        st.session_state["follow"] = record
    else:
        url.change(lambda view: view.opened(record.id, record.tenant_id) if record else view.opened(None))


def _follow(frame: Frame, column: str, record: Any, narrow: Callable[[Any, str], None] | None) -> None:
    if column in ("id", "event"):
        if isinstance(record, Attempt):
            go_to_event(record.event_id, record.tenant_id, record.id if column == "id" else None)
        go_to_event(record.id, record.tenant_id)
    if narrow is not None:
        narrow(record, column)
    only: dict[str, Any] = {"tenant_ids": (record.tenant_id,)}
    if column == "destination":
        only["destination_ids"] = (record.destination_id,)
    url.write(frame.view.select(**only))
    st.rerun()


def outcomes_of(page: Page[Any]) -> dict[tuple[str, str], str]:
    """What became of the events of a page, by (tenant, id); what could not be read is unknown, and not nothing."""
    try:
        found = page_outcomes.outcomes(cached.store(), page)
    except TooBroad as error:  # the rows themselves are there
        st.warning(f"What became of these events: {texts.markdown(error, 300)}")
        return {(event.tenant_id, event.id): _UNKNOWN for event in page}
    for warning in found.warnings:
        st.warning(texts.markdown(warning, 600))
    said = {key: _outcome(len(reached), sum(reached)) for key, reached in found.items()}
    return said | dict.fromkeys(found.unknown, _UNKNOWN)


def _outcome(tried: int, reached: int) -> str:
    return (
        f"{signs.GOOD} delivered to {reached} of {tried}"
        if tried == reached
        else f"{signs.BAD} reached {reached} of {tried}"
    )
