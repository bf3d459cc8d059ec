"""A notebook, executed: what its cells get, and what they are told where a file is in the way."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from diagnoser.demo import unpack
from tests.places import ROOT

CELLS = (
    f"import sys; sys.path.insert(sys.path.index('') + 1, {str(ROOT)!r}); import moe_diag",
    "run = moe_diag.analyze('healthy.sqlite'); run",
    "list(run.walls['id'])",
    "int(run.kernels['work_ns'].sum()) > 0, bool(run.steps['used'].all()), len(run.ranks)",
    "kept = run.save('run.json'); moe_diag.load(kept) == run, run.save('run.html').name",
    "moe_diag.compare(kept, run).result.verdict",
    "print(moe_diag.explain('memory')[:6])",
)


def executed(folder: Path, cells: tuple[str, ...]) -> list[dict[str, object]]:
    """The output of each cell, by kind."""
    unpack(folder / "healthy.sqlite", "healthy")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute(env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    return [dict(cell.outputs[0].get("data", {})) if cell.outputs else {} for cell in notebook.cells]


def test_a_notebook_gets_the_page_frames_and_files(tmp_path: Path) -> None:
    _, page, walls, sums, files, verdict, _ = executed(tmp_path, CELLS)
    assert str(page["text/html"]).startswith("<iframe")
    assert walls["text/plain"] == "['memory', 'communication', 'host_overhead', 'compute']"
    assert sums["text/plain"] == "(True, True, 1)"
    assert files["text/plain"] == "(True, 'run.html')"
    assert verdict["text/plain"] == "'no_change'"
    assert (tmp_path / "run.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("way", ["traces.py", "reports/__init__.py"])
def test_a_file_of_the_notebooks_own_that_is_in_the_way_is_named(tmp_path: Path, way: str) -> None:
    (tmp_path / way).parent.mkdir(exist_ok=True)
    (tmp_path / way).write_text("HERS = 1\n")
    with pytest.raises(CellExecutionError) as caught:
        executed(tmp_path, CELLS[:1])
    assert f"Python finds {tmp_path / way.removesuffix('/__init__.py')}" in str(caught.value)
    assert "start it where no" in str(caught.value)
