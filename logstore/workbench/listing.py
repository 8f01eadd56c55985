"""A list of events or attempts: filters, histogram, one page of rows, and the ways to the other pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from logstore import cursor
from logstore.cursor import Kind, Position
from logstore.records import Page, Selection
from logstore.store import LogStore
from logstore.workbench import cached, empty, rows, tables, texts, times
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.histogram import chart
from logstore.workbench.view import LIMITS

_CURSORLESS = ("next", "prev", "open", "columns", "zone", "limit")


@dataclass(frozen=True, slots=True)
class Shown:
    """The page that is shown, and whether anything lies on either side of it."""

    page: Page[Any]
    newer: bool
    older: bool


def listing(frame: Frame, kind: Kind, *, without: Sequence[str] = ()) -> None:
    """The whole list of the view: rows first, then the histogram that stands above them."""
    selection = frame.view.asked(frame.now)
    above = st.container()
    with frames.sentences():
        shown = read(frame, kind, selection)
        _pager(frame, kind, shown, without)
        if shown.page.data:
            rows.rows(frame, kind, shown.page, without=without)
        else:
            empty.nothing(frame, kind, selection)
    with above, frames.sentences():
        chart(frame, kind, selection)


def read(frame: Frame, kind: Kind, selection: Selection) -> Shown:
    """One page. The newest one is pinned for the session, so that new arrivals do not push its rows down."""
    view, store = frame.view, cached.store()
    key = (kind, tuple(pair for pair in view.to_query() if pair[0] not in _CURSORLESS))
    next_ = view.next
    if view.next is None and view.prev is None:
        pinned = st.session_state.get("pin")
        next_ = pinned[1] if pinned and pinned[0] == key else None
    lister = lister_of(store, kind)
    page = lister(selection, limit=view.limit, next=next_, prev=view.prev)
    if next_ is None and view.prev is None and page.data:
        top = page.data[0].time + timedelta(microseconds=1)
        st.session_state["pin"] = (key, cursor.encode(kind, Position(top, "")))
    for warning in page.warnings:
        st.warning(texts.markdown(warning, 600))
    return Shown(page, _any(lister, selection, prev=page.prev), _any(lister, selection, next=page.next))


def lister_of(store: LogStore, kind: Kind) -> Callable[..., Page[Any]]:
    return store.list_event if kind == "event" else store.list_attempt


def _any(lister: Callable[..., Page[Any]], selection: Selection, **at: str | None) -> bool:
    """Whether a cursor leads to anything: a page keeps a way back even when nothing lies there."""
    return any(at.values()) and len(lister(selection, limit=1, **at)) > 0


def _pager(frame: Frame, kind: Kind, shown: Shown, without: Sequence[str]) -> None:
    page, view = shown.page, frame.view
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _turn("Newest", ":material/first_page:", view.next is None and view.prev is None and not shown.newer, _newest)
        _turn("Newer", ":material/chevron_left:", not shown.newer, _to, prev=page.prev, shortcut="K")
        _turn("Older", ":material/chevron_right:", not shown.older, _to, next=page.next, shortcut="J")
        first = cursor.encode(kind, Position(_first_moment(frame, kind), ""))
        _turn("Oldest", ":material/last_page:", not shown.older, _to, prev=first)
        _jump(frame, kind)
        _size(frame)
        _columns(frame, kind, without)
        st.space("stretch")
        st.caption(_where(frame, kind, shown), width="content")


def _turn(
    label: str, icon: str, disabled: bool, act: Callable[..., None], shortcut: str | None = None, **at: Any
) -> None:
    st.button(label, icon=icon, disabled=disabled, on_click=act, kwargs=at, shortcut=shortcut, key=f"turn {label}")


def _newest() -> None:
    st.session_state.pop("pin", None)
    frames.change(lambda view: view.at())


def _to(**at: str | None) -> None:
    frames.change(lambda view: view.at(**at))


def _first_moment(frame: Frame, kind: Kind) -> datetime:
    """A moment before all that the selection holds; from there, turning newer shows the oldest page."""
    time = frame.view.asked(frame.now).time
    extent = cached.extent(kind)
    bounds = [bound for bound in (time.gte, time.gt, extent and extent[0]) if bound]
    return max(bounds) if bounds else frame.now


def _where(frame: Frame, kind: Kind, shown: Shown) -> str:
    data, view = shown.page.data, frame.view
    if not data:
        return ""
    first, last = (times.show_short(record.time, frame.zone) for record in (data[-1], data[0]))
    words = f"{len(data)} {kind}s, {first} – {last}"
    pinned = view.next is None and view.prev is None
    return f"{words} · newer ones have arrived" if pinned and shown.newer else words


def _jump(frame: Frame, kind: Kind) -> None:
    with st.popover("Jump to", icon=":material/schedule:"), st.form("jump", border=False):
        st.caption(f"Shows what came just before this time ({frame.zone_name}); Newer shows what followed.")
        wall = frame.now.astimezone(frame.zone).replace(tzinfo=None, second=0, microsecond=0)
        chosen = st.datetime_input("Time", value=wall, step=timedelta(minutes=1), key="jump time")
        if st.form_submit_button("Jump", type="primary") and chosen is not None:
            token = cursor.encode(kind, Position(chosen.replace(tzinfo=frame.zone), ""))
            frames.write(frame.view.at(next=token))
            st.rerun()


def _size(frame: Frame) -> None:
    sizes = sorted({*LIMITS, frame.view.limit})
    key = frames.bound("limit", frame.view.limit)
    st.selectbox(
        "Rows on a page",
        sizes,
        key=key,
        format_func=lambda size: f"{size} rows",
        on_change=lambda: frames.change(lambda view: view.but(limit=st.session_state["limit"], open=None)),
        label_visibility="collapsed",
        width=120,
    )


def _columns(frame: Frame, kind: Kind, without: Sequence[str]) -> None:
    known = tables.known(kind)
    with st.popover("Columns", icon=":material/view_column:"):
        st.multiselect(
            "Columns, in this order",
            list(known),
            key=frames.bound("columns", tables.chosen(kind, frame.view.columns, without)),
            format_func=lambda name: known[name].heading,
            on_change=lambda: frames.change(lambda view: view.but(columns=tuple(st.session_state["columns"]))),
            help="Empty means the usual ones.",
        )
