"""Destinations: all tenants, then one tenant's destinations, then one destination and its attempts."""

from __future__ import annotations

from typing import Any

import pandas
import streamlit as st

from logstore.records import Selection
from logstore.workbench import cached, details, measures, rankings, times
from logstore.workbench import frame as frames
from logstore.workbench.filters import filters
from logstore.workbench.frame import Frame
from logstore.workbench.listing import listing
from logstore.workbench.times import Window
from logstore.workbench.view import View


def page(frame: Frame) -> None:
    """As deep as the URL says."""
    selection = frame.view.selection
    if len(selection.tenant_ids) > 1 or len(selection.destination_ids) > 1:
        st.info("This page shows one tenant and one destination at a time; the list of attempts takes several.")
        params = frames.grouped_query(frame.view)
        st.page_link(frames.PAGES["Attempts"][0], label="Show them as attempts", icon="🚚", query_params=params)
        return
    if selection.destination_ids and not selection.tenant_ids:
        _owner(frame, selection.destination_ids[0])
        return
    _trail(frame)
    window = window_of(frame)
    if selection.destination_ids:
        _destination(frame, window)
    elif selection.tenant_ids:
        _tenant(frame, window)
    else:
        _tenants(frame, window)


def window_of(frame: Frame) -> Window:
    time = frame.view.asked(frame.now).time
    return times.window_of(time, extent=cached.extent("attempt"), now=frame.now)


def _owner(frame: Frame, destination_id: str) -> None:
    owners = measures.look_up(cached.store(), "tenants_of_destination", destination=destination_id)
    if not owners:
        st.warning("No attempt ever went to this destination:", icon="🎯")
        st.code(destination_id[:500], language=None)
        st.button("Show all tenants", on_click=frames.change, args=(_up_to_all,), type="primary")
        return
    st.info("More than one tenant has a destination of this id. Whose?" if len(owners) > 1 else "Whose destination?")
    for (tenant_id,) in owners:
        st.button(frames.plain(tenant_id), on_click=frames.change, args=(_to_tenant_keeping(tenant_id),))


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
        st.button("All tenants", on_click=frames.change, args=(_up_to_all,), disabled=tenant is None, key="up all")
        if tenant is not None:
            st.markdown("›", width="content")
            label, here = frames.plain(tenant), destination is None
            st.button(label, on_click=frames.change, args=(_up_to_tenant,), disabled=here, key="up tenant")
        if destination is not None:
            st.markdown("›", width="content")
            st.button(frames.plain(destination), disabled=True, key="here")


def _tenants(frame: Frame, window: Window) -> None:
    st.subheader("Tenants, most failed attempts first", anchor=False)
    ranked = cached.ranking(Selection(), window, by="tenant_id")
    if ranked.empty:
        _quiet(frame)
        return
    rankings.ranking(frame, ranked, key="tenants", follow=_into_tenant)
    st.subheader("Destinations of all tenants, most failed attempts first", anchor=False)
    every = cached.ranking(Selection(), window, by="tenant_id,destination_id").head(100)
    rankings.ranking(frame, every, key="destinations", follow=_into_destination)


def _tenant(frame: Frame, window: Window) -> None:
    selection = Selection(tenant_ids=frame.view.selection.tenant_ids)
    ranked = cached.ranking(selection, window, by="tenant_id,destination_id")
    if ranked.empty:
        _quiet(frame)
        return
    st.subheader("Destinations, most failed attempts first", anchor=False)
    rankings.ranking(frame, ranked, key="of tenant", follow=_into_destination)


def _into_tenant(row: pandas.Series[Any]) -> None:
    frames.change(lambda view: view.select(tenant_ids=(row["tenant_id"],)).at())
    st.rerun()


def _into_destination(row: pandas.Series[Any]) -> None:
    chosen = {"tenant_ids": (row["tenant_id"],), "destination_ids": (row["destination_id"],)}
    frames.change(lambda view: view.select(**chosen).at())
    st.rerun()


def _quiet(frame: Frame) -> None:
    extent = cached.extent("attempt")
    if extent is None:
        st.info("There are no attempts in the log yet. Load some: `python -m logstore demo`.", icon="📭")
        return
    st.info("No attempts in this range.", icon="📭")
    st.button("Show all time", on_click=frames.change, args=(lambda view: view.over("all"),), type="primary")


def _destination(frame: Frame, window: Window) -> None:
    """One destination: how it does in the range, when it last answered, and its attempts page by page."""
    (tenant_id,), (destination_id,) = frame.view.selection.tenant_ids, frame.view.selection.destination_ids
    where = Selection(tenant_ids=(tenant_id,), destination_ids=(destination_id,))
    ranked = cached.ranking(where, window, by="tenant_id,destination_id")
    reached = Selection(tenant_ids=(tenant_id,), destination_ids=(destination_id,), status="success")
    last = cached.store().list_attempt(reached, limit=1).data
    last_success = f"{times.ago(last[0].time, frame.now)} ({frame.show(last[0].time)})" if last else "never"
    if ranked.empty:
        details.facts({"attempts in the range": "none", "last success": last_success})
    else:
        row = ranked.iloc[0]
        details.facts(
            {
                "attempts in the range": f"{row['attempts']:,}",
                "failed attempts": f"{row['failed']:,}",
                "error rate": f"{row['rate']:.1%}",
                "codes of failures": row["codes"] or "none",
                "last success": last_success,
            }
        )
    filters(frame, ("topics", "event_ids", "status"))
    listing(frame, "attempt", without=("tenant", "destination"))
