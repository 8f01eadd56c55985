"""logstore: webhook events and delivery attempts, in PostgreSQL by month, browsed by cursor.

store = logstore.open()
page = store.list_attempt(Selection(tenant_ids=("acme",), status="failed"), limit=50)
"""

from __future__ import annotations

from logstore.errors import (
    ArchiveError,
    CursorVersionMismatch,
    InvalidCursor,
    InvalidFilter,
    InvalidRecord,
    InvalidSelection,
    InvalidSetting,
    LoadError,
    LogstoreError,
    MaintenanceError,
    PartitionError,
    SandboxError,
    ServerError,
    TooBroad,
    Unimplemented,
)
from logstore.explain import Explanation
from logstore.inserts import InsertReport
from logstore.metrics import Metrics
from logstore.records import Attempt, Event, Page, Selection, TimeFilter
from logstore.store import LogStore

open = LogStore.open  # noqa: A001 - the name is the product's: logstore.open()

__all__ = [
    "ArchiveError",
    "Attempt",
    "CursorVersionMismatch",
    "Event",
    "Explanation",
    "InsertReport",
    "InvalidCursor",
    "InvalidFilter",
    "InvalidRecord",
    "InvalidSelection",
    "InvalidSetting",
    "LoadError",
    "LogStore",
    "LogstoreError",
    "MaintenanceError",
    "Metrics",
    "Page",
    "PartitionError",
    "SandboxError",
    "Selection",
    "ServerError",
    "TimeFilter",
    "TooBroad",
    "Unimplemented",
    "open",
]
