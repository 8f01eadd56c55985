"""What PostgreSQL does for a page: the right index, and as few buffers deep down and over 60 months as at the top of 3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import psycopg
import pytest

import logstore
from logstore import LogStore, Selection, partitions
from logstore.cursor import Kind, Position
from logstore.embedded import EmbeddedServer
from logstore.queries import question
from logstore.tables import PARENTS
from tests.conftest import new_database

ROWS = 24_000
END = datetime(2026, 3, 1, tzinfo=logstore.records.UTC)
LIMIT = 50

# Deterministic and spread over all months; a tenth belongs to the tenant `big`'s destination d3 and so on.
FILL_EVENTS = """
INSERT INTO events SELECT 'evt_' || n, CASE WHEN n %% 2 = 0 THEN 'big' ELSE 'small' || n %% 20 END, '',
    %(end)s - (n * %(step)s), 't' || n %% 7, true, '{"n": 1}', '{}' FROM generate_series(1, %(rows)s) n"""
FILL_ATTEMPTS = """
INSERT INTO attempts SELECT 'att_' || n, 'evt_' || (n %% 40), CASE WHEN n %% 2 = 0 THEN 'big' ELSE 'small' || n %% 20 END,
    'd' || n %% 5, 't' || n %% 7, CASE WHEN n %% 3 = 0 THEN 'failed' ELSE 'success' END, %(end)s - (n * %(step)s), 1, false,
    '200', NULL, %(end)s, true, '{"n": 1}', '{}' FROM generate_series(1, %(rows)s) n"""


@dataclass(frozen=True)
class Plan:
    """What EXPLAIN said of one page."""

    indexes: set[str]
    buffers: int
    planning_ms: float
    rows: int
    text: str


@pytest.fixture(scope="module", params=[18, 15], ids=["pg18", "pg15"])
def stores(request: pytest.FixtureRequest) -> Iterator[dict[int, LogStore]]:
    """The same rows in 3 months and in 60 months."""
    server = request.getfixturevalue("server" if request.param == 18 else "server_15")
    made = {months: _filled(server, months) for months in (3, 60)}
    yield made
    for store in made.values():
        store.close()


def _filled(server: EmbeddedServer, months: int) -> LogStore:
    store = logstore.open(new_database(server), role="operator")
    firsts = [date(number // 12, number % 12 + 1, 1) for number in range(2026 * 12 + 2 - months, 2026 * 12 + 2)]
    partitions.ensure(store.database, {(parent, month) for parent in PARENTS for month in firsts})
    oldest = datetime.combine(min(firsts), datetime.min.time(), END.tzinfo)
    values = {"end": END, "step": (END - oldest) / (ROWS + 1), "rows": ROWS}
    with store.database.connection(autocommit=True) as connection:
        connection.execute(FILL_EVENTS, values)
        connection.execute(FILL_ATTEMPTS, values)
        connection.execute("VACUUM ANALYZE events, attempts")
    return store


def explain(store: LogStore, kind: Kind, selection: Selection, position: Position | None = None) -> Plan:
    """The plan that the store's own statement gets when it is prepared with a generic plan, and what running it cost."""
    asked = question(kind, selection, position=position, ascending=False, limit=LIMIT + 1, tenants_known=11)
    text, parameters = asked.sql()
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match.group(1) not in names:
            names.append(match.group(1))
        return f"${names.index(match.group(1)) + 1}"

    numbered = re.sub(r"%\((\w+)\)s", number, text)
    with store.database.connect(autocommit=True) as connection, psycopg.ClientCursor(connection) as cursor:
        cursor.execute(f"PREPARE page AS {numbered}")
        arguments = ", ".join(["%s"] * len(names))
        call = f"EXECUTE page{f'({arguments})' if names else ''}"
        values = [parameters[name] for name in names]
        cursor.execute(call, values)  # the first run of a connection also fills its caches
        row = cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {call}", values).fetchone()
    assert row is not None
    top = row[0][0]
    plan = top["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    text = str(plan)
    return Plan(_indexes(plan), buffers, top["Planning Time"], plan["Actual Rows"], text)


def _indexes(node: dict[str, Any]) -> set[str]:
    """The columns of the indexes that were really scanned, by the names that LIKE gives them on every month."""
    found = set()
    if "Index Name" in node and node.get("Actual Loops", 0):
        found.add(re.sub(r"^(events|attempts)_\d{4}_\d{2}_", "", node["Index Name"]))
    for child in node.get("Plans", ()):
        found |= _indexes(child)
    return found


SCENARIOS: list[tuple[str, Kind, Selection, str]] = [
    ("events, no filter", "event", Selection(tenant_ids=("big",)), "tenant_id_time_id_idx"),
    ("events, topic", "event", Selection(tenant_ids=("big",), topics=("t2",)), "tenant_id_topic_time_id_idx"),
    ("events, topics", "event", Selection(tenant_ids=("big",), topics=("t2", "t4", "t6")), "tenant_id_topic_time_id_idx"),
    ("attempts, no filter", "attempt", Selection(tenant_ids=("big",)), "tenant_id_time_id_idx"),
    ("attempts, event", "attempt", Selection(event_ids=("evt_12",)), "event_id_time_id_idx"),
    ("attempts, destination", "attempt", Selection(tenant_ids=("big",), destination_ids=("d2",)),
     "tenant_id_destination_id_time_id_idx"),
    ("attempts, destinations", "attempt", Selection(tenant_ids=("big",), destination_ids=("d2", "d4")),
     "tenant_id_destination_id_time_id_idx"),
    ("attempts, status", "attempt", Selection(tenant_ids=("big",), status="failed"), "tenant_id_status_time_id_idx"),
    ("attempts, topic", "attempt", Selection(tenant_ids=("big",), topics=("t2",)), "tenant_id_topic_time_id_idx"),
    ("attempts, topics", "attempt", Selection(tenant_ids=("big",), topics=("t2", "t4", "t6")),
     "tenant_id_topic_time_id_idx"),
    ("nothing at all", "attempt", Selection(), "pkey"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "selection", "index"), [s[1:] for s in SCENARIOS], ids=[s[0] for s in SCENARIOS])
def test_a_page_reads_its_index_and_no_more_when_deep_or_over_many_months(
    stores: dict[int, LogStore], kind: Kind, selection: Selection, index: str
) -> None:
    plans = {}
    for months, store in stores.items():
        span = timedelta(days=30.4 * months)
        deep = Position(END - span * 0.8, "")
        plans[months, "top"] = explain(store, kind, selection)
        plans[months, "deep"] = explain(store, kind, selection, deep)
    values = max(1, len(selection.topics) * len(selection.destination_ids or "x"), len(selection.destination_ids))
    # One index entry and one row per record, some inner pages per value and month that a page of 50 may touch.
    bound = (LIMIT + 1) * 3 + values * (LIMIT + 20) + 60
    for name, plan in plans.items():
        assert index in plan.indexes, (name, plan.text)
        assert plan.rows == LIMIT + 1
        assert plan.buffers <= bound, (name, plan.buffers, plan.text)


def test_planning_once_is_enough(stores: dict[int, LogStore]) -> None:
    """A prepared page over 60 months is not planned again: executing it plans in no time to speak of."""
    for kind, selection in (("attempt", Selection(tenant_ids=("big",))), ("event", Selection(tenant_ids=("big",)))):
        few, many = (explain(stores[months], kind, selection).planning_ms for months in (3, 60))
        assert many < 3.0, f"planned again: {many} ms over 60 months, {few} ms over 3"


def test_a_topic_without_a_tenant_is_found_along_the_tenants_we_know(stores: dict[int, LogStore]) -> None:
    for months, store in stores.items():
        plan = explain(store, "attempt", Selection(topics=("nowhere",)))
        assert plan.rows == 0
        assert plan.buffers <= 11 * months * 3 + 50, (months, plan.buffers)
