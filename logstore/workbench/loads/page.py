"""Loads: bring files in, watch them come in, and see what came of each load."""

from __future__ import annotations

from typing import Any

import pandas
import streamlit as st

from logstore import loads
from logstore.loads import Load
from logstore.settings import Settings
from logstore.workbench import cached, record_details, role, signs, times, url
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.loads import dead_letters, progress, uploads
from logstore.workbench.processes import children

STATES = {
    "running": f"{signs.GOING} running",
    "done": f"{signs.GOOD} done",
    "failed": f"{signs.BAD} failed",
    "cancelled": f"{signs.NONE} cancelled",
}
_SHOWN = 50


def page(frame: Frame) -> None:
    """What comes in, what came in, what did not."""
    history = loads.history(cached.store(), limit=_SHOWN + 1)
    history, more = history[:_SHOWN], len(history) > _SHOWN
    _bring_in(first=not history)
    with frames.sentences():
        progress.live(history)
    st.subheader("Loads, the newest first", anchor=False)
    if history:
        _table(frame, history)
        if more:
            st.caption(f"The newest {_SHOWN} loads; `python -m logstore loads --limit 1000` lists older ones as well.")
        with frames.sentences():
            _one(frame, history)
    else:
        st.info("Nothing was loaded yet. Load a file or a folder above, or the sample data:", icon=":material/inbox:")
        st.code("python -m logstore demo", language="bash")
    with frames.sentences():
        dead_letters.section(frame)


# Bringing files in


def _bring_in(*, first: bool) -> None:
    if not role.may_change():
        role.reader_note("load files", "python -m logstore load PATH")
        return
    with st.expander("Load files", icon=":material/upload_file:", expanded=first):
        upload, path = st.tabs(["Upload", "From a folder of the server"])
        with upload:
            _upload()
        with path:
            _path()


def _upload() -> None:
    round_ = st.session_state.setdefault("uploads", 0)  # a new key empties the box
    given = st.file_uploader(
        "JSON lines (also packed with gzip) or Parquet, of events and attempts",
        type=[suffix.removeprefix(".") for suffix in uploads.SUFFIXES],
        accept_multiple_files=True,
        key=f"upload {round_}",
    )
    force = st.checkbox("Also files that were loaded before; nothing doubles", key="force upload")
    if st.button("Load what was uploaded", type="primary", disabled=not given, key="load upload"):
        inbox = Settings.read().inbox
        with frames.sentences():
            kept = [uploads.keep(inbox, file.name, file.getvalue()) for file in given or ()]
            children().load([str(path) for path in kept], force=force)
            st.session_state["uploads"] = round_ + 1
            st.rerun()


def _path() -> None:
    """What a path holds is said before it can be loaded."""
    round_ = st.session_state.setdefault("paths", 0)  # as above: nothing is looked at again when it is being loaded
    text = st.text_input(
        "A file, or a folder and all in it", placeholder=str(Settings.read().inbox), key=f"path {round_}"
    )
    force = st.checkbox("Also files that were loaded before; nothing doubles", key="force path")
    found = None
    with frames.sentences():
        if text.strip():
            found = uploads.look(text)
            st.caption(found.words)
    if st.button("Load it", type="primary", disabled=found is None, key="load path") and found is not None:
        children().load([str(found.path)], force=force)
        st.session_state["paths"] = round_ + 1
        st.rerun()


# What ran


def _table(frame: Frame, history: list[Load]) -> None:
    shown = pandas.DataFrame([_row(frame, load) for load in history])
    if not shown["error"].any():
        shown = shown.drop(columns="error")
    key = f"loads {history[0].id} {len(history)}"
    chosen = [i for i, load in enumerate(history) if load.id == url.number("load")]
    st.dataframe(
        signs.tinted(shown, ("state",)),
        key=key,
        hide_index=True,
        height="content" if len(history) <= 8 else 320,
        column_config=_CONFIG | {"started": _started(frame)},
        on_select=lambda: _chosen(key, history),
        selection_mode="single-row",
        selection_default={"selection": {"rows": chosen, "columns": [], "cells": []}},
    )


def _row(frame: Frame, load: Load) -> dict[str, Any]:
    seconds = sum(load.seconds.values())
    return {
        "load": load.id,
        "state": STATES[load.state],
        "started": times.show_short(load.started, frame.zone),
        "read": load.rows_read,
        "inserted": load.inserted,
        "dead": load.dead,
        "files": progress.file_names([source["path"] for source in load.sources]),
        "error": load.error or "",
        "updated": load.updated,
        "skipped": load.skipped,
        "took": times.span((load.finished or frame.now) - load.started),
        "rate": f"{load.rows_read / seconds:,.0f}" if seconds and load.state == "done" else "",
    }


def _number(heading: str, width: int, help_: str) -> Any:
    return st.column_config.NumberColumn(heading, format="localized", width=width, help=help_)


_CONFIG: dict[str, Any] = {
    "load": st.column_config.NumberColumn("load", width=50),
    "state": st.column_config.TextColumn("state", width=105),
    "files": st.column_config.TextColumn("files", width=190),
    "error": st.column_config.TextColumn("why it ended", width=190),
    "read": _number("rows read", 80, "events and attempts together"),
    "inserted": _number("inserted", 75, "rows that are new in the log"),
    "updated": _number("updated", 70, "attempts that were there and got a new outcome"),
    "skipped": _number("skipped", 70, "events that were there, and rows that the load holds twice"),
    "dead": _number("dead letters", 90, "rows that could not be loaded; they are below"),
    "took": st.column_config.TextColumn("took", width=60),
    "rate": st.column_config.TextColumn(
        "rows a second", width=105, alignment="right", help="without the start of Spark"
    ),
}


def _started(frame: Frame) -> Any:
    return st.column_config.TextColumn(f"started ({frame.zone_name})", width=130)


def _chosen(key: str, history: list[Load]) -> None:
    state: Any = st.session_state.get(key) or {}
    rows = state.get("selection", {}).get("rows", [])
    number = str(history[rows[0]].id) if rows and rows[0] < len(history) else None
    url.put(load=number, letter=None, before=None)


def _in_order(load: Load) -> list[tuple[str, float]]:
    stages = ("reading", "indexing", "merging")
    return [(stage, load.seconds[stage]) for stage in stages if stage in load.seconds]


def _one(frame: Frame, history: list[Load]) -> None:
    """The load that is chosen: its files, and where its time went."""
    number = url.number("load")
    if number is None:
        return
    load = next((load for load in history if load.id == number), None) or loads.get(cached.store(), number)
    with st.container(border=True):
        stages = {f"{stage}, seconds": f"{seconds:.1f}" for stage, seconds in _in_order(load)}
        record_details.facts({"load": str(load.id), "state": STATES[load.state], "bytes": f"{load.bytes:,}", **stages})
        if load.error:
            st.caption("Why it ended")
            st.code(load.error, language=None, wrap_lines=True)
        st.caption("Its files")
        st.code("\n".join(str(source["path"]) for source in load.sources[:100]), language=None)
