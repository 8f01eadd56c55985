"""The command line answers people with tables, programs with JSON, and mistakes with one sentence."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from logstore import LogStore
from logstore.commands import build_parser, main, table
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
    code, out, _ = run("get", "attempt", "nothing")
    assert code == 1 and out.startswith("no attempt nothing; `python -m logstore list attempts`")


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


def test_control_characters_in_payloads_are_shown_not_obeyed(store: LogStore, run: Any) -> None:
    data = {"text": "\x9b2J \x7f \u202e \u2028 \U000e0001 ä 😀"}
    store.insert_many([event("e", data=data)])
    shown = "\\u009b2J \\u007f \\u202e \\u2028 \\udb40\\udc01 ä 😀"
    for arguments in (("get", "event", "e"), ("get", "event", "e", "--json"), ("list", "events", "--json")):
        out = run(*arguments)[1]
        assert shown in out and all(line.isprintable() for line in out.split("\n"))
        found = json.loads(out)
        assert (found["data"][0] if "next" in found else found)["data"] == data, "it is the same JSON"


def test_a_user_without_a_name_indexes_a_field(store: LogStore, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)  # as in a container that is started under some number
    store.insert_many([event()])
    for action in ("add", "drop"):
        code, _, err = run("index", action, event().topic, "data.n")
        assert code == 0, err
    with store.database.connection() as connection:
        assert connection.execute("SELECT actor FROM topic_changes").fetchall() == [("unknown",)] * 2


def test_how_many_months_always_stay_has_no_none(run: Any) -> None:
    code, _, err = run("maintain", "policy", "events", "hot", "--min-count", "none")
    assert code == 2 and "min-count is 'none'; write a whole number; 0 lets every month leave" in err
    code, _, err = run("maintain", "policy", "events", "hot", "--max-count", "some")
    assert code == 2 and "write a whole number, or 'none' for no limit" in err


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


def every(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its actions, at every depth."""
    yield parser
    for group in parser._subparsers._group_actions if parser._subparsers else ():
        for inner in group.choices.values():  # type: ignore[union-attr]
            yield from every(inner)


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "python -m logstore list attempts --tenant acme" in capsys.readouterr().out
    for parser in every(build_parser()):
        examples = [line for line in (parser.epilog or "").splitlines() if line.startswith("  ")]
        assert parser.description and examples, f"{parser.prog} has no help or no examples"
        assert all(parser.prog in line or parser._subparsers for line in examples)
        assert max(map(len, parser.format_help().splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("lst",), "did you mean list?"),
        (("list",), "kind (events or attempts) must be given"),
        (("list", "attempts", "--stauts", "failed"), "did you mean --status?"),
        (("loads", "--limit", "-1"), "whole number of at least 1, not '-1'"),
        (("serve", "--port", "x"), "whole number, not 'x'"),
        (("maintain", "plan", "now"), "plan takes no now; see `python -m logstore maintain plan --help`"),
    ],
)
def test_a_wrong_call_is_one_sentence_too(
    arguments: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--json"]) == 2
    said = capsys.readouterr()
    assert word in json.loads(said.out)["message"] and word in said.err
    assert said.err.count("\n") == 1 and "--help`" in said.err


def test_a_reader_changes_nothing(store: LogStore, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.insert_many([event()])
    monkeypatch.setenv("LOGSTORE_ROLE", "reader")
    for arguments in (("export", "events_2026_03"), ("verify",), ("migrate",), ("maintain", "apply", "--yes")):
        code, _, err = run(*arguments)
        assert code == 2 and "LOGSTORE_ROLE=operator" in err
    assert run("partitions")[0] == 0


def test_a_month_that_is_not_over_is_not_exported(store: LogStore, run: Any) -> None:
    now = datetime.now(UTC)
    store.insert_many([event(time=now)])
    code, _, err = run("export", f"events_{now:%Y_%m}")
    assert code == 2 and "not over" in err
    assert {p["state"] for p in json.loads(run("partitions", "--json")[1])} == {"open"}


def test_an_archive_that_is_not_there_is_not_quarantined(
    store: LogStore, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store.insert_many([event()])
    run("export", "events_2026_03")
    monkeypatch.setenv("LOGSTORE_ARCHIVE", str(tmp_path / "elsewhere"))
    code, _, err = run("verify")
    assert code == 2 and "LOGSTORE_ARCHIVE" in err
    found = {f["name"]: f for f in json.loads(run("doctor", "--json")[1])}
    assert not found["archive"]["ok"] and "elsewhere" in found["archive"]["found"]
    monkeypatch.delenv("LOGSTORE_ARCHIVE")
    assert run("verify")[:2] == (0, "every segment is good\n")


def test_doctor_goes_on_where_settings_are_wrong(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value, word in (
        ("LOGSTORE_AHEAD", "soon", "LOGSTORE_AHEAD is 'soon'"),
        ("LOGSTORE_SPARK_MEMORY", "lots", "LOGSTORE_SPARK_MEMORY is 'lots'"),
        ("LOGSTORE_HMOE", "x", "LOGSTORE_HMOE is none of them"),
        ("LOGSTORE_DSN", "rubbish:secret", "PostgreSQL: does not work"),
        ("JAVA_HOME", "/no/such/java", "ok    Java"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            code, out, _ = run("doctor")
            assert word in out and "ok    packages" in out and "secret" not in out
            assert code == 1 or name == "JAVA_HOME"


def test_a_row_goes_on_below_where_a_terminal_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, head = [("a" * 20, "b" * 20, "c" * 20)], ("one", "two", "three")
    assert table(rows, head).count("\n") == 1, "what is piped keeps one line a row"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "45")
    assert table(rows, head).splitlines() == [
        "one                   two", "    three", f"{'a' * 20}  {'b' * 20}", f"    {'c' * 20}",
    ]  # fmt: skip
