"""The notebooks run from top to bottom, carry no outputs, and define nothing that belongs in logstore."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbclient
import nbformat
import pytest

import logstore
from logstore import archive, partitions
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from tests.conftest import new_database
from tests.pages.conftest import small_log

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_the_notebooks_are_numbered_without_a_gap() -> None:
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{number:02d}_" for number in range(1, len(NOTEBOOKS) + 1)]


@each
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    assert all(not cell.outputs and cell.execution_count is None for cell in cells(path))


@each
def test_a_notebook_says_its_question_first(path: Path) -> None:
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown" and first.source.startswith(f"# {path.name[:2]} · ")
    assert "**The question:" in first.source


@each
def test_a_notebook_defines_no_functions_and_no_classes(path: Path) -> None:
    nodes = [node for cell in cells(path) for node in ast.walk(ast.parse(cell.source))]
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    assert not [node for node in nodes if isinstance(node, defined)]


@each
def test_a_notebook_only_reads_your_store_or_makes_one_of_its_own(path: Path) -> None:
    opened = [
        {argument.arg for argument in node.keywords} | {ast.unparse(a.value) for a in node.keywords}
        for cell in cells(path)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logstore.open"
    ]
    assert opened and all("'reader'" in given or "home" in given for given in opened)


@pytest.fixture(scope="module")
def jupyter(server: EmbeddedServer, short_folder: Path) -> Iterator[nbclient.NotebookClient]:
    """One kernel for all notebooks, on one small log whose oldest months are in the archive.

    Starting a kernel and importing the world takes longer than most notebooks; each of them begins with nothing defined.
    """
    now, home = datetime.now(UTC), short_folder / "notebooks"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("LOGSTORE_")]:
            patch.delenv(name)
        patch.setenv("LOGSTORE_HOME", str(home))
        patch.setenv("LOGSTORE_DSN", new_database(server))
        patch.setenv("LOGSTORE_SPARK_MASTER", "local[1]")
        patch.setenv("LOGSTORE_SPARK_MEMORY", "512m")
        # Compiling a plan takes Spark longer than running it on a few hundred rows.
        plain = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{plain} --conf spark.sql.shuffle.partitions=1 pyspark-shell")
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("TMPDIR", str(short_folder))
        with logstore.open(role="operator") as store:
            store.insert_many(*small_log(now))
            store.insert_many(*small_log(now - timedelta(days=70)))
            for partition in partitions.inventory(store.database):
                if partition.upper < now - timedelta(days=35):
                    archive.export(store, partition.name)
                    archive.flip(store, partition.name)
        client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=120, kernel_name="python3")
        yield client
        client.nb = nbformat.v4.new_notebook()
        client.execute(cleanup_kc=True)
        shutil.rmtree(home, ignore_errors=True)


@each
def test_a_notebook_runs_from_top_to_bottom(path: Path, jupyter: nbclient.NotebookClient, short_folder: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    jupyter.nb = notebook
    jupyter.execute(cleanup_kc=False)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("application/vnd.plotly.v1+json" in output.get("data", {}) for output in outputs)
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert not list(short_folder.glob("ls-*")), "a store of its own was left behind"
