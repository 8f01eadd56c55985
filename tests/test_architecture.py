"""The folder shows the architecture: modules import only what stands before them, and heavy packages stay in their place."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache

import pytest

import logstore
from logstore.settings import ROOT

# From the ground up: a module imports only modules that stand before it. A package stands for all its modules.
ORDER = [
    "errors",
    "faults",
    "settings",
    "statements",
    "display",
    "records",
    "cursor",
    "filters",
    "embedded",
    "postgres",
    "deadline",
    "tables",
    "ddl",
    "partitions",
    "validation",
    "lines",
    "loads",
    "fields",
    "segments",
    "sealing",
    "queries",
    "cold",
    "tiers",
    "explain",
    "metrics",
    "inserts",
    "store",
    "export",
    "archive",
    "retention",
    "maintenance",
    "analysis",
    "pipeline",
    "demo",
    "workbench",
    "commands",
]
HEAVY = {
    "pyspark": {"pipeline"},
    "streamlit": {"workbench"},
    "plotly": {"workbench"},
}

# The packages of the workbench that pages build on; every other one is a page's, and pages do not know each other.
BUILT_ON = {"counts", "lists"}


@cache  # every test asks, and parsing the package takes a while
def modules() -> dict[str, set[str]]:
    """Every file of the package with the full names that it imports at the top or inside functions."""
    found = {}
    for path in sorted((ROOT / "logstore").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "logstore").with_suffix("").parts)
        imported: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        found[name] = imported
    return found


def station(name: str) -> str:
    return name.split(".")[0]


def test_every_module_has_its_place_in_the_order() -> None:
    stations = {station(name) for name in modules()} - {"__init__", "__main__"}
    assert stations <= set(ORDER), f"not in the order: {stations - set(ORDER)}"


@pytest.mark.parametrize("name", sorted(modules()))
def test_a_module_imports_only_what_stands_before_it(name: str) -> None:
    if station(name) in ("__init__", "__main__"):
        return
    for imported in modules()[name]:
        parts = imported.split(".")
        if parts[0] == "logstore" and len(parts) > 1 and parts[1] in ORDER:
            assert ORDER.index(parts[1]) <= ORDER.index(station(name)), f"{name} imports {imported}"


def packages() -> set[str]:
    return {path.parent.name for path in (ROOT / "logstore" / "workbench").glob("*/__init__.py")}


def used(name: str) -> set[str]:
    """What a module of the workbench imports of it: its packages, and the modules beside them."""
    parts = [full.split(".") for full in modules()[name]]
    return {full[2] for full in parts if full[:2] == ["logstore", "workbench"] and len(full) > 2}


@pytest.mark.parametrize("name", sorted(name for name in modules() if name.startswith("workbench.")))
def test_a_page_knows_no_other_page_and_what_pages_share_knows_none(name: str) -> None:
    inside = name.split(".")[1]
    known = used(name) & packages()
    if inside == "counts":
        assert used(name) <= {"counts", "times"}, "what is counted needs nothing of a page"
    elif inside == "lists":
        assert known <= {"counts", "lists"}
    elif inside in packages():
        assert known <= {inside, *BUILT_ON}
    else:
        assert known <= {"counts"}, "it stands beside the packages: what only one page uses belongs into its package"


def test_what_is_counted_knows_no_streamlit() -> None:
    counted = [imported for name, imported in modules().items() if name.startswith("workbench.counts.")]
    assert counted and not any(full.split(".")[0] == "streamlit" for imported in counted for full in imported)


def test_every_page_enters_by_the_page_of_its_package() -> None:
    entered = set()
    for path in (ROOT / "app.py", *(ROOT / "pages").glob("*.py")):
        nodes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
        found = {str(node.module).removeprefix("logstore.workbench.") for node in nodes}
        (entry,) = found - {"frame"}
        assert entry.endswith(".page"), f"{path.name} imports {entry}"
        entered.add(entry.removesuffix(".page"))
    assert entered == packages() - {"counts"}


@pytest.mark.parametrize("package", sorted(HEAVY))
def test_a_heavy_package_is_imported_only_where_it_belongs(package: str) -> None:
    for name, imported in modules().items():
        if any(full.split(".")[0] == package for full in imported):
            assert station(name) in HEAVY[package], f"{name} imports {package}"


def test_importing_logstore_is_light() -> None:
    code = "import sys, logstore; print([m for m in ('pyspark', 'streamlit', 'pandas', 'plotly') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_stated_once_and_sorted() -> None:
    assert logstore.__all__ == sorted(logstore.__all__)
    assert all(hasattr(logstore, name) for name in logstore.__all__)


def test_every_module_says_its_one_idea() -> None:
    for path in (ROOT / "logstore").rglob("*.py"):
        text = path.read_text()
        assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
