"""Partitions: health, the months, a plan that is shown before it is applied, and what asks for a name."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import archive, maintenance, partitions
from logstore.maintenance.locks import the_only_one
from logstore.retention import Month, Policy
from logstore.workbench import maintenance_progress
from logstore.workbench.partitions import months
from logstore.workbench.processes import children
from tests.pages.conftest import Show, click, param, rows, run, said
from tests.records_of import attempt

NOW = datetime.now(UTC)


def day(number: int) -> datetime:
    """The first moment of the month so many months ago."""
    count = NOW.year * 12 + NOW.month - 1 - number
    return datetime(count // 12, count % 12 + 1, 1, tzinfo=UTC)


def name(number: int) -> str:
    return partitions.partition_name("attempts", day(number).date())


@pytest.fixture
def old_log(
    workbench: Callable[[str], None], dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[logstore.LogStore]:
    """Six months of attempts, the oldest detached; the pages are an operator's."""
    with logstore.open(dsn, role="operator", home=tmp_path) as store:
        times = {number: day(number) + timedelta(seconds=1) for number in (6, 5, 4, 1, 0)}
        store.insert_many(attempts=[attempt(f"a{n}", time=t, event_time=t) for n, t in times.items()])
        archive.export(store, name(6))
        archive.flip(store, name(6))
        partitions.detach(store.database, name(6))
        monkeypatch.setenv("LOGSTORE_HOME", str(tmp_path))
        workbench(dsn)
        monkeypatch.setenv("LOGSTORE_HOME", str(tmp_path))
        monkeypatch.setenv("LOGSTORE_ROLE", "operator")
        yield store
    for child in children().all():
        child.process.wait(60)
        children().forget(child.number)


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def ended(app: AppTest) -> AppTest:
    """The page after the command that it started has ended."""
    (child,) = children().all(maintenance_progress.KIND)
    child.process.wait(60)
    return app.run()


def plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


def test_months_say_their_state_bounds_sizes_and_until_when_undo_is_possible(old_log: logstore.LogStore) -> None:
    app = run("Partitions")
    listed = {str(row["partition"]): row for row in rows(app, 1)}
    oldest, current = listed[name(6)], listed[name(0)]
    assert (oldest["state"], oldest["tier"], oldest["rows"], oldest["segments"]) == ("◀ detached", "archive", 1, "1")
    assert str(oldest["from"]) == f"{day(6):%Y-%m-%d}"
    assert str(oldest["undo"]) >= f"{NOW + timedelta(days=7):%Y-%m-%d %H:%M}"
    assert oldest["verified"] and oldest["table"] and oldest["archive"]
    assert (current["state"], current["tier"], current["archive"]) == ("● open", "hot", "")
    (chart,) = app.get("plotly_chart")
    assert "detached: served from the archive" in chart.proto.spec
    assert "open: in PostgreSQL, writable" in chart.proto.spec


def test_health_comes_first_with_advice_that_the_page_can_take(old_log: logstore.LogStore) -> None:
    app = run("Partitions")
    warned = [warning.value.replace("\\", "") for warning in app.warning]
    assert any("past retention and still in PostgreSQL" in text and "Apply the plan below" in text for text in warned)
    with old_log.database.connection() as connection:
        connection.execute("UPDATE segments SET state = 'quarantined', note = '<b>bad</b>'")
    app = AppTest.from_file(app._script_path, default_timeout=20).switch_page("pages/5_Partitions.py").run()
    assert "quarantined segments" in app.error[0].value
    assert {row["state"] for row in rows(app, 1) if row["partition"] == name(6)} == {"✘ quarantined"}


def test_the_plan_is_shown_with_its_sql_and_applied_exactly_so(old_log: logstore.LogStore) -> None:
    shown = maintenance.plan(old_log)
    app = run("Partitions")
    assert [(row["action"], row["partition"]) for row in rows(app, 2)] == [(s.action, s.partition) for s in shown]
    assert any("because" not in row and row["reason"] and row["lock"] for row in rows(app, 2))
    sql = next(code.value for code in app.code if "DETACH" in code.value)
    assert all(step.sql in sql and step.lock in sql for step in shown)
    press(app, "Apply this plan")
    app = ended(app)
    assert f"{name(5)}, {name(4)} served from the archive now, undo is possible" in plain(app)
    assert "Nothing to do" in plain(app)
    entries = maintenance.log(old_log)
    assert {entry.plan_hash for entry in entries} == {shown.hash}
    assert {entry.actor for entry in entries} == {"workbench"}
    listed = rows(app)
    assert (listed[0]["result"], listed[0]["step"]) == ("✔ done", f"{len(shown)} of {len(shown)}")


def test_a_plan_that_has_changed_since_it_was_shown_is_refused_with_a_sentence(old_log: logstore.LogStore) -> None:
    app = run("Partitions")
    maintenance.set_policy(old_log, Policy(parent="attempts", tier="hot", max_age=timedelta(days=1), min_count=1))
    press(app, "Apply this plan")
    app = ended(app)
    assert "The plan has changed since it was shown" in plain(app)
    assert not maintenance.log(old_log), "nothing was done"
    press(app, "Close")
    assert "has changed since" not in plain(app)


def test_a_month_that_is_over_is_archived_by_hand_and_then_offers_undo(old_log: logstore.LogStore) -> None:
    labels = {button.label for button in run("Partitions", partition=name(0)).button}
    assert "Archive it now" not in labels, "the current month is not over"
    app = run("Partitions", partition=name(1))
    (offer,) = [expander for expander in app.expander if expander.label.startswith("Archive: ")]
    (statements,) = [code.value for code in offer.code]
    shown = [line for line in statements.splitlines() if line.startswith("-- ") and line.endswith(name(1))]
    steps = enumerate(("close", "export", "verify", "flip", "detach"), 1)
    assert shown == [f"-- {number}: {step} {name(1)}" for number, step in steps], "what the click will do"
    assert [button.label for button in offer.button] == ["Archive it now"]
    app = ended(press(app, "Archive it now"))
    assert f"{name(1)} served from the archive now, undo is possible" in plain(app)
    assert {"Undo: take it back into PostgreSQL", "Verify its segments"} <= {button.label for button in app.button}
    assert months.standing(old_log, now=NOW)[1][-1].condition == "detached"


def test_purge_shows_what_it_does_and_wants_the_name(old_log: logstore.LogStore) -> None:
    app = run("Partitions", partition=name(6))
    assert "purging now gives that up" in plain(app)
    assert any("DROP TABLE" in code.value and f'"{name(6)}"' in code.value for code in app.code)
    box = next(box for box in app.text_input if box.label.startswith("Type "))
    box.set_value(name(5))
    press(app, "Purge it")
    assert "The name does not match, so nothing was done." in plain(app)
    assert not children().all()
    box = next(box for box in app.text_input if box.label.startswith("Type "))
    box.set_value(name(6))
    press(app, "Purge it")
    app = ended(app)
    assert f"The table of {name(6)} is gone" in plain(app)
    assert any(button.label == "Restore it from its segments" for button in app.button)
    assert param(app, "partition") == [name(6)]


def test_a_reader_is_told_what_to_set_and_every_button_is_off(
    old_log: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGSTORE_ROLE", "reader")
    app = run("Partitions", partition=name(6))
    assert plain(app).count("LOGSTORE_ROLE=operator") == 2
    off = {button.label for button in app.button if button.disabled}
    assert off >= {"Apply this plan", "Undo: take it back into PostgreSQL", "Verify its segments", "Purge it"}
    assert "Change a policy" not in [expander.label for expander in app.expander]
    maintenance_progress.start(("undo", name(6)), "maintain", "undo", name(6), "--json")
    assert not children().all(), "not even when a button is pressed that was on before"


def test_a_policy_is_changed_and_nonsense_is_refused(old_log: logstore.LogStore) -> None:
    app = run("Partitions")
    box = next(box for box in app.text_input if box.label == "Days")
    box.set_value("a while")
    press(app, "Change it")
    assert "write a whole number" in plain(app)
    box = next(box for box in app.text_input if box.label == "Days")
    box.set_value("900")
    press(app, "Change it")
    assert "the plan above follows it" in plain(app)
    assert timedelta(days=900) in [policy.max_age for policy in maintenance.policies(old_log)]


def test_how_many_months_always_stay_is_a_number_and_says_so(old_log: logstore.LogStore) -> None:
    app = run("Partitions")
    box = next(box for box in app.text_input if box.label == "Months that always stay")
    assert box.placeholder == "a whole number"
    box.set_value("")
    press(app, "Change it")
    assert "Min-count is ''; write a whole number; 0 lets every month leave." in plain(app)


def test_a_month_of_the_run_log_is_a_way_to_it(old_log: logstore.LogStore) -> None:
    maintenance.archive_now(old_log, name(1), actor="test")
    app = click(run("Partitions"), -1, "partition")
    assert param(app, "partition") == [name(1)]
    assert any(button.label == "Undo: take it back into PostgreSQL" for button in app.button)


def test_what_a_plan_removes_for_good_is_named_first(old_log: logstore.LogStore) -> None:
    maintenance.purge(old_log, name(6), actor="test", override=True)
    maintenance.set_policy(old_log, Policy(parent="attempts", tier="cold", max_age=timedelta(days=1), min_count=0))
    app = run("Partitions")
    assert f"removes rows for good, by the policies of the archive: {name(6)}" in plain(app)
    press(app, "Apply this plan")
    assert "The name does not match" in plain(app)
    assert not children().all()


def test_a_partition_that_does_not_exist_is_a_sentence(show: Show) -> None:
    assert "There is no partition **x**" in plain(show("Partitions", partition="**x**"))


# What the page is made of


def test_every_condition_has_its_own_word_and_its_own_sign_beside_the_colour() -> None:
    words = [look.word for look in months.LOOKS.values()]
    assert len(set(words)) == len(words)
    month = Month(parent="attempts", name=name(3), lower=day(3), upper=day(2), state="open")
    assert months.condition(month, NOW) == "open"
    assert months.condition(month, day(4)) == "ahead"


def test_an_outcome_is_a_sentence_about_months() -> None:
    steps = [{"action": action, "partition": "events_2026_08"} for action in ("close", "export", "flip", "detach")]
    assert maintenance_progress.outcome(steps) == (
        "Done in 4 steps: events_2026_08 served from the archive now, undo is possible."
    )
    assert maintenance_progress.outcome([]) == "There was nothing to do."
    assert (
        maintenance_progress.said(("verify", "x"), [{"what": "f", "problem": "is cut", "done": "quarantined"}])[0]
        is False
    )


def test_what_works_elsewhere_is_shown_and_a_run_that_is_cancelled_says_that_it_goes_on(
    old_log: logstore.LogStore,
) -> None:
    with the_only_one(old_log.database, "cron"):
        app = run("Partitions")
        (bar,) = app.get("progress")
        assert "started elsewhere" in bar.proto.text
        assert "the plan is made anew" in plain(app)
        assert not [button for button in app.button if button.label in ("Apply this plan", "Cancel")]
    maintenance_progress.start(("apply the plan",), "maintain", "apply", "--yes", "--json")
    (child,) = children().all(maintenance_progress.KIND)
    child.process.send_signal(signal.SIGSTOP)  # so that it cannot end before it is cancelled
    app = press(run("Partitions"), "Cancel")
    child.process.send_signal(signal.SIGCONT)
    app = ended(app)
    assert "What is done stays done" in plain(app)
    assert maintenance.plan(old_log).steps, "it was stopped before its end"
