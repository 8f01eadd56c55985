"""partitions: which months exist, and in which state."""

from __future__ import annotations

import argparse
from dataclasses import asdict

import logstore
from logstore import partitions
from logstore.commands import Subparsers, command, show, table
from logstore.maintenance.checkup import size_text

_EXAMPLES = """  python -m logstore partitions
  python -m logstore partitions --json"""


def add(commands: Subparsers) -> None:
    command(commands, "partitions", _partitions, help="the months of the log and their states", examples=_EXAMPLES)


def _partitions(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        found = partitions.inventory(store.database)
    rows = [
        (p.name, p.lower.date(), p.upper.date(), p.state, _where(p), f"{p.rows:,}", size_text(p.bytes)) for p in found
    ]
    head = ("partition", "from", "to", "state", "table", "rows about", "size")
    show(
        given,
        [asdict(partition) for partition in found],
        table(rows, head) if rows else "no months yet: insert or load",
    )


def _where(partition: partitions.Partition) -> str:
    if partition.pending:
        return "detach pending"
    return "attached" if partition.attached else "detached"
