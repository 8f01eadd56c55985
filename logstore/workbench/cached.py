"""The store that pages read through, and answers that are kept for a while; keyed on what was asked and on whom."""

from __future__ import annotations

import os
from datetime import datetime, tzinfo
from typing import Any

import pandas
import streamlit as st

import logstore
from logstore import loads, maintenance
from logstore.cursor import Kind
from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench.counts import lookups, measures
from logstore.workbench.times import Window

ROLE = "reader"
Query = tuple[tuple[str, str], ...]


def store() -> LogStore:
    """The store of the settings, opened once to read; many sessions share it."""
    return _open(address())


def address() -> str:
    """Which store the settings mean: part of every key, so that two stores never answer for each other."""
    return " ".join([ROLE, *(os.environ.get(name, "") for name in ("LOGSTORE_DSN", "LOGSTORE_HOME"))])


@st.cache_resource(show_spinner=False, on_release=LogStore.close)
def _open(address: str) -> LogStore:
    return logstore.open(role=ROLE)


def close() -> None:
    """Close the store, when the server ends: the embedded PostgreSQL stops only after its last user has left."""
    _open.clear()


def names(what: str, **values: Any) -> list[str]:
    return _names(address(), what, tuple(sorted(values.items())))


def extent(kind: Kind) -> tuple[datetime, datetime] | None:
    return _extent(address(), kind)


def whole_extent() -> tuple[datetime, datetime] | None:
    """The first and the last time of all records, or None when the log is empty."""
    found = [ends for ends in (extent("event"), extent("attempt")) if ends is not None]
    return (min(first for first, _ in found), max(last for _, last in found)) if found else None


def histogram(kind: Kind, selection: Selection, window: Window, zone: tzinfo) -> pandas.DataFrame:
    return _histogram(address(), kind, tuple(selection.to_query()), window.lower, window.upper, zone)


def health() -> maintenance.Health:
    """How the months stand, as maintenance sees it."""
    return _health(address())


def loads_lately() -> list[loads.Load]:
    """The newest loads."""
    return _loads(address())


@st.cache_data(ttl=30, max_entries=200, show_spinner=False)
def _names(address: str, what: str, values: tuple[tuple[str, Any], ...]) -> list[str]:
    return lookups.names(store(), what, **{name: list(v) if isinstance(v, tuple) else v for name, v in values})


@st.cache_data(ttl=10, max_entries=20, show_spinner=False)
def _extent(address: str, kind: Kind) -> tuple[datetime, datetime] | None:
    return lookups.extent(store(), kind)


@st.cache_data(ttl=60, max_entries=200, show_spinner=False, hash_funcs={"zoneinfo.ZoneInfo": str})
def _histogram(
    address: str, kind: Kind, query: Query, lower: datetime, upper: datetime, zone: tzinfo
) -> pandas.DataFrame:
    return measures.histogram(store(), kind, Selection.from_query(query), Window(lower, upper), zone)


@st.cache_data(ttl=30, max_entries=20, show_spinner=False)
def _health(address: str) -> maintenance.Health:
    return maintenance.health(store())


@st.cache_data(ttl=10, max_entries=20, show_spinner=False)
def _loads(address: str) -> list[loads.Load]:
    return loads.history(store(), limit=20)


def forget() -> None:
    """Drop the store and every answer; for tests, which change what is asked."""
    close()
    for kept in (_names, _extent, _histogram, _health, _loads):
        kept.clear()
