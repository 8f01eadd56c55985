"""What would have to read very many records is read when somebody asks for everything."""

from __future__ import annotations

import streamlit as st

from logstore.workbench import url
from logstore.workbench.counts.measures import Many
from logstore.workbench.frame import Frame

SECONDS = 60.0  # that reading everything may take


def limit(frame: Frame) -> float | None:
    """How long an answer may take: longer than usual when everything was asked for."""
    return SECONDS if frame.view.everything else None


def offer(many: Many, noun: str) -> None:
    """What would have to read very many records is read when somebody asks."""
    st.caption(f"That means to read {many.records:,} {noun}, which takes a while.")
    st.button("Read them all", key=f"read {noun}", icon=":material/hourglass_top:", on_click=_read_everything)


def _read_everything() -> None:
    url.change(lambda view: view.but(everything=True))  # also from inside a fragment the whole page runs
