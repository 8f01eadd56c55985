"""A list of events or attempts: filters, histogram, one page of rows, and the ways to the other pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from logstore import cursor, deadline
from logstore.cursor import Kind, Position
from logstore.errors import TooBroad
from logstore.records import Page, Selection
from logstore.workbench import cached, empty_lists, texts
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.histogram import chart
from logstore.workbench.lists import facets, live_mode, rows, toolbar
from logstore.workbench.lists.toolbar import Shown

SECONDS = 10.0  # that a page of rows may take; an expression that no index serves may have to read everything
_CURSORLESS = ("next", "prev", "open", "tenant", "columns", "zone", "limit")


def listing(frame: Frame, kind: Kind, *, without: Sequence[str] = ()) -> None:
    """The whole list of the view; where counting has to read every payload, the rows come first."""
    selection = frame.view.asked(frame.now)
    above = st.container()
    if selection.where is None:
        with above:
            _counts(frame, kind, selection, without)
    with frames.sentences():
        shown = read(frame, kind, selection)
        toolbar.toolbar(frame, kind, shown, without)
        live_mode.watch(frame, kind, selection, _pin(frame, kind) if shown.page.data else None)
        if shown.page.data:
            rows.rows(frame, kind, shown.page, without=without)
        else:
            empty_lists.nothing(frame, kind, selection)
            rows.opened(frame, kind, shown.page)
    if selection.where is not None:
        with above:
            _counts(frame, kind, selection, without)


def _counts(frame: Frame, kind: Kind, selection: Selection, without: Sequence[str]) -> None:
    with frames.sentences():
        chart(frame, kind, selection)
        if not without:
            facets.panel(frame, kind, selection)


def read(frame: Frame, kind: Kind, selection: Selection) -> Shown:
    """One page. The newest one is pinned for the session, so that new arrivals do not push its rows down."""
    view, lister = frame.view, cached.store().lister(kind)
    pin = _pin(frame, kind)
    next_ = view.next if pin is None else pin
    with deadline.within(SECONDS):
        page = lister(selection, limit=view.limit, next=next_, prev=view.prev)
        if pin is not None and not page.data:  # the range has moved on, past all that was there when it was pinned
            frames.unpin()
            next_ = None
            page = lister(selection, limit=view.limit)
        shown = _shown(lister, selection, page, backward=view.prev is not None)
    if next_ is None and view.prev is None and page.data:
        top = page.data[0].time + timedelta(microseconds=1)
        st.session_state["pin"] = (_pin_key(frame, kind), cursor.encode(kind, Position(top, "")))
    for warning in page.warnings:
        st.warning(texts.markdown(warning, 600))
    return shown


def _shown(lister: Callable[..., Page[Any]], selection: Selection, page: Page[Any], *, backward: bool) -> Shown:
    """A page says whether more lies ahead of it; behind it, it keeps a way back even when nothing lies there."""
    if backward:
        return Shown(page, page.prev is not None, _any(lister, selection, next=page.next))
    return Shown(page, _any(lister, selection, prev=page.prev), page.next is not None)


def _pin_key(frame: Frame, kind: Kind) -> tuple[Any, ...]:
    return (kind, tuple(pair for pair in frame.view.to_query() if pair[0] not in _CURSORLESS))


def _pin(frame: Frame, kind: Kind) -> str | None:
    """The place above the newest row, as the session knows it; None where another page than the newest is shown."""
    key, place = st.session_state.get("pin", (None, None))
    newest = frame.view.next is None and frame.view.prev is None
    return place if newest and key == _pin_key(frame, kind) else None


def _any(lister: Callable[..., Page[Any]], selection: Selection, **at: str | None) -> bool:
    """Whether a cursor leads to anything."""
    try:
        return any(at.values()) and len(lister(selection, limit=1, **at)) > 0
    except TooBroad:  # the rows are there; whoever turns the page is told
        return True
