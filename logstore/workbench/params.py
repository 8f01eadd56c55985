"""Parameters of the URL that only one page has; those that all pages share are the view's."""

from __future__ import annotations

import streamlit as st

from logstore.workbench.view import grouped

QUESTION = "p."  # before the parameters of a named question


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
    before = [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]
    after = [pair for pair in before if pair[0] not in changes]
    after += [(name, value) for name, value in changes.items() if value is not None]
    if grouped(before) != grouped(after):
        st.query_params.from_dict(grouped(after))
