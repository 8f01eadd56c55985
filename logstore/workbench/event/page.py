"""One event: what it carried, where it went, what came of it, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import streamlit as st

from logstore.maintenance.checkup import size_text
from logstore.records import Attempt, Event, Selection, TimeFilter
from logstore.workbench import cached, charts, deliveries, record_details, record_table, signs, texts, times, url
from logstore.workbench import frame as frames
from logstore.workbench.deliveries import Delivery
from logstore.workbench.event import snippets
from logstore.workbench.event.comparison import comparison
from logstore.workbench.event.timeline import timeline
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import PAGES, destinations_of
from logstore.workbench.view import grouped

ATTEMPTS_MOST = 500
_COPIED_MOST = 200_000  # characters; more is downloaded
_EARLY = timedelta(hours=1)  # by which the clock of whoever attempts may be behind that of whoever publishes
_OWN_ROW_MISSING = "The event's own row is not in the log; this is what its attempts carry of it."


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the log has of an event: itself, its attempts oldest first, what could not be read, and what is to be said."""

    event: Event | None
    attempts: list[Attempt]
    warnings: tuple[str, ...] = ()
    note: str = ""
    tier: str = "not in the log"  # of the event's own row


def page(frame: Frame) -> None:
    """The whole page of the event that the URL names."""
    asked = frame.view.id
    if not asked:
        st.info(
            "Paste an event's or attempt's id into “Find an id”, or choose one from a list.", icon=":material/search:"
        )
        _to_events(frame)
        return
    told = read(asked, frame.view.tenant)
    for warning in told.warnings:
        st.warning(texts.markdown(warning, 600))
    if told.event is None:
        st.warning("No event has this id:", icon=":material/search:")
        st.code(asked[:500], language=None)
        whose = " of this tenant" if frame.view.tenant else ""
        st.caption(
            f"Nothing{whose} is in the log under it. Ids are matched whole: check for a missing beginning or end."
        )
        _to_events(frame)
        return
    if told.note:
        st.info(told.note, icon=":material/info:")
    found = deliveries.deliveries(told.event, told.attempts, now=frame.now, whole=not told.warnings)
    _head(frame, told, told.event, found)
    _timeline(frame, told.event, found)
    _payload(told.event)
    with frames.sentences():
        comparison(frame, told.event, told.attempts)
    _copies(told.event, told.attempts)


def _to_events(frame: Frame) -> None:
    along = grouped(frame.view.carried())
    st.page_link(PAGES["Events"][0], label="Go to the events", icon=":material/mail:", query_params=along)


def read(event_id: str, tenant_id: str | None) -> Told:
    """The event and its newest attempts, which say what became of it; none is older than the event."""
    store = cached.store()
    event = store.retrieve_event(event_id, tenant_id=tenant_id)
    owner = event.tenant_id if event else tenant_id
    time = TimeFilter(gte=event.time - _EARLY) if event else TimeFilter()
    selection = Selection(event_ids=(event_id,), tenant_ids=(owner,) if owner else (), time=time)
    listed = store.list_attempt(selection, limit=ATTEMPTS_MOST)
    attempts = list(reversed(listed.data))
    if event is None and attempts:
        kept = attempts[-1].event
        bare = Event(**{name: getattr(kept, name) for name in Event.columns if name != "destination_id"})
        same = [attempt for attempt in attempts if attempt.tenant_id == bare.tenant_id]
        return Told(event=bare, attempts=same, warnings=listed.warnings, note=_OWN_ROW_MISSING)
    note = f"The event has more than {ATTEMPTS_MOST} attempts; the newest ones are shown." if listed.next else ""
    tier = record_table.tier_of("event", event) if event else ""
    return Told(event=event, attempts=attempts, warnings=listed.warnings, note=note, tier=tier)


def _head(frame: Frame, told: Told, event: Event, found: list[Delivery]) -> None:
    icon = deliveries.worst_icon(found, whole=not told.warnings)
    st.subheader(f"{signs.coloured(icon)} {deliveries.summary(found, whole=not told.warnings)}", anchor=False)
    facts = {
        "event": event.id,
        "tenant": event.tenant_id,
        "topic": event.topic,
        "time": f"{frame.show(event.time)} {frame.zone_name}, {times.ago(event.time, frame.now)}",
        "may be retried": "yes" if event.eligible_for_retry else "no",
        "published to": event.destination_id or "all that subscribe",
        "tier": told.tier,
    }
    record_details.facts(facts, {"tenant": destinations_of(frame.view, event.tenant_id)})
    for delivery in found:
        _delivery(frame, event, delivery)


def _delivery(frame: Frame, event: Event, delivery: Delivery) -> None:
    """One destination: its state in words, and each attempt's answer."""
    opened = frame.view.open
    with st.container(border=True):
        pairs = grouped(destinations_of(frame.view, event.tenant_id, delivery.destination_id))
        with st.container(gap=None):
            with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
                st.markdown(f"{signs.coloured(delivery.icon)} **{delivery.state.capitalize()}** at", width="content")
                st.text(delivery.destination_id[:200], width="content")
                st.space("stretch")
                st.page_link(
                    PAGES["Destinations"][0], label="This destination", icon=":material/hub:", query_params=pairs
                )
            st.text(delivery.words)
        if delivery.attempts:
            chosen = any(attempt.id == opened for attempt in delivery.attempts)
            count = len(delivery.attempts)
            noun = "attempt and its answer" if count == 1 else "attempts and their answers"
            with st.expander(f"{count} {noun}", expanded=chosen or delivery.state != "delivered"):
                _attempts(frame, delivery)


def _attempts(frame: Frame, delivery: Delivery) -> None:
    """The attempts as tabs, the newest chosen, or the one of the URL."""
    attempts = delivery.attempts
    opened = next((i for i, a in enumerate(attempts) if a.id == frame.view.open), len(attempts) - 1)
    key = f"answer {delivery.destination_id}"
    if len(attempts) > 1:
        st.segmented_control(
            "Attempt",
            range(len(attempts)),
            key=url.bound(key, opened),
            format_func=lambda place: _label(place, attempts[place]),
            on_change=_chosen,
            args=(key, attempts),
            label_visibility="collapsed",
        )
    record_details.answer(frame, attempts[opened], within_event=True)


def _label(place: int, attempt: Attempt) -> str:
    """Numbered by place, because two with one label would be one choice; and Markdown, because such labels are."""
    sign = signs.coloured(record_table.STATUS[attempt.status][0])
    return f"{sign} {place + 1} · {texts.markdown(attempt.code or 'none', 24)}"


def _chosen(key: str, attempts: tuple[Attempt, ...]) -> None:
    place = st.session_state[key]
    if place is not None:
        url.change(lambda view: view.but(open=attempts[place].id))


def _timeline(frame: Frame, event: Event, found: list[Delivery]) -> None:
    if not any(delivery.attempts for delivery in found):
        return
    st.subheader("Timeline", anchor=False)
    figure = timeline(event, found, zone=frame.zone)
    st.plotly_chart(figure, key="timeline", config={**charts.CONFIG, "staticPlot": False})
    st.caption(
        f"Times in {frame.zone_name}. Gray is time in which nothing happened, drawn shorter than it was. "
        "A ring is an attempt by hand."
    )


def _payload(event: Event) -> None:
    left, right = st.columns([3, 2])
    with left:
        st.subheader("Payload", anchor=False)
        record_details.tree(event.data, name=f"payload-{event.id}")
    with right:
        st.subheader("Metadata", anchor=False)
        record_details.tree(event.metadata, name=f"metadata-{event.id}")


def _copies(event: Event, attempts: list[Attempt]) -> None:
    st.subheader("Copy", anchor=False)
    as_json, as_curl, as_sql, as_python = st.tabs(["JSON", "curl", "SQL", "Python"])
    with as_json:
        text = snippets.as_json(event, attempts)
        if len(text) <= _COPIED_MOST:
            st.code(text, language="json", height=260)
        else:
            st.caption(f"The whole has {size_text(len(text.encode()))}: too much to show here.")
        record_details.download("Download as JSON", text.encode(), event.id)
    with as_curl:
        _curl(event)
    as_sql.code(snippets.as_sql(event), language="sql")
    as_python.code(snippets.as_python(event), language="python")


def _curl(event: Event) -> None:
    """A request that delivers the event again; its address stays out of the page's own, which people share."""
    address = st.text_input("Deliver it again to", key="curl to", placeholder=snippets.EXAMPLE_URL, width=460).strip()
    if address and not address.startswith(("http://", "https://")):
        st.caption("An address begins with https:// or http://.")
        return
    body = texts.dump(event.data, indent=None)
    name = f"{event.id[:60]}-payload"
    file = f"{record_details.file_name(name)}.json"
    inline = len(body.encode()) <= snippets.ARGUMENT_MOST
    st.code(snippets.as_curl(event, address, None if inline else file), language="bash", wrap_lines=True)
    if not inline:
        st.caption(f"The payload has {size_text(len(body.encode()))}, too much for a command line: save it beside.")
        record_details.download("Download the payload", body.encode(), name)
