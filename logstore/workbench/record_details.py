"""One record in full: its fields, its JSON as a tree, and ways to copy it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from logstore.maintenance.checkup import size_text
from logstore.records import Attempt
from logstore.workbench import deliveries, record_table, texts, url
from logstore.workbench.frame import Frame
from logstore.workbench.navigation import PAGES, destinations_of, go_to_event
from logstore.workbench.record_table import LINK
from logstore.workbench.view import Pairs, grouped


def attempt(frame: Frame, found: Attempt | None) -> None:
    """A dialog with what one attempt got for an answer; closing it takes it out of the URL."""

    @st.dialog("Attempt", width="large", on_dismiss=_closed)
    def show() -> None:
        if found is None:
            st.info(
                "No attempt has this id, or only another tenant's; close this and choose another row.",
                icon=":material/search:",
            )
            st.code((frame.view.open or "")[:500], language=None, wrap_lines=True)
            return
        answer(frame, found)
        if st.button("Go to the event and all its attempts", icon=":material/arrow_forward:", type="primary"):
            go_to_event(found.event_id, found.tenant_id, found.id)

    show()


def _closed() -> None:
    st.session_state["closed"] = closed() + 1
    url.change(lambda view: view.opened(None))


def closed() -> int:
    """How many were closed in this session."""
    found: int = st.session_state.get("closed", 0)
    return found


def answer(frame: Frame, found: Attempt, *, within_event: bool = False) -> None:
    """What one attempt was and what came back."""
    by = "by hand" if found.manual else "automatic"
    known = {
        "outcome": record_table.STATUS[found.status],
        "code": found.code or "none",
        "time": f"{frame.show(found.time)} {frame.zone_name}",
        "try": f"{found.attempt_number}, {by}",
        "tier": record_table.tier_of("attempt", found),
        "attempt": found.id,
    }
    if not within_event:
        known |= {
            "event": found.event_id,
            "tenant": found.tenant_id,
            "destination": found.destination_id,
            "topic": found.topic,
        }
    links = {
        "tenant": destinations_of(frame.view, found.tenant_id),
        "destination": destinations_of(frame.view, found.tenant_id, found.destination_id),
    }
    facts(known, links if frame.page != "Destinations" else None)  # there one is at that destination already
    said = deliveries.message(found.response_data, 300)
    if said:
        st.caption("The answer in short")
        st.code(said, language=None, wrap_lines=True)
    st.caption("The whole response")
    tree(found.response_data, name=f"response-{found.id}")


def facts(known: Mapping[str, str], links: Mapping[str, Pairs] | None = None) -> None:
    """Names and values, as text whatever they hold; `links` say which of them lead to the page of destinations."""
    with st.container(horizontal=True, gap="medium"):
        for name, value in known.items():
            with st.container(width="content", gap=None):
                st.caption(name, width="content")
                if value and links and name in links:
                    query = grouped(links[name])
                    st.page_link(PAGES["Destinations"][0], label=texts.markdown(value), icon=LINK, query_params=query)
                else:
                    st.text(value[:1500], width="content")


def tree(value: Any, *, name: str) -> None:
    """JSON as a tree of text. Of a huge one a part is shown, and the whole can be downloaded."""
    if value is None:
        st.caption("nothing")
        return
    if not isinstance(value, (dict, list)):
        st.code(texts.dump(value)[: texts.SHOWN_MOST], language=None, wrap_lines=True)
        return
    part, whole = texts.shown(value)
    # As text: a string handed to st.json would be taken for JSON already.
    st.json(texts.dump(part, indent=None), expanded=2 if whole else 1)
    if not whole:
        data = texts.dump(value).encode()
        st.caption(f"This is a part of it; the whole has {size_text(len(data))}.")
        download("Download the whole", data, name)


def download(label: str, data: bytes, name: str) -> None:
    """JSON as a file. Taking it changes nothing on the page, so the page does not run again."""
    file = f"{file_name(name)}.json"
    st.download_button(label, data, file_name=file, mime="application/json", on_click="ignore")


def file_name(name: str) -> str:
    """A name that is safe for a file, whatever it held."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
