"""Facets: the commonest values of a few fields inside the selection, with counts; a click lets one in or keeps it out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas
import streamlit as st

from logstore.cursor import Kind
from logstore.errors import InvalidFilter
from logstore.filters import parse
from logstore.records import Selection, TimeFilter
from logstore.store import LogStore
from logstore.workbench import cached, texts, times, url
from logstore.workbench.background import later
from logstore.workbench.frame import Frame
from logstore.workbench.lists import filter_edits
from logstore.workbench.view import View

TOP = 8
FACETS: dict[Kind, dict[str, str]] = {
    "event": {"tenant_id": "Tenant", "topic": "Topic"},
    "attempt": {
        "tenant_id": "Tenant",
        "destination_id": "Destination",
        "topic": "Topic",
        "status": "Outcome",
        "code": "Code",
    },
}
_TUPLES = {"tenant_id": "tenant_ids", "destination_id": "destination_ids", "topic": "topics"}
_NO_CODE = "no code"


@dataclass(frozen=True, slots=True)
class Facet:
    """The commonest values of one field, how many there are, and how many records in all."""

    top: tuple[tuple[str | None, int], ...]
    values: int
    records: int


def toggle() -> None:
    """The switch of the panel; its state is in the URL."""
    st.toggle(
        "Facets",
        key=url.bound("facets", url.one("facets") == "1"),
        on_change=lambda: url.put(facets="1" if st.session_state["facets"] else None),
        help="The commonest values inside this selection, counted.",
    )


def panel(frame: Frame, kind: Kind, selection: Selection) -> None:
    """The facets of a list, each counted beside the page; nothing while the switch is off."""
    extent = cached.extent(kind)
    if url.one("facets") != "1" or extent is None:
        return
    window = times.window_of(selection.time, extent=extent, now=frame.now)
    counted = selection.but(time=TimeFilter())
    store = cached.store()
    with st.container(border=True, horizontal=True, gap="small"):
        beside = {column: st.container(width=254) for column in FACETS[kind] if column != "code"}
        for column, label in FACETS[kind].items():
            # Two outcomes leave room for the codes below them.
            with beside["status" if column == "code" else column]:
                later(
                    ("facet", kind, column, *counted.to_query(), window),
                    partial(count, store, kind, column, counted, window),
                    partial(_draw, frame, kind, column, label),
                    words=f"{label}…",
                )


def count(store: LogStore, kind: Kind, column: str, selection: Selection, window: times.Window) -> Facet:
    """The values of a column in a window; roll-ups answer where they can."""
    measure = store.event_metrics if kind == "event" else store.attempt_metrics
    found = measure(window.lower, window.upper, selection=selection, dimensions=(column,))
    counts = [(row[column], int(row["count"])) for row in found]
    counts.sort(key=lambda pair: (-pair[1], pair[0] is None, pair[0] or ""))
    return Facet(tuple(counts[:TOP]), len(counts), sum(number for _, number in counts))


def _draw(frame: Frame, kind: Kind, column: str, label: str, facet: Facet) -> None:
    if not facet.top:
        st.caption(f"**{label}**: no {kind}s to count")
        return
    more = f" · {facet.values - TOP:,} more" if facet.values > TOP else ""
    st.caption(f"**{label}**{more}")
    key = f"facet {kind} {column} {hash((frame.view.selection, facet))}"
    shown = pandas.DataFrame(
        {
            "value": [_NO_CODE if value is None else value or "(empty)" for value, _ in facet.top],
            "count": [number for _, number in facet.top],
            "not": [":material/close:"] * len(facet.top),
        }
    )
    button = st.column_config.ButtonColumn
    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        height="content",
        row_height=28,
        column_config={
            "value": button(
                label.lower(),
                key=f"{key} in",
                type="tertiary",
                width=130,
                alignment="left",
                help="click: only this; once more: any",
            ),
            "count": st.column_config.ProgressColumn(
                f"{kind}s", format="localized", min_value=0, max_value=facet.records, width=90
            ),
            "not": button("not", key=f"{key} out", type="tertiary", width=35, help="click: all but this"),
        },
    )
    for name, act in (("in", included), ("out", excluded)):
        click: Any = st.session_state.get(f"{key} {name}")
        if click is not None and int(click["row"]) < len(facet.top):
            _apply(act(frame.view, kind, column, facet.top[int(click["row"])][0]), kind)


def _apply(view: View, kind: Kind) -> None:
    try:
        if view.selection.where is not None:
            parse(view.selection.where, kind)
    except InvalidFilter as mistake:
        st.toast(f"The filter takes no more: {texts.markdown(mistake, 300)}", icon=":material/warning:")
        return
    url.write(view)
    st.rerun()


def included(view: View, kind: Kind, column: str, value: str | None) -> View:
    """The view of only this value; of any, when it was only this already."""
    selection = view.selection
    if column in _TUPLES and value is not None:
        name = _TUPLES[column]
        return view.select(**{name: () if getattr(selection, name) == (value,) else (value,)})
    if column == "status":
        return view.select(status=None if selection.status == value else value)
    condition = filter_edits.equal(column, value)
    if filter_edits.has(selection.where, kind, condition):
        return view.select(where=filter_edits.without(selection.where or "", kind, condition))
    return view.select(where=filter_edits.joined(selection.where, kind, condition))


def excluded(view: View, kind: Kind, column: str, value: str | None) -> View:
    """The view of all but this value; one that was asked for is not asked for any more."""
    selection = view.selection
    chosen: tuple[str, ...] = getattr(selection, _TUPLES[column]) if column in _TUPLES else ()
    left = tuple(name for name in chosen if name != value)
    if left:
        return view.select(**{_TUPLES[column]: left})
    changes: dict[str, Any] = {_TUPLES[column]: ()} if chosen else {}
    if column == "status" and selection.status == value:
        changes["status"] = None
    return view.select(**changes, where=filter_edits.excluding(selection.where, kind, column, value))
