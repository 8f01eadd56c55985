"""The README cannot drift: its tree, commands, settings and example are compared with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logstore import LogStore
from logstore.commands import build_parser
from logstore.settings import ROOT, Settings
from tests.records_of import attempt, event

README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    return README.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_tree_names_every_module_of_the_package_and_nothing_else() -> None:
    named = set(re.findall(r"^      (\w+(?:\.py|/))", section("Where things are"), re.MULTILINE))
    there = {p.name for p in (ROOT / "logstore").glob("*.py")}
    there |= {f"{p.name}/" for p in (ROOT / "logstore").iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert named == there


def test_the_tree_names_the_top_of_the_project() -> None:
    named = set(re.findall(r"^    (\w+(?:\.py|/))", section("Where things are"), re.MULTILINE))
    assert named == {"app.py", "pages/", "notebooks/", "logstore/", "sql/", "tests/", "bench/"}
    assert all((ROOT / name).exists() for name in named)


def test_every_command_of_the_readme_exists_and_parses() -> None:
    lines = re.findall(r"^    python -m logstore (.+)$", section("From the command line"), re.MULTILINE)
    assert len(lines) > 10
    choices = set(build_parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr, arg-type]
    for line in lines:
        assert line.split()[0] in choices, line


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^    |`)make (\w+)", README, re.MULTILINE))
    assert {"run", "test"} <= named <= targets


def test_every_setting_is_described_and_every_described_one_is_read(tmp_path: Path) -> None:
    described = set(re.findall(r"^\| `(LOGSTORE_\w+)`", section("Settings"), re.MULTILINE))
    assert described == {f"LOGSTORE_{name.upper()}" for name in Settings.__dataclass_fields__}


def test_the_python_example_runs(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.insert_many(
        [event(topic="order.created", data={"amount": 200}, metadata={"region": "eu"})], [attempt(status="failed")]
    )
    example = re.search(r"```python\n(.*?)```", section("From Python"), re.DOTALL)
    assert example is not None
    monkeypatch.setenv("LOGSTORE_DSN", store.database.conninfo)
    names: dict[str, object] = {}
    exec(example.group(1), names)
    assert len(names["page"]) == len(names["found"]) == 1  # type: ignore[arg-type]


def test_the_tests_that_prove_the_promises_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", README)
    assert named and all((ROOT / name).exists() for name in named)
