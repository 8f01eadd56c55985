"""Where the pages are, and the ways to the page of an event and of a destination."""

from __future__ import annotations

import streamlit as st

from logstore.records import Selection
from logstore.workbench.url import pairs
from logstore.workbench.view import View, grouped

PAGES = {
    "Overview": ("app.py", ":material/monitoring:"),
    "Events": ("pages/1_Events.py", ":material/mail:"),
    "Attempts": ("pages/2_Attempts.py", ":material/local_shipping:"),
    "Event": ("pages/3_Event.py", ":material/search:"),
    "Destinations": ("pages/4_Destinations.py", ":material/hub:"),
    "Partitions": ("pages/5_Partitions.py", ":material/calendar_month:"),
    "Loads": ("pages/6_Loads.py", ":material/upload_file:"),
    "SQL": ("pages/7_SQL.py", ":material/terminal:"),
    "Fields": ("pages/8_Fields.py", ":material/data_object:"),
}


def go_to_event(event_id: str, tenant_id: str, attempt_id: str | None = None) -> None:
    """Leave for the page of an event.

    Streamlit writes the new parameters into the history of the page that is left. So they are added to the ones that are
    there: Back then shows the same place of the same list, and not a list without filters.
    """
    kept = [(name, value) for name, value in pairs() if name not in ("id", "tenant", "open")]
    found = [*kept, ("id", event_id), ("tenant", tenant_id)]
    if attempt_id is not None:
        found.append(("open", attempt_id))
    st.switch_page(PAGES["Event"][0], query_params=grouped(found))


def destinations_of(view: View, tenant_id: str, destination_id: str | None = None) -> list[tuple[str, str]]:
    """What a link to the page of destinations says of a tenant, or of one of its destinations; over the same time."""
    of = Selection(tenant_ids=(tenant_id,), destination_ids=() if destination_id is None else (destination_id,))
    return [*view.carried(), *of.to_query()]
