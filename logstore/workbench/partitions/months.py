"""The months of the log as an operator sees them: how each stands, in one word, and what that word means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas
import streamlit as st

from logstore import segments
from logstore.maintenance.checkup import size_text
from logstore.maintenance.planning import is_hidden, undo_window
from logstore.maintenance.survey import Survey, look
from logstore.retention import Month
from logstore.segments import Segment
from logstore.store import LogStore
from logstore.workbench import signs, times, url
from logstore.workbench.frame import Frame
from logstore.workbench.record_table import TIER


@dataclass(frozen=True, slots=True)
class Look:
    """How a condition is called and drawn; never by its colour alone."""

    sign: str
    word: str
    meaning: str
    colour: str
    pattern: str
    ink: str = "#ffffff"  # of the words on it


LOOKS = {
    "ahead": Look(signs.NONE, "made ahead", "empty, made before it is needed", "#a9d3c1", ".", "#1b2333"),
    "open": Look("●", "open", "in PostgreSQL, writable", "#2f9e77", ""),
    "closed": Look("■", "closed", "in PostgreSQL, read-only", "#c98a1b", "|"),
    "sealed": Look("◆", "sealed", "served from the archive; its table is still attached", "#3d7ecf", "\\"),
    "detached": Look(
        "◀", "detached", "served from the archive; its table waits outside the log for undo", "#7a6bd0", "/"
    ),
    "purged": Look("□", "purged", "served from the archive; its table is gone", "#6b7a90", "-"),
    "gone": Look("◌", "nothing left", "neither a table nor segments are left of it", "#b9c0cc", "+", "#1b2333"),
    "quarantined": Look(signs.BAD, "quarantined", "some of its segments cannot be trusted", "#dc5349", "x"),
    "hidden": Look(
        signs.WARN, "hidden", "its table was taken out of the log by hand: its rows are nowhere", "#dc5349", "+"
    ),
    "pending": Look("△", "detach pending", "a detach was interrupted; the next plan finalises it", "#d97a1f", "+"),
    "missing": Look(signs.WARN, "no table", "it is open, but somebody dropped its table", "#d97a1f", "x"),
    "stranger": Look(
        signs.UNKNOWN, "not ours", "a partition that logstore did not make and leaves alone", "#8a94a6", "x"
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One month of one table: the survey's view of it, and what pages add."""

    month: Month
    condition: str
    verified: datetime | None = None  # when all its segments were last known to be good
    undo_until: datetime | None = None
    files: tuple[Segment, ...] = ()

    @property
    def look(self) -> Look:
        return LOOKS[self.condition]

    @property
    def rows(self) -> int:
        """Exact once it is in segments, trusted or not; before, PostgreSQL's estimate."""
        cold = self.month.state in ("cold", "purged")
        return sum(segment.rows for segment in self.files) if cold else self.month.rows


def condition(month: Month, now: datetime) -> str:
    """The one word for a month; what needs a person comes before what is in order."""
    if not month.ours:
        return "stranger"
    if month.quarantined:
        return "quarantined"
    if is_hidden(month):
        return "hidden"
    if month.pending:
        return "pending"
    if month.state in ("open", "closed"):
        if not month.exists:
            return "missing"
        return "closed" if month.state == "closed" else "ahead" if month.lower > now else "open"
    if month.exists:
        return "sealed" if month.attached else "detached"
    return "purged" if month.segments else "gone"


def standing(store: LogStore, *, now: datetime) -> tuple[Survey, list[Standing]]:
    """Every month, the newest first, with the survey that it was made from."""
    survey = look(store.database, now=now)
    with store.database.connection(autocommit=True) as connection:
        listed = segments.listed(connection)
    files: dict[tuple[str, Any], list[Segment]] = {}
    for segment in listed:
        files.setdefault((segment.parent, segment.month), []).append(segment)
    window = undo_window(store.settings)
    found = []
    for month in reversed(survey.months):
        own = tuple(files.get((month.parent, month.lower.date()), ()))
        word = condition(month, now)
        until = month.changed + window if month.changed and month.state == "cold" and month.exists else None
        checked = [segment.verified for segment in own]
        known = [time for time in checked if time is not None]
        verified = min(known) if known and len(known) == len(checked) else None
        found.append(Standing(month=month, condition=word, verified=verified, undo_until=until, files=own))
    return survey, found


# The table


def table(frame: Frame, found: Sequence[Standing]) -> None:
    """A row for each month and table; the one that is chosen is in the URL."""
    chosen = [i for i, one in enumerate(found) if one.month.name == url.one("partition")]
    key = f"months {hash(tuple((one.month.name, one.condition) for one in found))} {chosen}"
    st.dataframe(
        signs.tinted(pandas.DataFrame([_row(frame, one) for one in found]), ("state",)),
        key=key,
        hide_index=True,
        height="content" if len(found) <= 14 else 450,
        column_config=_CONFIG | {"undo": _undo(frame)},
        on_select=lambda: _chosen(key, found),
        selection_mode="single-row",
        selection_default={"selection": {"rows": chosen, "columns": [], "cells": []}},
    )


def _row(frame: Frame, one: Standing) -> dict[str, Any]:
    month = one.month
    return {
        "partition": month.name,
        "state": f"{one.look.sign} {one.look.word}",
        "tier": TIER["cold" if month.state in ("cold", "purged") else "hot"],
        "rows": one.rows,
        "table": size_text(month.bytes) if month.exists else "",
        "archive": size_text(month.cold_bytes) if month.segments else "",
        "from": f"{month.lower:%Y-%m-%d}",
        "to": f"{month.upper:%Y-%m-%d}",
        "segments": segment_text(month),
        "verified": times.ago(one.verified, frame.now) if one.verified else "",
        "undo": times.show_short(one.undo_until, frame.zone) if one.undo_until else "",
    }


def segment_text(month: Month) -> str:
    if month.quarantined:
        return f"{month.segments} good, {month.quarantined} not"
    return str(month.segments) if month.segments else ""


def _text(heading: str, width: int, help_: str | None = None, *, right: bool = False) -> Any:
    return st.column_config.TextColumn(heading, width=width, help=help_, alignment="right" if right else None)


_CONFIG: dict[str, Any] = {
    "partition": _text("partition", 130),
    "state": _text("state", 120, "what each word means is said by the picture"),
    "tier": _text("served from", 85, "hot: PostgreSQL; archive: its sealed segments"),
    "from": _text("from", 88, "the first moment that it holds, in UTC"),
    "to": _text("to", 88, "the first moment that it does not hold, in UTC"),
    "rows": st.column_config.NumberColumn(
        "rows", format="localized", width=70, help="exact in the archive, PostgreSQL's estimate in a table"
    ),
    "table": _text("in PostgreSQL", 95, "its table with its indexes", right=True),
    "archive": _text("in the archive", 95, "its sealed Parquet segments", right=True),
    "segments": _text("segments", 75, right=True),
    "verified": _text("verified", 85, "when every byte of its segments was last read and compared"),
}


def _undo(frame: Frame) -> Any:
    return _text(f"undo until ({frame.zone_name})", 130, "until then its table is kept, whatever a plan does")


def _chosen(key: str, found: Sequence[Standing]) -> None:
    state: Any = st.session_state.get(key) or {}
    rows = state.get("selection", {}).get("rows", [])
    url.put(partition=found[rows[0]].month.name if rows and rows[0] < len(found) else None)


def named(found: Sequence[Standing], name: str) -> Standing | None:
    return next((one for one in found if one.month.name == name), None)


def is_over(one: Standing, now: datetime) -> bool:
    """Whether no record of now can fall into it any more."""
    return one.month.upper <= now
