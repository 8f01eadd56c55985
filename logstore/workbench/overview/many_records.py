"""What would have to read very many records is read when somebody asks for everything."""

from __future__ import annotations

import streamlit as st

from logstore.workbench import frame as frames
from logstore.workbench import url
from logstore.workbench.counts.measures import Many


def everything() -> bool:
    """Whether the URL asks to read every record, however many there are."""
    return url.one("everything") == "1"


def offer(many: Many, noun: str) -> None:
    """What would have to read very many records is read when somebody asks."""
    st.caption(f"That means to read {many.records:,} {noun}, which takes a while.")
    st.button("Read them all", key=f"read {noun}", icon=":material/hourglass_top:", on_click=_read_everything)


def _read_everything() -> None:
    url.put(everything="1")
    frames.change(lambda view: view)  # also from inside a fragment the whole page runs
