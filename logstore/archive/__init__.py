"""The archive: a closed month becomes verified segments, and segments become a month again.

export → (verify) → flip; reconcile and verify look after what is there; compact, restore and retire change it; should the
database be lost, rebuild_catalog makes the catalog from the files.
"""

from __future__ import annotations

from logstore.archive.catalog import Finding
from logstore.archive.checking import reconcile, verify
from logstore.archive.compaction import compact
from logstore.archive.exporting import SEGMENT_ROWS, export, export_query, flip
from logstore.archive.recovery import rebuild_catalog
from logstore.archive.restoring import restore
from logstore.archive.retiring import GRACE_SECONDS, delete_expired, retire

__all__ = [
    "GRACE_SECONDS",
    "SEGMENT_ROWS",
    "Finding",
    "compact",
    "delete_expired",
    "export",
    "export_query",
    "flip",
    "rebuild_catalog",
    "reconcile",
    "restore",
    "retire",
    "verify",
]
