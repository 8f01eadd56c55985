"""What is being loaded now, redrawn while it runs, and how the loads that this server started have ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import streamlit as st

from logstore import loads
from logstore.loads import Load
from logstore.maintenance.checkup import size_text
from logstore.workbench import cached, role, signs, texts, times
from logstore.workbench import frame as frames
from logstore.workbench.processes import Child, children

_SHOWN = 50
_LIVE_SECONDS = 1.0
_SILENT_SECONDS = 60  # a load writes its figures every quarter of a second while it reads


def live(history: list[Load]) -> None:
    """What runs now, redrawn every second while something does, and how what this server started has ended."""
    busy = _busy(history)
    st.fragment(_running, run_every=_LIVE_SECONDS if busy else None)(busy)


def _busy(history: list[Load]) -> bool:
    return any(child.runs for child in children().all("load")) or any(load.state == "running" for load in history)


def _running(was_busy: bool) -> None:
    with frames.sentences():
        history = loads.history(cached.store(), limit=_SHOWN)
        if was_busy and not _busy(history):
            st.rerun()  # the tables below have something new, and the clock can stop
        running = [load for load in history if load.state == "running"]
        ours: set[int] = set()
        for child in children().all("load"):
            load = next((load for load in running if _is_of(load, child)), None)
            if child.runs:
                ours |= {load.id} if load else set()
                _child(child, load)
            else:
                _ended(child)
        for load in running:
            if load.id not in ours:
                _progress(load, "started elsewhere: end it where it was started")


def _is_of(load: Load, child: Child) -> bool:
    return load.started >= child.started and any(
        source["path"] == path or source["path"].startswith(f"{path}/")
        for source in load.sources
        for path in child.about
    )


def _child(child: Child, load: Load | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        with st.container():
            if load is not None:
                _progress(load, "")
            else:
                waited = times.span(datetime.now(child.started.tzinfo) - child.started)
                st.progress(0.0, f"Starting to load {texts.markdown(file_names(child.about))}, for {waited}")
        st.button(
            "Stopping…" if child.cancelled else "Cancel",
            key=f"cancel {child.number}",
            on_click=children().cancel,
            args=(child.number,),
            disabled=child.cancelled or not role.may_change(),
            icon=":material/cancel:",
            help="Nothing of this load stays: it can be started again at any time.",
        )


def _progress(load: Load, note: str) -> None:
    now = datetime.now(load.started.tzinfo)
    seconds = max((now - load.started).total_seconds(), 0.001)
    share = min(load.bytes_read / load.bytes, 1.0) if load.bytes else 1.0
    words = [
        f"Load {load.id}, {load.stage}: {load.rows_read:,} rows read",
        f"{size_text(load.bytes_read)} of {size_text(load.bytes)}",
        f"{load.rows_read / seconds:,.0f} rows a second",
        times.span(now - load.started),
    ]
    silent = now - load.changed
    if load.stage == "reading" and silent.total_seconds() > _SILENT_SECONDS:
        words.append(
            f"{signs.WARN} no word for {times.span(silent)}; if its process is gone, the next load cleans up after it"
        )
    st.progress(share, " · ".join([*words, *([note] if note else [])]))


def _ended(child: Child) -> None:
    """How a command of this server ended, until somebody has read it."""
    answer, sentence = child.outcome()
    names = texts.markdown(file_names(child.about))
    with st.container(horizontal=True, vertical_alignment="center"):
        if answer is not None:
            known, load = answer.get("known") or {}, answer.get("load")
            if load is not None:
                st.success(f"{names}: {_counts(load)}.", icon=":material/check_circle:")
            else:
                before = ", ".join(str(number) for number in sorted(set(known.values())))
                st.info(f"{names}: nothing new, it was loaded before by load {before}.", icon=":material/history:")
        elif child.cancelled:
            st.info(f"{names}: cancelled, nothing of it was loaded.", icon=":material/cancel:")
        else:
            st.error(f"{names}: {texts.markdown(sentence, 500)}", icon=":material/warning:")
        st.button("Close", key=f"forget {child.number}", on_click=children().forget, args=(child.number,))


def _counts(load: dict[str, Any]) -> str:
    return (
        f"load {load['id']} is done; of {load['rows_read']:,} rows {load['inserted']:,} were inserted, "
        f"{load['updated']:,} updated, {load['skipped']:,} skipped, {load['dead']:,} became dead letters"
    )


def file_names(paths: Sequence[str]) -> str:
    """The first file of a load and how many others there are; a load that failed early knows none."""
    first = Path(paths[0]).name if paths else ""
    return f"{first} and {len(paths) - 1} more" if len(paths) > 1 else first
