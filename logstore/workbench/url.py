"""The URL as the page that runs has it: its view, and parameters that only one page knows; read and changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from logstore.workbench.view import NAMES, UnreadableLink, View, grouped

QUESTION = "p."  # before the parameters of a named question


def pairs() -> list[tuple[str, str]]:
    """The parameters of the URL, a pair for each value."""
    return [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]


def write(view: View) -> bool:
    """Make this the page's view: one entry in the browser's history, none (and False) when nothing changes.

    Parameters that only one page knows stay.
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


def grouped_query(view: View) -> dict[str, list[str]]:
    """All of a view, as a link takes it."""
    return grouped(view.to_query())


def one(name: str) -> str | None:
    """The value of a parameter, the last one if it is repeated."""
    values = st.query_params.get_all(name)
    return values[-1] if values else None


def number(name: str) -> int | None:
    """The value of a parameter that is a row's number; what is no number names no row."""
    text = one(name)
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def put(**changes: str | None) -> None:
    """Set parameters, None takes one out; one entry in the browser's history, none when nothing changes."""
    put_all(changes)


def put_all(changes: dict[str, str | None]) -> None:
    """The same for names that are not words of Python."""
    before = pairs()
    after = [pair for pair in before if pair[0] not in changes]
    after += [(name, value) for name, value in changes.items() if value is not None]
    if grouped(before) != grouped(after):
        st.query_params.from_dict(grouped(after))
