"""export, verify, reconcile, restore, compact: months as Parquet segments, and back."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from logstore import archive, partitions
from logstore.commands import Subparsers, command, count, operator, show, table
from logstore.errors import PartitionError
from logstore.maintenance.checkup import size_text
from logstore.segments import Segment
from logstore.store import LogStore

_EXPORT = """  python -m logstore export attempts_2026_08           close the month, write and verify its segments
  python -m logstore export attempts_2026_08 --flip    and serve it from them; its table stays for undo"""
_VERIFY = """  python -m logstore verify                            all of it; the exit code is 1 when something was found
  python -m logstore verify attempts_2026_08           one month"""
_RECONCILE = """  python -m logstore reconcile                         the exit code is 1 when something was found"""
_RESTORE = """  python -m logstore restore attempts_2026_08          `python -m logstore partitions` names them"""
_COMPACT = """  python -m logstore compact attempts_2026_08          after many small exports of it"""
_VERIFIES = "read every byte of the archive again; quarantine what is bad"
_RECONCILES = "compare the archive's folder with the catalog, both ways"


def add(commands: Subparsers) -> None:
    parser = command(commands, "export", _export, help="write a month as verified Parquet segments", examples=_EXPORT)
    parser.add_argument("partition", help="such as attempts_2026_08")
    parser.add_argument(
        "--flip", action="store_true", help="then serve the month from the archive and detach its table"
    )
    parser.add_argument("--rows", type=count, default=archive.SEGMENT_ROWS, help="rows in a segment, at most")
    parser = command(commands, "verify", _verify, help=_VERIFIES, examples=_VERIFY)
    parser.add_argument("partition", nargs="?", help="only this month's segments")
    command(commands, "reconcile", _reconcile, help=_RECONCILES, examples=_RECONCILE)
    parser = command(commands, "restore", _restore, help="make a month writable in PostgreSQL again", examples=_RESTORE)
    parser.add_argument("partition", help="such as attempts_2026_08")
    parser = command(commands, "compact", _compact, help="many small segments of a month into few", examples=_COMPACT)
    parser.add_argument("partition", help="such as attempts_2026_08")


def _export(given: argparse.Namespace) -> None:
    with operator() as store:
        _refuse_the_present(store, given.partition)
        sealed = archive.export(store, given.partition, segment_rows=given.rows, progress=_progress)
        if given.flip:
            archive.flip(store, given.partition)
            partitions.detach(store.database, given.partition)
    if given.flip:
        served = "; the archive serves it now, its table is detached and kept for undo"
    else:
        served = f" and read-only now; `python -m logstore restore {given.partition}` makes it writable again"
    show(given, _documents(sealed), f"{_table(sealed)}\n{given.partition} is sealed{served}")


def _refuse_the_present(store: LogStore, name: str) -> None:
    """An export closes its month for writers, so one that is not over would stop what is being delivered now."""
    month = next((p for p in partitions.inventory(store.database) if p.name == name), None)
    if month is not None and month.state == "open" and month.upper > datetime.now(UTC):
        raise PartitionError(f"{name} is not over, and an export would close it: wait until {month.upper:%Y-%m-%d}")


def _verify(given: argparse.Namespace) -> int:
    with operator() as store:
        return _show_findings(
            given, archive.verify(store, given.partition, progress=_progress), "every segment is good"
        )


def _reconcile(given: argparse.Namespace) -> int:
    with operator() as store:
        return _show_findings(given, archive.reconcile(store), "folder and catalog agree")


def _restore(given: argparse.Namespace) -> None:
    with operator() as store:
        archive.restore(store, given.partition)
    show(given, {"partition": given.partition, "state": "open"}, f"{given.partition} is open again")


def _compact(given: argparse.Namespace) -> None:
    with operator() as store:
        sealed = archive.compact(store, given.partition)
    show(given, _documents(sealed), _table(sealed) if sealed else f"{given.partition} has no segments to compact")


def _show_findings(given: argparse.Namespace, found: list[archive.Finding], good: str) -> int:
    rows = [(finding.what, finding.problem, finding.done) for finding in found]
    show(given, [asdict(finding) for finding in found], table(rows, ("what", "problem", "done")) if rows else good)
    return 1 if found else 0


def _documents(sealed: list[Segment]) -> list[dict[str, object]]:
    return [asdict(segment) for segment in sealed]


def _table(sealed: list[Segment]) -> str:
    rows = [(f"{s.rows:,}", size_text(s.bytes), _second(s.min_time), _second(s.max_time), s.location) for s in sealed]
    return table(rows, ("rows", "size", "from", "to", "segment"))


def _second(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}" if time else ""


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done:,} of {total:,}", end="\n" if done >= total else "", file=sys.stderr, flush=True)
