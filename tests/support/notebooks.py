"""The notebooks in examples/, and a run of one from its first cell to its last in a folder of its own."""

import os
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
SECONDS = 120  # for one cell


def execute(path: Path, folder: Path) -> None:
    """Fails on an error of a cell, on output to stderr, and on a file that the notebook leaves in `folder`."""
    pytest.importorskip("mvtbdata", reason="needs the extra demo")
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if path.stem == "train_a_head":
        pytest.importorskip("torch", reason="needs the extra torch")
    for file in (path, *EXAMPLES.glob("*.py")):
        shutil.copy(file, folder)
    before = sorted(folder.iterdir())
    notebook = nbformat.read(folder / path.name, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", extra_arguments=["--quiet"])
    client.resources = {"metadata": {"path": str(folder)}}
    kernel = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    client.execute(env={**os.environ, **kernel})
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert sorted(folder.iterdir()) == before
