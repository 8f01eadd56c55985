"""The overview: how much happened, how much of it failed, where, why, and what to look at next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas
import streamlit as st

from logstore import deadline
from logstore.records import Selection
from logstore.workbench import cached, empty_lists, histogram, ranking_table, texts, times
from logstore.workbench import frame as frames
from logstore.workbench.background import later, together
from logstore.workbench.counts import range_outcomes, rankings
from logstore.workbench.counts.measures import Many
from logstore.workbench.counts.rankings import Totals
from logstore.workbench.frame import Frame
from logstore.workbench.lists import rows
from logstore.workbench.navigation import PAGES, destinations_of
from logstore.workbench.overview import badges, failures, latencies, many_records, topics
from logstore.workbench.times import Window
from logstore.workbench.view import grouped

_SHOWN = 8
_SECONDS = 3.0  # that the newest failures may take


@together()
def page(frame: Frame) -> None:
    """Counts, the histogram, what fails and why, topics, latencies, and the newest failures; all of the same time."""
    ranking_table.left()
    with frames.sentences():
        badges.badges()
    if cached.extent("attempt") is None and cached.extent("event") is None:
        empty_lists.empty_log(
            "The log is empty. Once it holds events and delivery attempts, this page shows what fails, where and why."
        )
        return
    window, inside = frame.window, Selection(time=frame.view.asked(frame.now).time)
    with frames.sentences():
        _numbers(frame, window)
    with frames.sentences():
        histogram.chart(frame, "attempt", inside)
    with frames.sentences():
        _failing(frame, window, inside)
    with frames.sentences():
        failures.failures_of(frame, window)
    with st.container(horizontal=True, gap="medium"):  # side by side where there is room
        with st.container(width=620), frames.sentences():
            topics.topics(frame, window)
        with st.container(width=440), frames.sentences():
            latencies.latencies(frame, window)
    with frames.sentences():
        _newest(frame, inside)


def _numbers(frame: Frame, window: Window) -> None:
    store = cached.store()
    count = lambda: rankings.totals(store, Selection(), window)  # noqa: E731 - an argument
    with st.container(horizontal=True, gap="small"):
        with st.container(width=555):
            later(("totals", window), count, _counts, words="Counting…", meanwhile=lambda: _three("…", "…", "…"))
        with st.container(width=525):
            _look_up(frame, window)


def _counts(found: Totals) -> None:
    tried, failed = found.attempts, found.failed
    succeeded = f"{1 - failed / tried:.1%}" if tried else "none tried"
    _three(
        f"{found.events:,}",
        f"{tried:,}",
        succeeded,
        of=f"{tried - failed:,} of {tried:,} attempts succeeded; {failed:,} failed",
    )
    histogram.unread(found.warnings)


def _three(events: str, attempts: str, succeeded: str, *, of: str | None = None) -> None:
    with st.container(horizontal=True, gap="small"):
        _number("Events published", events, None)
        _number("Attempts", attempts, None)
        _number("Success rate", succeeded, of)


def _look_up(frame: Frame, window: Window) -> None:
    """What became of the events; the list of events asks the same, so that it is counted once."""
    wait = lambda: _undelivered(("…", "…"))  # noqa: E731 - an argument
    if not frame.view.everything:
        histogram.event_outcomes(frame, Selection(), window, _outcomes, meanwhile=wait)
        return
    store, zone = cached.store(), frame.zone
    later(
        ("all outcomes", window, str(zone)),
        lambda: range_outcomes.outcomes(store, Selection(), window, zone, everything=True),
        _outcomes,
        words="Looking up what became of these events…",
        meanwhile=wait,
        seconds=many_records.limit(frame),
    )


def _outcomes(found: pandas.DataFrame) -> None:
    numbers = found.groupby("outcome")["count"].sum()
    if "published" in numbers:
        _undelivered(("?", "?"))
        many_records.offer(Many(int(numbers["published"])), "events and their attempts")
        return
    _undelivered([f"{int(numbers[outcome]):,}" for outcome in ("not delivered", "never attempted")])
    histogram.unread(found.attrs["warnings"])


def _undelivered(numbers: Sequence[str]) -> None:
    missed, never = numbers
    with st.container(horizontal=True, gap="small"):
        reached = "of this range, with a destination that no attempt has reached so far"
        _number("Events not delivered", missed, reached, width=255)
        _number("Events never attempted", never, "of this range, that no destination took", width=255)


def _number(label: str, number: str, help_: str | None, *, width: int = 175) -> None:
    """Three narrow ones and two wide ones fill a line of a wide page, and a line each of a narrow one."""
    st.metric(label, number, border=True, help=help_, width=width)


def _failing(frame: Frame, window: Window, inside: Selection) -> None:
    st.subheader("Failing destinations", anchor=False)

    def draw(ranked: pandas.DataFrame) -> None:
        histogram.unread(ranked.attrs["warnings"])
        if ranked.empty:
            empty_lists.nothing(frame, "attempt", inside)
            return
        failing = ranked[ranked["failed"] > 0]
        if failing.empty:
            tried = ranked["attempts"].sum()
            st.success(f"None of the {tried:,} attempts in this range failed.", icon=":material/check_circle:")
            return
        worst = failing.head(_SHOWN).reset_index(drop=True)
        ranking_table.ranking(
            frame,
            worst,
            key="failing",
            follow=lambda row: ranking_table.leave("Destinations", _to(frame, row)),
            to_tenant=lambda row: ranking_table.leave("Destinations", destinations_of(frame.view, row.tenant_id)),
        )
        tenants = ranked["tenant_id"].nunique()
        words = f"{len(failing):,} of {len(ranked):,} destinations of {tenants:,} tenants have failed attempts"
        st.caption(f"{words}; these have most." if len(failing) > len(worst) else f"{words}.")

    store = cached.store()
    rank = lambda: rankings.ranking(store, Selection(), window, by="tenant_id,destination_id")  # noqa: E731 - an argument
    later(("failing", window), rank, draw, words="Ranking…")


def _to(frame: Frame, of: Any) -> list[tuple[str, str]]:
    """One destination over the same time, as a link says it."""
    return destinations_of(frame.view, of.tenant_id, of.destination_id)


def _newest(frame: Frame, inside: Selection) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        st.subheader("Newest failed attempts", anchor=False, width="content")
        params = grouped([*frame.view.carried(), ("status", "failed")])
        st.page_link(
            PAGES["Attempts"][0],
            label="All failed attempts",
            icon=":material/local_shipping:",
            query_params=params,
        )
    with deadline.within(_SECONDS):
        found = cached.store().list_attempt(inside.but(status="failed"), limit=_SHOWN)
        newest = found if found.data else cached.store().list_attempt(Selection(status="failed"), limit=1)
    for warning in found.warnings:
        st.warning(texts.markdown(warning, 600))
    if found.data:
        path = PAGES["Destinations"][0]
        rows.rows(
            frame,
            "attempt",
            found,
            narrow=lambda attempt, _: st.switch_page(path, query_params=grouped(_to(frame, attempt))),
        )
        return
    old = f"; the newest failure is {times.span(frame.now - newest.data[0].time)} old" if newest.data else ""
    st.caption(f"None in this range{old}.")
