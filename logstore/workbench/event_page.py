"""One event: what it carried, where it went, what came of it, and why."""

from __future__ import annotations

import streamlit as st

from logstore.records import Attempt, Event, Selection
from logstore.workbench import cached, charts, deliveries, details, snippets, texts, times
from logstore.workbench import frame as frames
from logstore.workbench.comparison import comparison
from logstore.workbench.deliveries import Delivery
from logstore.workbench.frame import Frame
from logstore.workbench.timeline import timeline
from logstore.workbench.view import grouped

ATTEMPTS_MOST = 500
_COPIED_MOST = 200_000  # characters; more is downloaded


def page(frame: Frame) -> None:
    """The whole page of the event that the URL names."""
    asked = frame.view.id
    if not asked:
        st.info("Paste an event's or attempt's id into “Find an id”, or choose one from a list.", icon="🔎")
        st.page_link(frames.PAGES["Events"][0], label="Go to the events", icon="📨")
        return
    event, attempts, note = read(asked, frame.view.tenant)
    if event is None:
        st.warning("No event has this id:", icon="🔎")
        st.code(asked[:500], language=None)
        whose = " of this tenant" if frame.view.tenant else ""
        st.caption(
            f"Nothing{whose} is in the log under it. Ids are matched whole: check for a missing beginning or end."
        )
        st.page_link(frames.PAGES["Events"][0], label="Go to the events", icon="📨")
        return
    if note:
        st.info(note, icon="ℹ️")
    found = deliveries.deliveries(event, attempts, now=frame.now)
    _head(frame, event, found)
    _timeline(frame, event, found)
    _payload(event)
    with frames.sentences():
        comparison(frame, event, attempts)
    _copies(event, attempts)


def read(event_id: str, tenant_id: str | None) -> tuple[Event | None, list[Attempt], str]:
    """The event, its attempts oldest first, and what is to be said about them."""
    store = cached.store()
    event = store.retrieve_event(event_id, tenant_id=tenant_id)
    owner = event.tenant_id if event else tenant_id
    selection = Selection(event_ids=(event_id,), tenant_ids=(owner,) if owner else ())
    listed = store.list_attempt(selection, limit=ATTEMPTS_MOST, order="asc")
    attempts = [attempt for attempt in listed if owner is None or attempt.tenant_id == owner]
    if event is None and attempts:
        kept = attempts[0].event
        bare = Event(**{name: getattr(kept, name) for name in Event.columns if name != "destination_id"})
        return bare, attempts, "The event's own row is not in the log; this is what its attempts carry of it."
    note = f"The event has more than {ATTEMPTS_MOST} attempts; the first ones are shown." if listed.next else ""
    return event, attempts, note


def _head(frame: Frame, event: Event, found: list[Delivery]) -> None:
    icon = deliveries.worst_icon(found)
    st.subheader(f"{icon} {deliveries.summary(found)}", anchor=False)
    facts = {
        "event": event.id,
        "tenant": event.tenant_id,
        "topic": event.topic,
        "time": f"{frame.show(event.time)} {frame.zone_name}, {times.ago(event.time, frame.now)}",
        "may be retried": "yes" if event.eligible_for_retry else "no",
        "published to": event.destination_id or "all that subscribe",
    }
    details.facts(facts)
    for delivery in found:
        _delivery(frame, event, delivery)


def _delivery(frame: Frame, event: Event, delivery: Delivery) -> None:
    """One destination: its state in words, and each attempt's answer."""
    opened = frame.view.open
    with st.container(border=True):
        selection = Selection(tenant_ids=(event.tenant_id,), destination_ids=(delivery.destination_id,))
        pairs = grouped([*frame.view.carried(), *selection.to_query()])
        with st.container(gap=None):
            with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
                st.markdown(f"{delivery.icon} **{delivery.state.capitalize()}** at", width="content")
                st.text(delivery.destination_id[:200], width="content")
                st.space("stretch")
                st.page_link(frames.PAGES["Destinations"][0], label="This destination", icon="🎯", query_params=pairs)
            st.text(delivery.words)
        if delivery.attempts:
            chosen = any(attempt.id == opened for attempt in delivery.attempts)
            count = len(delivery.attempts)
            noun = "attempt and its answer" if count == 1 else "attempts and their answers"
            with st.expander(f"{count} {noun}", expanded=chosen or delivery.state != "delivered"):
                _attempts(frame, delivery)


def _attempts(frame: Frame, delivery: Delivery) -> None:
    """The attempts as tabs, the newest chosen, or the one of the URL."""
    attempts = list(delivery.attempts)
    labels = {
        a.id: f"{'✅' if a.status == 'success' else '❌'} {a.attempt_number} · {a.code or 'none'}" for a in attempts
    }
    opened = next((a for a in attempts if a.id == frame.view.open), attempts[-1])
    key = f"answer {delivery.destination_id}"
    if len(attempts) > 1:
        st.segmented_control(
            "Attempt",
            list(labels),
            key=frames.bound(key, opened.id),
            format_func=labels.__getitem__,
            on_change=_chosen,
            args=(key,),
            label_visibility="collapsed",
        )
    details.answer(frame, opened, within_event=True)


def _chosen(key: str) -> None:
    attempt_id = st.session_state[key]
    if attempt_id:
        frames.change(lambda view: view.but(open=attempt_id))


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
        details.tree(event.data, name=f"payload-{event.id}")
    with right:
        st.subheader("Metadata", anchor=False)
        details.tree(event.metadata, name=f"metadata-{event.id}")


def _copies(event: Event, attempts: list[Attempt]) -> None:
    st.subheader("Copy", anchor=False)
    as_json, as_curl, as_sql, as_python = st.tabs(["JSON", "curl", "SQL", "Python"])
    with as_json:
        text = snippets.as_json(event, attempts)
        if len(text) <= _COPIED_MOST:
            st.code(text, language="json", height=260)
        else:
            st.caption(f"The whole has {texts.size(len(text.encode()))}: too much to show here.")
        st.download_button(
            "Download as JSON", text.encode(), file_name=f"{details.file_name(event.id)}.json", mime="application/json"
        )
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
    file = f"{details.file_name(event.id)}-payload.json"
    inline = len(body.encode()) <= snippets.ARGUMENT_MOST
    st.code(snippets.as_curl(event, address, None if inline else file), language="bash", wrap_lines=True)
    if not inline:
        st.caption(f"The payload has {texts.size(len(body.encode()))}, too much for a command line: save it beside.")
        st.download_button("Download the payload", body.encode(), file_name=file, mime="application/json")
