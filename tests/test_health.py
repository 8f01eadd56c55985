"""Health finds what an operator must see, says what to do, and its exit code is for cron."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from logstore import LogStore, MaintenanceError, maintenance, partitions
from logstore.commands import main
from logstore.maintenance import Finding, Health
from logstore.maintenance.checkup import bytes_a_day, disk_finding, size_text
from logstore.retention import Month, Policy
from tests.test_archive import make_cold
from tests.test_maintenance import NOW, WEEKS, fill, interrupt_detach, month, run, unlimited


def finding(store: LogStore, check: str, **given: Any) -> Finding:
    (found,) = [f for f in maintenance.health(store, **given).findings if f.check == check]
    return found


def healthy(store: LogStore) -> list[Any]:
    """A log with everything in order."""
    given = fill(store, 4, 1, 0)
    unlimited(store)
    run(store)
    return given


def test_an_empty_log_and_a_tended_one_are_ok(store: LogStore, open_store: Any) -> None:
    assert maintenance.health(store).level == "ok"
    healthy(store)
    found = maintenance.health(open_store(store.database.conninfo, "reader"))
    assert found.level == "ok", found
    assert [f.check for f in found.findings] == [
        "runway", "retention", "closed", "detach", "purge", "quarantine", "strangers", "dead letters", "last run", "disk",
    ]  # fmt: skip
    assert all(f.advice == "" for f in found.findings)


def test_the_runway_is_measured_against_the_writing(store: LogStore) -> None:
    healthy(store)
    with store.database.connection() as connection:
        connection.execute("ANALYZE attempts")
    end = partitions.month_bounds(_month_ahead(2))[1]
    assert "until" in finding(store, "runway").what
    for moment, level in (
        (end - timedelta(days=7), "ok"),
        (end - timedelta(days=6, hours=23), "warn"),
        (end, "warn"),  # nobody wrote in the months before it, so nobody is kept waiting
    ):
        assert finding(store, "runway", now=moment).level == level
    partitions.close(store.database, month(0))
    assert finding(store, "runway", now=NOW).level == "act", "the month that is written to takes no writes"


def _month_ahead(count: int) -> Any:
    number = NOW.year * 12 + NOW.month - 1 + count
    return datetime(number // 12, number % 12 + 1, 1).date()


def test_what_stands_still_on_its_way_out_is_found(store: LogStore) -> None:
    healthy(store)
    partitions.close(store.database, month(4))
    found = finding(store, "closed")
    assert (found.level, month(4) in found.what) == ("warn", True) and "restore" in found.advice
    make_cold(store, month(4), depth="cold")
    assert finding(store, "closed").level == "ok"
    interrupt_detach(store, month(4))
    assert finding(store, "detach").level == "warn"
    partitions.detach(store.database, month(4))
    assert finding(store, "purge").level == "ok" and "1 detached" in finding(store, "purge").what
    assert finding(store, "purge", now=datetime.now(UTC) + WEEKS).level == "warn"


def test_rows_that_somebody_detached_by_hand_must_be_acted_on(store: LogStore) -> None:
    healthy(store)
    with store.database.connection() as connection:
        connection.execute(f"ALTER TABLE attempts DETACH PARTITION {month(1)}")
    found = finding(store, "detach")
    assert found.level == "act" and "puts them back" in found.advice
    run(store)
    assert finding(store, "detach").level == "ok"


def test_months_past_retention_and_bad_segments_are_found(store: LogStore) -> None:
    healthy(store)
    maintenance.set_policy(store, Policy(parent="attempts", tier="hot", max_age=timedelta(days=60)))
    assert finding(store, "retention").level == "warn"
    make_cold(store, month(4), depth="detached")
    assert finding(store, "retention").level == "ok"
    with store.database.connection() as connection:
        connection.execute("UPDATE segments SET state = 'quarantined'")
    found = finding(store, "quarantine")
    assert (found.level, maintenance.health(store).level) == ("act", "act") and "verify" in found.advice


def test_open_dead_letters_are_counted(store: LogStore) -> None:
    with store.database.connection() as connection:
        connection.execute("INSERT INTO loads DEFAULT VALUES")
        connection.execute(
            "INSERT INTO dead_letters (load, file, position, raw, reason, message, state)"
            " SELECT (SELECT max(id) FROM loads), 'f', n, 'x', 'r', 'm', CASE WHEN n > 2 THEN 'open' ELSE 'discarded' END"
            " FROM generate_series(1, 5) n"
        )
    found = finding(store, "dead letters")
    assert (found.level, found.what) == ("warn", "3 rows could not be loaded")


def test_a_run_that_failed_or_was_killed_is_found(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 4, 1, 0)
    monkeypatch.setattr(partitions, "close", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(MaintenanceError, match="no space"):
        run(store)
    assert (finding(store, "last run").level, "no space" in finding(store, "last run").what) == ("warn", True)
    monkeypatch.setattr(partitions, "close", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run(store)
    assert "never ended" in finding(store, "last run").what


def test_growth_is_that_of_the_last_month_or_the_current_one() -> None:
    def one(lower: datetime, days: int, size: int, rows: int = 1) -> Month:
        upper = lower + timedelta(days=days)
        return Month(parent="events", name="x", lower=lower, upper=upper, state="open", rows=rows, bytes=size)

    now = datetime(2026, 11, 11, tzinfo=UTC)
    october, november = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    assert bytes_a_day((one(october, 31, 3100), one(november, 30, 500)), now) == 100
    assert bytes_a_day((one(october, 31, 3100), one(november, 30, 5000)), now) == 500
    assert bytes_a_day((one(october, 31, 3100, rows=0),), now) == 0
    assert bytes_a_day((one(datetime(2026, 3, 1, tzinfo=UTC), 31, 3100),), now) == 0


@pytest.mark.parametrize(("days", "level"), [(6.9, "act"), (7, "warn"), (29.9, "warn"), (30, "ok"), (9999, "ok")])
def test_disk_is_judged_by_the_days_that_it_lasts(days: float, level: str) -> None:
    found = disk_finding(Path("/var/log"), int(days * 1000), 1000)
    assert found.level == level and bool(found.advice) == (level != "ok")
    assert disk_finding(Path("/var/log"), 0, 0).level == "ok", "nothing grows"


def test_sizes_are_for_people() -> None:
    assert [size_text(n) for n in (0, 999, 1500, 2.5e9, 3e15)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "2.5 GB",
        "3000.0 TB",
    ]


def test_hostile_text_in_health_stays_text() -> None:
    shown = Health(now=NOW, findings=(Finding(check="x", level="warn", what="<img src=x>", advice="&"),))._repr_html_()
    assert "<img" not in shown and "&lt;img" in shown and "warn" in shown


# The command line


@pytest.fixture
def command(store: LogStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("LOGSTORE_DSN", store.database.conninfo)

    def run_one(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out + said.err

    return run_one


def test_the_exit_code_of_health_is_its_level(store: LogStore, command: Any) -> None:
    healthy(store)
    assert command("health")[0] == 0
    partitions.close(store.database, month(4))
    code, said = command("health")
    assert code == 1 and "maintain apply" in said
    make_cold(store, month(4), depth="cold")
    with store.database.connection() as connection:
        connection.execute("UPDATE segments SET state = 'quarantined'")
    code, said = command("health", "--json")
    assert (code, json.loads(said.splitlines()[-1])["level"]) == (2, "act")


def test_maintenance_from_the_command_line(store: LogStore, command: Any) -> None:
    given = fill(store, 4, 1, 0)
    code, said = command("maintain", "plan", "--sql")
    assert code == 0 and f'DETACH PARTITION "{month(4)}" CONCURRENTLY' in said and "-- lock: SHARE" in said
    plan = json.loads(command("maintain", "plan", "--json")[1])
    assert command("maintain", "apply")[0] == 2, "nobody is there to be asked"
    assert command("maintain", "apply", "--yes", "--hash", "0000")[0] == 2
    code, said = command("maintain", "apply", "--yes", "--hash", plan["hash"][:12])
    assert code == 0 and f"detach {month(4)}: " in said and f"{len(plan['steps'])} steps done" in said
    assert command("maintain", "purge", month(4))[0] == 2
    assert "is in PostgreSQL again" in command("maintain", "undo", month(4))[1]
    done = json.loads(command("maintain", "apply", "--yes", "--json")[1].splitlines()[-1])
    assert [step["action"] for step in done["steps"]][-1] == "detach"
    assert command("maintain", "purge", month(4), "--override", "--actor", "ann")[0] == 0
    assert maintenance.log(store)[0].actor == "ann"
    assert f"the archive serves {month(1)}" in command("maintain", "archive", month(1))[1]
    assert command("verify", month(1))[1].endswith("every segment is good\n")
    assert "undo" in command("maintain", "log")[1] and "nothing to do" in command("maintain", "plan")[1]
    assert list(store.list_attempt(order="asc")) == given


def test_policies_are_changed_by_name_and_mistakes_are_refused(store: LogStore, command: Any) -> None:
    assert command("maintain", "policy")[1].count("60 days") == 2
    given = ("maintain", "policy", "attempts", "hot")
    command(*given, "--max-age", "none", "--max-bytes", "20GB", "--max-count", "12", "--min-count", "3")
    expected = Policy(parent="attempts", tier="hot", max_bytes=20 * 10**9, max_count=12, min_count=3)
    assert expected in maintenance.policies(store)
    for mistake in (("--max-age", "old"), ("--max-age", "3GB"), ("--min-count", "none"), ("--max-count", "-1")):
        assert command(*given, *mistake)[0] == 2
    assert command("maintain", "policy", "--max-age", "3")[0] == 2
    assert expected in maintenance.policies(store)
    assert json.loads(command(*given, "--json")[1])[0]["max_bytes"] == 20 * 10**9
