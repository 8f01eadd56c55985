"""The notebooks run from top to bottom, carry no outputs, and define nothing that belongs in logstore."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path

import nbclient
import nbformat
import pytest

import logstore
from logstore.settings import ROOT
from tests.pages.conftest import small_log

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    assert all(not cell.outputs and cell.execution_count is None for cell in cells(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_defines_no_functions_and_no_classes(path: Path) -> None:
    nodes = [node for cell in cells(path) for node in ast.walk(ast.parse(cell.source))]
    assert not [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, store: logstore.LogStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.insert_many(*small_log(datetime.now(UTC)))
    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    pictures = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs if "data" in o]
    assert any("application/vnd.plotly.v1+json" in output.data for output in pictures)
