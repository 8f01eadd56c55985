"""Many small segments of a month into few, while readers go on."""

from __future__ import annotations

from logstore import partitions, sealing
from logstore.archive import catalog
from logstore.archive.exporting import SEGMENT_ROWS, seal_all
from logstore.errors import ArchiveError
from logstore.faults import fault
from logstore.segments import Segment
from logstore.store import LogStore


def compact(store: LogStore, partition: str, *, segment_rows: int = SEGMENT_ROWS) -> list[Segment]:
    """Many small segments of a month into few; readers see the old ones until the new ones take over at once."""
    parent, month = partitions.parse_name(partition)
    archive = store.settings.archive
    with catalog.alone(store, partition) as connection:
        catalog.discard(store, connection, catalog.of_month(connection, parent, month, "writing"))
        if catalog.of_month(connection, parent, month, "quarantined"):
            remedy = catalog.remedy(store, partition)
            raise ArchiveError(f"{partition} has quarantined segments, and a compacted month must be whole: {remedy}")
        old = catalog.of_month(connection, parent, month, "sealed")
        if len(old) <= 1:
            return old
        for segment in old:
            sealing.check(archive, segment)
        ids = [segment.segment_id for segment in old]
        tables, total = sealing.row_groups(sealing.read_rows(archive, old)), sum(segment.rows for segment in old)
        new = list(seal_all(store, connection, parent, month, tables, segment_rows, None, total, replaces=ids))
        if catalog.sums(archive, new) != catalog.sums(archive, old):
            catalog.discard(store, connection, new)
            raise ArchiveError(f"{partition}: the compacted rows differ from the old ones; the old ones stay")
        with connection.transaction():
            for segment in new:
                catalog.seal(connection, segment)
            catalog.set_state(connection, old, "retired", "compacted")
        fault("compact.swapped")
        return new
