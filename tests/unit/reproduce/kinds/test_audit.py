"""Tables 2, 3 and A12 of CiDeR: from the folder of an audit, and from the loaders of the training sets."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.same_process import SameProcess
from support.samples import gldv2, nc_clean, sfm120k

from resight.data.sets.gldv2 import list_removed
from resight.errors import RecipeError
from resight.reproduce.kinds import audit
from resight.reproduce.paper_table import PaperTable, load_table
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun

REPORT = {
    "sets": [
        {"name": "roxford5k", "images": 70, "touched": 38, "classes": 7, "removed": 315},
        {"name": "rparis6k", "images": 70, "touched": 36, "classes": 10, "removed": 1227},
        {"name": "text", "images": None, "touched": None, "classes": 1, "removed": 23},
        {"name": "total", "images": 140, "touched": 74, "classes": 18, "removed": 1565},
    ],
    "removed": [
        {"name": "6190", "images": 98, "evaluation": ["q1"]},
        {"name": "47378", "images": 731, "evaluation": ["q2"]},
    ],
}


def measure(table: PaperTable, folder: Path, *overrides: str) -> dict[tuple[str, str], Cell]:
    run = SameProcess(folder / "results", DataFolders(folder), overrides=overrides)
    return {(row, column): cell for row, column, cell in audit.measure(table, table.rows, run)}


def list_values(cells: dict[tuple[str, str], Cell], row: str) -> list[float | None]:
    return [cell.value if isinstance(cell, Measured) else None for (name, _), cell in cells.items() if name == row]


def test_table_2_is_read_from_an_audit(tmp_path: Path):
    table = load_table("cider/table_2")
    (tmp_path / "audit.json").write_text(json.dumps(REPORT))
    cells = measure(table, tmp_path, f"audit={tmp_path}")
    assert list_values(cells, "ROxf") == [70, 38, pytest.approx(38 / 70), 7, 315]
    assert list_values(cells, "RPar") == [70, 36, pytest.approx(36 / 70), 10, 1227]
    assert list_values(cells, "text") == [None, None, None, 1, 23]
    assert list_values(cells, "total") == [140, 74, pytest.approx(74 / 140), 18, 1565]


def test_an_audit_per_set_is_joined(tmp_path: Path):
    """Both remove class 5, one of them for its name; class 7 goes for its name alone."""
    parts = {
        "roxford5k": ([70, 30, 2, 60], [("3", 50, ["a"]), ("5", 10, ["b"]), ("7", 4, [])]),
        "rparis6k": ([70, 20, 1, 20], [("4", 20, ["c"]), ("5", 10, [])]),
    }
    for name, (counts, removed) in parts.items():
        (tmp_path / name).mkdir()
        row = dict(zip(("images", "touched", "classes", "removed"), counts, strict=True))
        report = {
            "sets": [{"name": "EVAL", **row}, {"name": "total", **row}],
            "removed": [{"name": gid, "images": images, "evaluation": seen} for gid, images, seen in removed],
        }
        (tmp_path / name / "audit.json").write_text(json.dumps(report))
    cells = measure(load_table("cider/table_2"), tmp_path, *(f"audit.{name}={tmp_path / name}" for name in parts))
    assert list_values(cells, "ROxf") == [70, 30, pytest.approx(30 / 70), 2, 60]
    assert list_values(cells, "RPar") == [70, 20, pytest.approx(20 / 70), 1, 20]
    assert list_values(cells, "text") == [None, None, None, 1, 4]
    assert list_values(cells, "total") == [140, 50, pytest.approx(50 / 140), 4, 84]


def test_without_an_audit_the_command_that_makes_one_is_named(tmp_path: Path):
    cells = measure(load_table("cider/table_2"), tmp_path)
    assert all(
        isinstance(cell, NotRun) and "resight audit gldv2:ROOT revisited" in cell.reason for cell in cells.values()
    )
    broken = measure(load_table("cider/table_2"), tmp_path, f"audit={tmp_path}")
    assert all(isinstance(cell, NotRun) and "audit.json cannot be read" in cell.reason for cell in broken.values())


def test_an_audit_without_the_set_says_which_it_has(tmp_path: Path):
    (tmp_path / "audit.json").write_text(json.dumps({"sets": REPORT["sets"][2:], "removed": []}))
    cells = measure(load_table("cider/table_2"), tmp_path, f"audit={tmp_path}")
    cell = cells["ROxf", "with overlap"]
    assert isinstance(cell, NotRun) and "but text, total" in cell.reason


def test_table_3_counts_the_training_sets(tmp_path: Path):
    """Of the samples: 5 of 3 landmarks, 11 of 4 clusters, 4 of 2 landmarks and 3 of 1; a missing set says so."""
    for module in (gldv2, nc_clean, sfm120k):
        folder = tmp_path / module.__name__.rpartition(".")[2]
        folder.mkdir()
        module.write(folder, np.random.default_rng(0))
    table = load_table("cider/table_3")
    cells = measure(table, tmp_path)
    assert {row.name: list_values(cells, row.name) for row in table.rows} == {
        "NC-clean": [5, 3],
        "SfM-120k": [11, 4],
        "GLDv2-clean": [4, 2],
        "RGLDv2-clean": [3, 1],
    }
    (tmp_path / "nc_clean").rename(tmp_path / "elsewhere")
    cell = measure(table, tmp_path)["NC-clean", "images"]
    assert isinstance(cell, NotRun) and "nc_clean" in cell.reason


def test_table_a12_counts_removed_landmarks_in_the_set_or_in_an_audit(tmp_path: Path):
    (tmp_path / "gldv2").mkdir()
    gldv2.write(tmp_path / "gldv2", np.random.default_rng(0))
    (tmp_path / "audit.json").write_text(json.dumps(REPORT))
    table = load_table("cider/table_a12")
    counted, audited = measure(table, tmp_path), measure(table, tmp_path, f"audit={tmp_path}")
    for cells, eiffel, camera in ((counted, 1, 0), (audited, 731, 98)):
        assert list_values(cells, "47378") == [eiffel]
        assert list_values(cells, "6190") == [camera]
        assert list_values(cells, "144472") == [0]


def test_the_published_list_is_the_one_that_the_data_set_applies():
    table = load_table("cider/table_a12")
    printed = {(row.name, row.published[1].value, row.published[0].text) for row in table.rows}
    assert printed == {(landmark.gid, landmark.images, landmark.name) for landmark in list_removed()}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('metric = "touched"', 'metric = "ap"', "has no count"),
        ('counts = "text"', 'county = "text"', "county"),
        ('counts = "text"', 'source = "gldv2"', "not in `data`"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str, problem: str):
    from importlib import resources

    text = (resources.files("resight") / "recipes/papers/cider/table_2.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "table.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(RecipeError, match=problem):
        load_table(tmp_path / "table.toml")
