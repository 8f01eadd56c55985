"""The overview: how much happened, how much of it failed, where, why, and what to look at next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas
import streamlit as st

from logstore.records import Selection
from logstore.workbench import breakdowns, cached, health_badges, histogram, rankings, rows, times
from logstore.workbench import frame as frames
from logstore.workbench.destinations_page import window_of
from logstore.workbench.frame import Frame
from logstore.workbench.times import Window
from logstore.workbench.view import grouped

_SHOWN = 8


def page(frame: Frame) -> None:
    """Counts, the histogram, what fails and why, topics, latencies, and the newest failures."""
    with frames.sentences():
        health_badges.badges()
    if cached.extent("attempt") is None and cached.extent("event") is None:
        st.info("The log is empty. Load the sample data, or your own files, then reload this page:", icon="📭")
        st.code("python -m logstore demo\npython -m logstore load FOLDER", language="bash")
        return
    window = window_of(frame)
    with frames.sentences():
        _numbers(frame, window)
    with frames.sentences():
        histogram.chart(frame, "attempt", frame.view.asked(frame.now))
    with frames.sentences():
        _failing(frame, window)
    with frames.sentences():
        breakdowns.failures_of(frame, window)
    with st.container(horizontal=True, gap="medium"):  # side by side where there is room
        with st.container(width=640), frames.sentences():
            breakdowns.topics(frame, window)
        with st.container(width=440), frames.sentences():
            breakdowns.latencies(window)
    with frames.sentences():
        _newest(frame)


def _numbers(frame: Frame, window: Window) -> None:
    counted = cached.totals(Selection(), window)
    ranked = cached.ranking(Selection(), window, by="tenant_id,destination_id")
    tried, failed = counted["attempts"], counted["failed"]
    succeeded = f"{1 - failed / tried:.1%}" if tried else "none tried"
    to = f"to {len(ranked):,} destinations of {ranked['tenant_id'].nunique():,} tenants"
    with st.container(horizontal=True, gap="small"):
        _number("Events published", f"{counted['events']:,}", None)
        _number("Attempts", f"{tried:,}", to)
        _number("Attempts that succeeded", succeeded, f"{tried - failed:,} of {tried:,} attempts; {failed:,} failed")
        with st.container(width=430):
            histogram.event_fates(frame, Selection(), window, _fates, meanwhile=lambda: _undelivered(("…", "…")))


def _fates(found: pandas.DataFrame) -> None:
    numbers = found.groupby("outcome")["count"].sum()
    _undelivered([f"{int(numbers[fate]):,}" for fate in ("not delivered", "never attempted")])
    histogram.unread(found.attrs["warnings"])


def _undelivered(numbers: Sequence[str]) -> None:
    missed, never = numbers
    with st.container(horizontal=True, gap="small"):
        reached = "of this range, with a destination that no attempt has reached so far"
        _number("Events not delivered", missed, reached)
        _number("Events never attempted", never, "of this range, that no destination took")


def _number(label: str, number: str, help_: str | None) -> None:
    st.metric(label, number, border=True, help=help_, width=207)


def _failing(frame: Frame, window: Window) -> None:
    st.subheader("Failing destinations", anchor=False)
    ranked = cached.ranking(Selection(), window, by="tenant_id,destination_id")
    ranked = ranked[ranked["failed"] > 0].head(_SHOWN).reset_index(drop=True)
    if ranked.empty:
        st.success("No attempt failed in this range.", icon="✅")
        return
    rankings.ranking(frame, ranked, key="failing", follow=lambda row: _to_destination(frame, row))


def _to_destination(frame: Frame, of: Any) -> None:
    where = Selection(tenant_ids=(of.tenant_id,), destination_ids=(of.destination_id,))
    pairs = [*frame.view.carried(), *where.to_query()]
    st.switch_page(frames.PAGES["Destinations"][0], query_params=grouped(pairs))


def _newest(frame: Frame) -> None:
    failed = frame.view.asked(frame.now).but(status="failed")
    found = cached.store().list_attempt(failed, limit=_SHOWN)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        st.subheader("Newest failed attempts", anchor=False, width="content")
        params = grouped([*frame.view.carried(), ("status", "failed")])
        st.page_link(frames.PAGES["Attempts"][0], label="All failed attempts", icon="🚚", query_params=params)
    if found.data:
        rows.rows(frame, "attempt", found, narrow=lambda attempt, _: _to_destination(frame, attempt))
        return
    newest = cached.store().list_attempt(Selection(status="failed"), limit=1).data
    old = f"; the newest failure is {times.span(frame.now - newest[0].time)} old" if newest else ""
    st.caption(f"None in this range{old}.")
