"""The bar above a list: the ways to other pages, a jump in time, page size, columns, facets, live mode, export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from logstore import cursor
from logstore.cursor import Kind, Position
from logstore.records import Page
from logstore.workbench import cached, export_route, record_table, texts, times, url
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.lists import facets, live_mode, payload_fields
from logstore.workbench.view import LIMITS


@dataclass(frozen=True, slots=True)
class Shown:
    """The page that is shown, and whether anything lies on either side of it."""

    page: Page[Any]
    newer: bool
    older: bool


def toolbar(frame: Frame, kind: Kind, shown: Shown, without: Sequence[str]) -> None:
    page, view = shown.page, frame.view
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _turn("Newest", ":material/first_page:", view.next is None and view.prev is None and not shown.newer, _newest)
        _turn("Newer", ":material/chevron_left:", not shown.newer, _to, prev=page.prev, shortcut="K")
        _turn("Older", ":material/chevron_right:", not shown.older, _to, next=page.next, shortcut="J")
        first = cursor.encode(kind, Position(_first_moment(frame, kind), ""))
        _turn("Oldest", ":material/last_page:", not shown.older, _to, prev=first)
        _jump(frame, kind)
        _size(frame)
        _columns(frame, kind, without)
        _export(frame, kind)
        with st.container(width="content", horizontal=True, vertical_alignment="center", gap="small"):
            if not without:  # where the page itself is a selection, a facet would leave it
                facets.toggle()
            live_mode.toggle(frame)
        st.space("stretch")
        st.caption(_where(frame, kind, shown), width="content")


def _turn(
    label: str, icon: str, disabled: bool, act: Callable[..., None], shortcut: str | None = None, **at: Any
) -> None:
    st.button(label, icon=icon, disabled=disabled, on_click=act, kwargs=at, shortcut=shortcut, key=f"turn {label}")


def _newest() -> None:
    frames.unpin()
    url.change(lambda view: view.at())


def _to(**at: str | None) -> None:
    url.change(lambda view: view.at(**at))


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
            url.write(frame.view.at(next=token))
            st.rerun()


def _size(frame: Frame) -> None:
    sizes = sorted({*LIMITS, frame.view.limit})
    key = url.bound("limit", frame.view.limit)
    st.selectbox(
        "Rows on a page",
        sizes,
        key=key,
        format_func=lambda size: f"{size} rows",
        on_change=lambda: url.change(lambda view: view.but(limit=st.session_state["limit"]).opened(None)),
        label_visibility="collapsed",
        width=120,
    )


def _columns(frame: Frame, kind: Kind, without: Sequence[str]) -> None:
    """The usual columns, and the fields of the payloads, by name."""
    known = record_table.known(kind)
    chosen = record_table.chosen(kind, frame.view.columns, without)
    fields = [payload_fields.as_column(field.name) for field in payload_fields.known(frame, kind)]
    with st.popover("Columns", icon=":material/view_column:"):
        st.multiselect(
            "Columns, in this order",
            list(dict.fromkeys([*known, *fields, *chosen])),
            key=url.bound("columns", chosen),
            format_func=lambda name: known[name].heading if name in known else name,
            on_change=lambda: url.change(lambda view: view.but(columns=tuple(st.session_state["columns"]))),
            help="Empty means the usual ones. Fields of the payloads stand below them; where one is missing, nothing.",
        )


def _export(frame: Frame, kind: Kind) -> None:
    with st.popover("Export", icon=":material/download:"):
        st.caption(f"Every one of these {kind}s, newest first, not only this page:")
        st.markdown("\n".join(f"- {texts.markdown(line, 300)}" for line in _meant(frame)))
        st.html(export_route.links(frame.view, kind))


def _meant(frame: Frame) -> list[str]:
    """The selection in words, a line for each part."""
    selection, time = frame.view.selection, frame.view.selection.time
    lower, upper = time.gte or time.gt, time.lt or time.lte
    if frame.view.range == "all":
        lines = ["of all times, also from the archive"]
    elif frame.view.range is not None:
        lines = [f"of the last {times.RANGE_LABELS[frame.view.range]}, from the moment of the click"]
    else:
        first = frame.show(lower) if lower else "the beginning"
        lines = [f"from {first} to {frame.show(upper) if upper else 'now'} ({frame.zone_name})"]
    named = {"tenant": selection.tenant_ids, "destination": selection.destination_ids, "topic": selection.topics}
    named |= {"event": selection.event_ids, "outcome": (selection.status,) if selection.status else ()}
    lines += [f"{name}: {' or '.join(values)}" for name, values in named.items() if values]
    return [*lines, f"filter: {selection.where}"] if selection.where else lines
