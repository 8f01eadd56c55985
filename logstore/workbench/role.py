"""Whether things may be changed from the pages: only where an operator started the server."""

from __future__ import annotations

import streamlit as st

from logstore.settings import Settings


def may_change() -> bool:
    return Settings.read().role == "operator"


def reader_note(to: str, command: str) -> None:
    """What one cannot do here, and the two ways to do it."""
    st.info(
        f"This server only reads. To {to} from here, start it with `LOGSTORE_ROLE=operator`; or use a terminal: "
        f"`{command}`.",
        icon=":material/lock:",
    )
