"""The README cannot drift: its tree, commands, settings and example are compared with the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from logstore import LogStore, archive
from logstore.commands import build_parser
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT, Settings
from logstore.workbench.navigation import PAGES
from tests.conftest import new_database
from tests.records_of import START, attempt, event

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
    assert named == {"app.py", "pages/", "notebooks/", "logstore/", "sql/", "tests/", "bench/", "docs/"}
    assert all((ROOT / name).exists() for name in named)


def test_every_command_of_the_readme_exists_and_parses() -> None:
    lines = re.findall(
        r"^    python -m logstore (.+?)(?: > \S+)?(?:  +.*)?$", section("From the command line"), re.MULTILINE
    )
    parser = build_parser()
    named = {parser.parse_args(shlex.split(line.replace("FILES…", "a.jsonl"))) and line.split()[0] for line in lines}
    assert named == set(parser._subparsers._group_actions[0].choices)  # type: ignore[union-attr, arg-type]


def test_every_page_and_every_notebook_is_named_and_no_other() -> None:
    assert re.findall(r"^\| \*\*(\w+)\*\* \|", section("The pages"), re.MULTILINE) == list(PAGES)
    assert {path for path, _ in PAGES.values()} == {
        "app.py",
        *(f"pages/{p.name}" for p in (ROOT / "pages").glob("*.py")),
    }
    named = re.findall(r"^\| `(\w+)` \|", section("The notebooks"), re.MULTILINE)
    assert named == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_every_picture_exists_and_is_small() -> None:
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", README)
    assert pictures and all((ROOT / path).stat().st_size < 300_000 for _, path in pictures)
    assert {ROOT / path for _, path in pictures} == set((ROOT / "docs").iterdir())


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^    |`)make (\w+)", README, re.MULTILINE))
    assert {"run", "test"} <= named <= targets


def test_every_setting_is_described_and_every_described_one_is_read(tmp_path: Path) -> None:
    described = set(re.findall(r"^\| `(LOGSTORE_\w+)`", section("Settings"), re.MULTILINE))
    assert described == {f"LOGSTORE_{name.upper()}" for name in Settings.__dataclass_fields__}


def test_the_python_example_runs(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 2
    monkeypatch.setenv("LOGSTORE_DSN", store.database.conninfo)
    monkeypatch.setenv("LOGSTORE_ROLE", "operator")
    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)
    assert len(names["page"]) == len(names["found"]) == len(names["frame"]) == 1
    assert names["again"] == names["event"] and names["older"] is None and names["problems"] == []
    assert names["run"].entries and names["slowest"].columns and len(names["counts"]) == 0
    assert sum(row["count"] for row in names["daily"]) == 0, "the range ends before the attempt"


def test_the_commands_of_the_backup_bring_everything_back(
    store: LogStore, server: EmbeddedServer, tmp_path: Path, open_store: Callable[..., LogStore]
) -> None:
    store.insert_many([event()], [attempt(), attempt("cold", time=START - timedelta(days=40))])
    archive.export(store, "attempts_2026_01")
    archive.flip(store, "attempts_2026_01")
    copy = new_database(server)
    lines = re.findall(r"^    (PG=.+|\$PG/.+)$", section("Back up and upgrade"), re.MULTILINE)
    assert len(lines) == 3
    text = "\n".join(lines).replace(".venv/lib", str(Path(sys.prefix) / "lib"))
    text = text.replace('"$PWD/var/pg"', str(server.data)).replace('"$NEW_HOME/pg"', str(server.data))
    text = text.replace("dump logstore\n", f"dump {conninfo_to_dict(store.database.conninfo)['dbname']}\n")
    text = text.replace("-d logstore ", f"-d {conninfo_to_dict(copy)['dbname']} ")
    subprocess.run(["sh", "-ec", text], cwd=tmp_path, check=True, capture_output=True)
    restored = open_store(copy)
    assert [a.id for a in restored.list_attempt()] == ["att_1", "cold"]
    assert restored.list_attempt().tiers == ("hot", "cold") and archive.verify(restored) == []


def test_the_tests_that_prove_the_promises_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", README)
    assert named and all((ROOT / name).exists() for name in named)
