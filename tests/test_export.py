"""A whole selection as a file: every record once, over both tiers, in flat memory, and never silently short."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore import ArchiveError, InvalidSelection, LogStore, Selection, archive, export
from logstore.errors import InvalidFilter
from logstore.records import rfc3339
from tests.records_of import START, attempt, event
from tests.test_archive import make_cold, records

MARCH, APRIL = "attempts_2026_03", "attempts_2026_04"


def written(store: LogStore, format: str, selection: Selection = Selection(), kind: Any = "attempt") -> bytes:
    return b"".join(export.export(store, kind, selection, format))


def ids(format: str, file: bytes) -> list[str]:
    if format == "parquet":
        return list(pq.read_table(io.BytesIO(file))["id"].to_pylist())
    if format == "jsonl":
        return [json.loads(line)["id"] for line in file.decode().splitlines()]
    return [row["id"] for row in csv.DictReader(io.StringIO(file.decode(), newline=""))]


def test_every_format_holds_exactly_the_selection_over_both_tiers(store: LogStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(export, "_FIRST", 7)  # many pages
    monkeypatch.setattr(export, "_PAGE_BYTES", 1000)
    monkeypatch.setattr(export, "_GROUP_BYTES", 3000)
    given = [*records(60), attempt("april", time=START + timedelta(days=35), code="=1+1")]
    store.insert_many(attempts=given)
    make_cold(store, MARCH)
    wanted = [record for record in reversed(given) if record.destination_id != "d1" or record.id == "april"]
    selection = Selection(where='destination_id != "d1"')
    files = {name: written(store, name, selection) for name in export.FORMATS}
    assert [ids(name, file) for name, file in files.items()] == [[record.id for record in wanted]] * 3
    assert [json.loads(line) for line in files["jsonl"].splitlines()] == [record.to_dict() for record in wanted]
    table = pq.read_table(io.BytesIO(files["parquet"])).to_pylist()
    assert [(row["time"], row["code"]) for row in table] == [(record.time, record.code) for record in wanted]
    assert [json.loads(row["event_data"]) for row in table] == [record.event_data for record in wanted]
    sheet = list(csv.DictReader(io.StringIO(files["csv"].decode(), newline="")))
    assert (sheet[0]["code"], sheet[1]["code"], sheet[0]["attempt_number"]) == ("'=1+1", "", "1")
    assert [row["time"] for row in sheet] == [rfc3339(record.time) for record in wanted]
    assert json.loads(sheet[1]["event_data"]) == wanted[1].event_data


def test_a_file_of_nothing_is_a_file(store: LogStore) -> None:
    assert written(store, "jsonl", kind="event") == b""
    assert written(store, "csv", kind="event").startswith(b"id,tenant_id,")
    assert pq.read_table(io.BytesIO(written(store, "parquet"))).num_rows == 0


HOSTILE = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    '"; DROP',
    "a,b\r\nc",
    "<script>",
    "😀",
    "\u202eevil",
    "' = 1",
]


def test_hostile_text_is_a_cell_and_never_a_formula(store: LogStore) -> None:
    store.insert_many([event(f"e{n:02}", topic=text, data=text) for n, text in enumerate(HOSTILE)])
    sheet = list(csv.reader(io.StringIO(written(store, "csv", kind="event").decode(), newline="")))
    assert len(sheet) == len(HOSTILE) + 1
    assert not [cell for row in sheet for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")]
    topics = [row[sheet[0].index("topic")] for row in sheet[:0:-1]]
    assert [topic.removeprefix("'") for topic in topics[:6]] == HOSTILE[:6]
    assert topics[6:] == HOSTILE[6:]
    lines = written(store, "jsonl", kind="event").decode().split("\n")[-2::-1]
    assert [json.loads(line)["data"] for line in lines] == HOSTILE


def test_a_month_that_moves_meanwhile_changes_nothing(store: LogStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(export, "_FIRST", 5)
    monkeypatch.setattr(export, "_PAGE_BYTES", 1500)
    given = records(40)
    store.insert_many(attempts=given)
    pieces = export.export(store, "attempt", Selection(), "jsonl")
    found = next(pieces) + next(pieces)
    make_cold(store, MARCH)
    store.insert_many(attempts=[attempt("new", time=START + timedelta(days=40))])
    assert ids("jsonl", found + b"".join(pieces)) == [record.id for record in reversed(given)]


def test_what_cannot_be_read_breaks_the_file_and_names_the_hole(store: LogStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(export, "_FIRST", 5)
    store.insert_many(
        attempts=[*records(20), *(attempt(f"april{n}", time=START + timedelta(days=35)) for n in range(9))]
    )
    make_cold(store, MARCH, segment_rows=10)
    pieces = export.export(store, "attempt", Selection(), "csv")
    next(pieces)
    for path in (store.settings.archive / "attempts" / "2026-03").iterdir():
        path.unlink()
    with pytest.raises(ArchiveError, match="10 attempts from"):
        list(pieces)
    with store.database.connection() as connection:
        connection.execute("UPDATE segments SET state = 'quarantined'")
    with pytest.raises(ArchiveError, match="cannot be read"):
        next(export.export(store, "attempt", Selection(), "csv"))
    late = Selection.from_query([("time.gte", "2026-04-01T00:00:00Z")])
    assert len(ids("csv", written(store, "csv", late))) == 9


def test_a_bad_copy_of_what_postgres_still_serves_is_in_nobodys_way(store: LogStore) -> None:
    store.insert_many(attempts=records(20))
    archive.export(store, MARCH)
    with store.database.connection() as connection:
        connection.execute("UPDATE segments SET state = 'quarantined'")
    assert len(ids("csv", written(store, "csv"))) == 20


def test_mistakes_are_said_before_the_first_byte(store: LogStore) -> None:
    for kind, selection, name, error in (
        ("event", Selection(status="failed"), "csv", InvalidSelection),
        ("attempt", Selection(where="code ="), "csv", InvalidFilter),
        ("attempt", Selection(), "xlsx", InvalidSelection),
    ):
        with pytest.raises(error):
            next(export.export(store, kind, selection, name))  # type: ignore[arg-type]


def filled(store: LogStore, rows: int, size: int) -> None:
    """Many events at once: one a second in March, each with a payload of `size` bytes."""
    store.insert_many([event("first")])
    with store.database.connection() as connection:
        connection.execute(
            "INSERT INTO events (id, tenant_id, destination_id, time, topic, eligible_for_retry, data, metadata)"
            " SELECT 'e' || n, 'acme', '', '2026-03-02Z'::timestamptz + n * interval '1 s', 't', true,"
            " jsonb_build_object('n', n, 'text', repeat('x', %s)), '{}' FROM generate_series(1, %s) n",
            [size, rows],
        )


def test_memory_stays_flat_and_leaving_holds_nothing(store: LogStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(export, "_PAGE_BYTES", 200_000)
    monkeypatch.setattr(export, "_GROUP_BYTES", 400_000)
    filled(store, 4000, 2000)
    for name in export.FORMATS:
        arrow, total = pa.total_allocated_bytes(), 0
        tracemalloc.start()
        try:
            for number, piece in enumerate(export.export(store, "event", Selection(), name)):
                total += len(piece)
                assert store.database._pool.checkedout() == 0, "no connection waits for a slow reader"
                assert pa.total_allocated_bytes() - arrow < 2_000_000
                if number == 2:
                    tracemalloc.reset_peak()  # what is made once, such as prepared statements, is there
            assert tracemalloc.get_traced_memory()[1] < 3_000_000, "of the 8 MB that went through"
        finally:
            tracemalloc.stop()
        assert total > 8_000_000 or name == "parquet"
    left = export.export(store, "event", Selection(), "csv")
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert store.database._pool.checkedout() == 0
