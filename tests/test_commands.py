"""The command line answers people with tables, programs with JSON, and mistakes with one sentence."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from logstore import LogStore
from logstore.commands import build_parser, main
from tests.records_of import START, attempt, event


@pytest.fixture
def run(store: LogStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command on the test's store; gives exit code, standard output, standard error."""
    monkeypatch.setenv("LOGSTORE_DSN", store.database.conninfo)
    monkeypatch.setenv("LOGSTORE_ROLE", "operator")

    def run_one(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_one


def test_list_pages_through_the_cursors_it_prints(store: LogStore, run: Any) -> None:
    store.insert_many([event(f"e{i}", time=START + timedelta(seconds=i)) for i in range(5)])
    code, out, _ = run("list", "events", "--limit", "2", "--json")
    first = json.loads(out)
    assert (code, [e["id"] for e in first["data"]], first["prev"]) == (0, ["e4", "e3"], None)
    second = json.loads(run("list", "events", "--limit", "2", "--next", first["next"], "--json")[1])
    assert [e["id"] for e in second["data"]] == ["e2", "e1"]
    assert "next: --next" in run("list", "events", "--limit", "2")[1]


def test_list_takes_the_whole_selection(store: LogStore, run: Any) -> None:
    store.insert_many(
        attempts=[
            attempt("a", tenant_id="t", destination_id="d", topic="x", status="failed", event_id="e"),
            attempt("b", tenant_id="t", destination_id="d", topic="x", status="success", event_id="e"),
            attempt("c", tenant_id="u", destination_id="d", topic="x", status="failed", event_id="e"),
            attempt("d", tenant_id="t", time=START + timedelta(days=1), destination_id="d", topic="x", status="failed"),
        ]
    )
    chosen = ("--tenant", "t", "--destination", "d", "--topic", "x", "--status", "failed", "--event", "e")
    until = ("--since", "2026-03-01T00:00:00Z", "--until", "2026-03-02T00:00:00Z")
    code, out, _ = run("list", "attempts", *chosen, *until, "--json")
    assert (code, [a["id"] for a in json.loads(out)["data"]]) == (0, ["a"])


def test_list_writes_the_whole_selection_as_a_file(store: LogStore, run: Any) -> None:
    store.insert_many([event(f"e{i}", time=START + timedelta(seconds=i)) for i in range(150)])
    code, out, _ = run("list", "events", "--all", "--format", "jsonl", "--since", "2026-03-01T00:00:10Z")
    assert (code, [json.loads(line)["id"] for line in out.splitlines()]) == (0, [f"e{i}" for i in range(149, 9, -1)])
    for half in (("--all",), ("--format", "csv"), ("--all", "--format", "csv", "--order", "asc")):
        assert run("list", "events", *half)[0] == 2


def test_get_finds_or_says_that_it_did_not(store: LogStore, run: Any) -> None:
    store.insert_many([event()], [attempt()])
    code, out, _ = run("get", "event", "evt_1", "--destination", "des_1", "--json")
    assert (code, json.loads(out)["destination_id"]) == (0, "des_1")
    assert run("get", "attempt", "att_1")[0] == 0
    assert run("get", "attempt", "nothing")[:2] == (1, "no attempt nothing\n")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("list", "events", "--limit", "0"), "1 to 1000"),
        (("list", "events", "--status", "failed"), "list_attempt"),
        (("list", "attempts", "--status", "odd"), "success, failed"),
        (("list", "attempts", "--next", "broken!"), "cursor"),
        (("list", "attempts", "--since", "monday"), "2026-08-01T12:00:00Z"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(run: Any, arguments: tuple[str, ...], word: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert word in err and "Traceback" not in err
    code, out, _ = run(*arguments, "--json")
    assert code == 2 and word in json.loads(out)["message"]


def test_control_characters_in_ids_are_shown_not_obeyed(store: LogStore, run: Any) -> None:
    store.insert_many([event("evil\x1b[2J\nid")])
    assert "evil\\x1b[2J\\nid" in run("list", "events")[1]


def test_partitions_lists_months_with_their_state(store: LogStore, run: Any) -> None:
    store.insert_many([event()])
    found = {p["name"]: p for p in json.loads(run("partitions", "--json")[1])}
    assert found["events_2026_03"]["state"] == "open"
    assert "events_2026_03" in run("partitions")[1]


def test_a_month_goes_to_the_archive_and_comes_back(store: LogStore, run: Any) -> None:
    store.insert_many(attempts=[attempt(f"a{n}", time=START + timedelta(seconds=n)) for n in range(5)])
    assert len(json.loads(run("export", "attempts_2026_03", "--rows", "2", "--flip", "--json")[1])) == 3
    assert json.loads(run("list", "attempts", "--json")[1])["tiers"] == ["cold"] * 5
    assert run("verify")[:2] == (0, "every segment is good\n")
    assert run("reconcile")[:2] == (0, "folder and catalog agree\n")
    assert len(json.loads(run("compact", "attempts_2026_03", "--json")[1])) == 1
    assert run("restore", "attempts_2026_03")[:2] == (0, "attempts_2026_03 is open again\n")
    assert json.loads(run("list", "attempts", "--json")[1])["tiers"] == ["hot"] * 5


def test_doctor_says_ok_or_what_to_do(run: Any) -> None:
    code, out, _ = run("doctor", "--json")
    findings = {f["name"]: f for f in json.loads(out)}
    assert {"Python", "packages", "Java", "Chromium", "disk", "PostgreSQL"} <= findings.keys()
    assert findings["PostgreSQL"]["ok"] and findings["Python"]["ok"]
    assert all(finding["ok"] or finding["advice"] for finding in findings.values())
    assert code == (0 if all(finding["ok"] for finding in findings.values()) else 1)


def test_migrate_names_what_is_applied(run: Any) -> None:
    assert "001_log" in json.loads(run("migrate", "--json")[1])["migrations"]


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "python -m logstore list attempts --tenant acme" in capsys.readouterr().out
    for name, parser in build_parser()._subparsers._group_actions[0].choices.items():  # type: ignore[union-attr]
        assert parser.description, f"{name} has no help"
