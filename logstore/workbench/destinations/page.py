"""Destinations: all tenants, then one tenant's destinations, then one destination and its attempts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pandas
import streamlit as st

from logstore.records import Selection
from logstore.workbench import cached, charts, empty_lists, histogram, ranking_table, record_details, texts, times, url
from logstore.workbench.background import later, together
from logstore.workbench.counts import lookups
from logstore.workbench.destinations import health
from logstore.workbench.destinations.code_chart import code_bars
from logstore.workbench.frame import Frame
from logstore.workbench.lists.filter_bar import filters
from logstore.workbench.lists.listing import listing
from logstore.workbench.navigation import PAGES
from logstore.workbench.ranking_table import Follow
from logstore.workbench.times import Window
from logstore.workbench.view import View


@together()
def page(frame: Frame) -> None:
    """As deep as the URL says."""
    selection = frame.view.selection
    if len(selection.tenant_ids) > 1 or len(selection.destination_ids) > 1:
        st.info("This page shows one tenant and one destination at a time; the list of attempts takes several.")
        params = url.grouped_query(frame.view)
        st.page_link(
            PAGES["Attempts"][0],
            label="Show them as attempts",
            icon=":material/local_shipping:",
            query_params=params,
        )
        return
    if selection.destination_ids and not selection.tenant_ids:
        _owner(frame, selection.destination_ids[0])
        return
    _trail(frame)
    window = frame.window
    if selection.destination_ids:
        _destination(frame, window)
    elif selection.tenant_ids:
        _tenant(frame, window)
    else:
        _tenants(frame, window)


def _owner(frame: Frame, destination_id: str) -> None:
    owners = lookups.look_up(cached.store(), "tenants_of_destination", destination=destination_id)
    if not owners:
        st.warning("No attempt ever went to this destination:", icon=":material/hub:")
        st.code(destination_id[:500], language=None)
        st.button("Show all tenants", on_click=url.change, args=(_up_to_all,), type="primary")
        return
    st.info("More than one tenant has a destination of this id. Whose?" if len(owners) > 1 else "Whose destination?")
    for (tenant_id,) in owners:
        st.button(texts.plain(tenant_id), on_click=url.change, args=(_to_tenant_keeping(tenant_id),))


def _to_tenant_keeping(tenant_id: str) -> Any:
    return lambda view: view.select(tenant_ids=(tenant_id,))


def _up_to_all(view: View) -> View:
    return view.select(tenant_ids=(), destination_ids=(), topics=(), status=None, event_ids=()).at()


def _up_to_tenant(view: View) -> View:
    return view.select(destination_ids=(), topics=(), status=None, event_ids=()).at()


def _trail(frame: Frame) -> None:
    """Where one is, and the ways up."""
    selection = frame.view.selection
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        tenant = next(iter(selection.tenant_ids), None)
        destination = next(iter(selection.destination_ids), None)
        st.button("All tenants", on_click=url.change, args=(_up_to_all,), disabled=tenant is None, key="up all")
        if tenant is not None:
            st.markdown("›", width="content")
            label, here = texts.plain(tenant), destination is None
            st.button(label, on_click=url.change, args=(_up_to_tenant,), disabled=here, key="up tenant")
        if destination is not None:
            st.markdown("›", width="content")
            st.button(texts.plain(destination), disabled=True, key="here")


def _tenants(frame: Frame, window: Window) -> None:
    st.subheader("Tenants, most failed attempts first", anchor=False)
    _everybody(window, "tenant_id", partial(_ranking, frame, Selection(), "tenants", _into_tenant))
    st.subheader("Destinations of all tenants, most failed attempts first", anchor=False)
    draw = partial(_ranking, frame, Selection(), "destinations", _into_destination)
    _everybody(window, "tenant_id,destination_id", draw)


def _everybody(window: Window, by: str, draw: Callable[[health.Ranked], None]) -> None:
    """One of the two rankings that are counted together."""
    store = cached.store()
    compute = lambda: health.everybody(store, window)  # noqa: E731 - an argument
    later(("everybody", window), compute, lambda found: draw(found[by]), words="Ranking…")


def _tenant(frame: Frame, window: Window) -> None:
    store, selection = cached.store(), Selection(tenant_ids=frame.view.selection.tenant_ids)
    st.subheader("Destinations, most failed attempts first", anchor=False)
    later(
        ("ranking", tuple(selection.to_query()), window),
        lambda: health.ranked(store, selection, window),
        partial(_ranking, frame, selection, "of tenant", _into_destination),
        words="Ranking…",
    )


def _ranking(frame: Frame, selection: Selection, key: str, follow: Follow, found: health.Ranked) -> None:
    if key != "destinations":  # the table above has said so
        histogram.unread(found.warnings)
    if found.rows.empty:
        _quiet(frame, selection, key)
        return
    rows = found.rows.head(health.TRENDS_MOST) if selection == Selection() else found.rows
    to_tenant = None if selection.tenant_ids else _into_tenant  # which is the page that one is on
    ranking_table.ranking(
        frame, rows, key=key, follow=follow, to_tenant=to_tenant, trends=found.trends, width=found.width
    )
    if len(rows) < len(found.rows):
        st.caption(f"The first {len(rows)} of {len(found.rows):,}; choose a tenant to see all of its destinations.")


def _into_tenant(row: pandas.Series[Any]) -> None:
    url.change(lambda view: view.select(tenant_ids=(row["tenant_id"],)).at())


def _into_destination(row: pandas.Series[Any]) -> None:
    chosen = {"tenant_ids": (row["tenant_id"],), "destination_ids": (row["destination_id"],)}
    url.change(lambda view: view.select(**chosen).at())


def _quiet(frame: Frame, selection: Selection, key: str) -> None:
    """Nothing to rank: say when the newest attempt was, and lead there; once on a page."""
    if key == "destinations":
        st.caption("None in this range.")
        return
    empty_lists.nothing(frame, "attempt", selection.but(time=frame.view.asked(frame.now).time))


def _destination(frame: Frame, window: Window) -> None:
    """One destination: how it does in the range, when it last answered, and its attempts page by page."""
    (tenant_id,), (destination_id,) = frame.view.selection.tenant_ids, frame.view.selection.destination_ids
    where, store = Selection(tenant_ids=(tenant_id,), destination_ids=(destination_id,)), cached.store()
    later(
        ("health", tenant_id, destination_id, window),
        lambda: health.health(store, where, window),
        lambda found: _health(frame, found),
        words="Measuring how it does…",
    )
    later(
        ("codes", tenant_id, destination_id, window),
        lambda: health.codes(store, where, window),
        lambda found: _codes(frame, found),
        words="Counting its codes…",
    )
    filters(frame, ("topics", "event_ids", "status"))
    listing(frame, "attempt", without=("tenant", "destination"))


def _health(frame: Frame, found: health.Health) -> None:
    histogram.unread(found.warnings)
    row = found.row
    known = {"attempts in the range": "none"}
    if row is not None:
        known = {
            "attempts in the range": f"{row['attempts']:,}",
            "failed attempts": f"{row['failed']:,}",
            "error rate": f"{row['rate']:.1%}",
            "codes of failures": row["codes"] or "none",
        }
    if found.successes:
        known[f"time to success of {found.successes:,} attempts"] = _percentiles(found)
    known["last success"] = _when(frame, found.last_success, found.warnings)
    known["last failure"] = _when(frame, found.last_failure, found.warnings)
    record_details.facts(known)


def _percentiles(found: health.Health) -> str:
    named = zip(("half", "95%", "99%"), found.percentiles, strict=True)
    said = [f"{name} within {times.span(timedelta(seconds=seconds))}" for name, seconds in named if seconds is not None]
    return " · ".join(said) or "too many to measure: narrow the range"


def _when(frame: Frame, time: datetime | None, unread: tuple[str, ...]) -> str:
    if time is None:
        return "unknown" if unread else "never"
    return f"{times.ago(time, frame.now)} ({times.show_short(time, frame.zone)})"


def _codes(frame: Frame, found: pandas.DataFrame) -> None:
    histogram.unread(found.attrs["warnings"])
    if found.empty or not found["count"].sum():
        st.caption("No failed attempts in this range.")
        return
    st.plotly_chart(code_bars(found, zone=frame.zone), key="codes", config=charts.CONFIG)
    width = ranking_table.in_words(found.attrs["width"])
    st.caption(f"Failed attempts by code, {width} a bar, cut at UTC; times in {frame.zone_name}.")
