"""The notebooks in examples/ run from their first cell to their last, and are committed with outputs fit to read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.notebooks import EXAMPLES, NOTEBOOKS, execute

MOST_BYTES = 400_000
MOST_PICTURE_BYTES = 70_000
HOME = re.compile(r"/(?:home|Users|root|tmp|work|private)/|[A-Z]:\\\\?Users")  # folders of the author's machine


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def list_code(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def test_there_are_seven_notebooks() -> None:
    assert len(NOTEBOOKS) == 7


@pytest.mark.parametrize("path", NOTEBOOKS[:4], ids=lambda path: path.stem)
def test_every_cell_runs_and_writes_nothing_beside_the_notebook(path: Path, tmp_path: Path) -> None:
    execute(path, tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_committed_outputs_are_those_of_one_run_in_order(path: Path) -> None:
    cells = list_code(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert sum("image/jpeg" in output.get("data", {}) for output in outputs) >= 1
    assert all(output["output_type"] != "error" and output.get("name") != "stderr" for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_file_is_small_and_names_no_folder_of_its_author(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    for cell in list_code(path):
        for output in cell["outputs"]:
            data = output.get("data", {})
            assert len(data.get("image/jpeg", "")) * 3 / 4 < MOST_PICTURE_BYTES
            texts = [output.get("text", ""), *(data[kind] for kind in data if kind.startswith("text/"))]
            assert not HOME.search("".join(part for text in texts for part in text))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_has_a_title_and_says_what_to_install(path: Path) -> None:
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    first = "".join(notebook["cells"][0]["source"])
    assert first.startswith("# ")
    assert "Needs: `pip install" in first
    assert all(cell["id"] for cell in notebook["cells"])
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_the_readme_lists_every_notebook() -> None:
    listed = re.findall(r"\]\((\w+\.ipynb)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [path.name for path in NOTEBOOKS]
