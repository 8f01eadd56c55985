"""The badges of the overview: what is the matter with months and loads, and where to look."""

from __future__ import annotations

from collections.abc import Callable

import logstore
from tests.pages.conftest import run


def badges(**params: str) -> dict[str, str]:
    """The badges by the page that they are about, with their links' parameters."""
    found = [link.proto for link in run("Overview", **params).main.get("page_link")]
    return {link.label: link.query_string for link in found if "-badge[" in link.label}


def test_rows_that_could_not_be_loaded_turn_the_badge_of_the_loads(workbench: Callable[[str], None], dsn: str) -> None:
    with logstore.open(dsn, role="operator") as store, store.database.connection() as connection:
        connection.execute("INSERT INTO loads (state, stage, dead, finished) VALUES ('done', 'done', 1, now())")
        connection.execute(
            "INSERT INTO dead_letters (load, file, position, line, raw, reason, message)"
            " VALUES (1, '/data/x.jsonl', 0, 1, '{', 'malformed', 'is wrong')"
        )
    workbench(dsn)
    (months,) = [label for label in badges() if "Partitions: " in label]
    (loads,) = [label for label in badges() if "Loads: " in label]
    assert loads.startswith(":orange-badge[") and "1 rows could not be loaded; the newest is done" in loads
    assert "orange" not in months, "it is about loads"


def test_badges_lead_to_their_pages_in_the_same_zone(workbench: Callable[[str], None], log: str) -> None:
    workbench(log)
    assert set(badges(zone="browser", range="30d").values()) == {"range=30d&zone=browser"}
