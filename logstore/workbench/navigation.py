"""Where the pages are, and the URL that says what one shows: read, changed, and left for another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from logstore.workbench import texts
from logstore.workbench.view import NAMES, UnreadableLink, View, grouped

PAGES = {
    "Overview": ("app.py", "📊"),
    "Events": ("pages/1_Events.py", "📨"),
    "Attempts": ("pages/2_Attempts.py", "🚚"),
    "Event": ("pages/3_Event.py", "🔎"),
    "Destinations": ("pages/4_Destinations.py", "🎯"),
    "Partitions": ("pages/5_Partitions.py", "🗂️"),
    "Loads": ("pages/6_Loads.py", "📥"),
    "SQL": ("pages/7_SQL.py", "🧮"),
    "Fields": ("pages/8_Fields.py", "🧬"),
}


def pairs() -> list[tuple[str, str]]:
    """The parameters of the URL, a pair for each value."""
    return [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]


def write(view: View) -> bool:
    """Make this the page's view: one entry in the browser's history, none (and False) when nothing changes.

    Parameters that only one page knows (workbench/params.py) stay.
    """
    new = grouped([*view.to_query(), *(pair for pair in pairs() if pair[0] not in NAMES)])
    if new == grouped(pairs()):
        return False
    st.query_params.from_dict(new)
    return True


def drop(name: str) -> None:
    """Take a parameter out of the URL."""
    st.query_params.from_dict(grouped((n, v) for n, v in pairs() if n != name))


def change(alter: Callable[[View], View]) -> None:
    """Alter the view as the URL has it at this moment; for callbacks, which run before the page does."""
    changed = False
    with contextlib.suppress(UnreadableLink):  # the page that runs next says so
        changed = write(alter(View.from_query(pairs())))
    context = get_script_run_ctx()
    # A click inside a fragment would redraw that alone, and the view is the whole page's. But a fragment that polls may
    # bring the state of a table that is gone, and a URL that is not yet the new one: that must not draw the old page.
    if changed and context is not None and context.fragment_ids_this_run:
        st.rerun()


def bound(key: str, value: Any) -> str:
    """Give a widget the URL's value; it is the only truth, so that Back and a pasted link move the widgets too."""
    st.session_state[key] = value
    return key


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


def grouped_query(view: View) -> dict[str, list[str]]:
    """All of a view, as a link takes it."""
    return grouped(view.to_query())


def plain(text: str) -> str:
    """A text as a label that reads Markdown shows it."""
    return texts.markdown(text, 60)
