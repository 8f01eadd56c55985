"""export, verify, reconcile, restore, compact: months as Parquet segments, and back."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

import logstore
from logstore import archive, partitions
from logstore.commands import Subparsers, command, show, table
from logstore.segments import Segment

_EXPORT = """  python -m logstore export attempts_2026_08           close the month, write and verify its segments
  python -m logstore export attempts_2026_08 --flip    and serve it from them; the table is detached, and stays for undo"""


def add(commands: Subparsers) -> None:
    parser = command(commands, "export", _export, help="write a month as verified Parquet segments", examples=_EXPORT)
    parser.add_argument("partition", help="such as attempts_2026_08")
    parser.add_argument(
        "--flip", action="store_true", help="then serve the month from the archive and detach its table"
    )
    parser.add_argument("--rows", type=int, default=archive.SEGMENT_ROWS, help="rows in a segment, at most")
    parser = command(commands, "verify", _verify, help="read every byte of the archive again; quarantine what is bad")
    parser.add_argument("partition", nargs="?", help="only this month's segments")
    command(commands, "reconcile", _reconcile, help="compare the archive's folder with the catalog, both ways")
    parser = command(commands, "restore", _restore, help="make a month writable in PostgreSQL again")
    parser.add_argument("partition")
    parser = command(commands, "compact", _compact, help="many small segments of a month into few")
    parser.add_argument("partition")


def _export(given: argparse.Namespace) -> None:
    with logstore.open(role="operator") as store:
        sealed = archive.export(store, given.partition, segment_rows=given.rows, progress=_progress)
        if given.flip:
            archive.flip(store, given.partition)
            partitions.detach(store.database, given.partition)
    served = "; the archive serves it now, its table is detached and kept for undo" if given.flip else ""
    show(given, _documents(sealed), f"{_table(sealed)}\n{given.partition} is sealed{served}")


def _verify(given: argparse.Namespace) -> int:
    with logstore.open(role="operator") as store:
        return _show_findings(
            given, archive.verify(store, given.partition, progress=_progress), "every segment is good"
        )


def _reconcile(given: argparse.Namespace) -> int:
    with logstore.open(role="operator") as store:
        return _show_findings(given, archive.reconcile(store), "folder and catalog agree")


def _restore(given: argparse.Namespace) -> None:
    with logstore.open(role="operator") as store:
        archive.restore(store, given.partition)
    show(given, {"partition": given.partition, "state": "open"}, f"{given.partition} is open again")


def _compact(given: argparse.Namespace) -> None:
    with logstore.open(role="operator") as store:
        sealed = archive.compact(store, given.partition)
    show(given, _documents(sealed), _table(sealed))


def _show_findings(given: argparse.Namespace, found: list[archive.Finding], good: str) -> int:
    rows = [(finding.what, finding.problem, finding.done) for finding in found]
    show(given, [asdict(finding) for finding in found], table(rows, ("what", "problem", "done")) if rows else good)
    return 1 if found else 0


def _documents(sealed: list[Segment]) -> list[dict[str, object]]:
    return [asdict(segment) for segment in sealed]


def _table(sealed: list[Segment]) -> str:
    rows = [(s.location, s.rows, s.bytes, s.min_time, s.max_time) for s in sealed]
    return table(rows, ("segment", "rows", "bytes", "from", "to"))


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done:,} of {total:,}", end="\n" if done >= total else "", file=sys.stderr, flush=True)
