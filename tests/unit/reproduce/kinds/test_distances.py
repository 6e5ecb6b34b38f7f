from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.same_process import SameProcess
from support.samples import msls as sample

from resight.errors import InputError, RecipeError
from resight.reproduce.kinds import distances
from resight.reproduce.paper_table import Column, PaperRow, PaperTable, load_table
from resight.reproduce.run import Cell, DataFolders, Measured, NotRun, Run

DATA = {"name": "msls", "split": "train", "cities": ["london"]}
TABLE = PaperTable(
    "p/distances",
    "distances",
    "",
    "distances",
    unit="",
    data=("msls",),
    recipe={"data": DATA},
    columns=(Column("P50", settings={"percentile": 50}), Column("P90", settings={"percentile": 90})),
    rows=(PaperRow("1-NN", settings={"neighbour": 1}), PaperRow("20-NN", settings={"neighbour": 20})),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("msls")
    sample.write(folder, np.random.default_rng(0))
    return folder


def run(root: Path, folder: Path, *overrides: str) -> dict[tuple[str, str], Cell]:
    one = SameProcess(folder, DataFolders(root, alone="msls"), overrides=overrides)
    return {(row, column): cell for row, column, cell in distances.measure(TABLE, TABLE.rows, one)}


def test_percentiles_are_interpolated_and_their_intervals_hold_them():
    # 10 … 50 metres: the median is 30, the 90th percentile 40 + 0.6 × 10.
    (median, low, high), (upper, _, _) = distances.find_percentiles(np.arange(10.0, 60.0, 10.0), [50, 90])
    assert (median, upper) == pytest.approx((30, 46))
    assert 10 <= low < 30 < high <= 50
    assert distances.find_percentiles(np.array([7.0]), [50]) == [(7.0, 7.0, 7.0)]


def test_metres_to_the_nearest_images_and_the_list_of_all(root, tmp_path):
    # Latitudes are 50 + number × 1e-4 on both sides, so that every query has an image at 0 metres.
    found = run(root, tmp_path)
    assert found["1-NN", "P50"] == Measured(0.0, 0.0, 0.0)
    assert found["20-NN", "P90"] == NotRun("the database has only 12 images with a position")
    lines = (tmp_path / "images.txt").read_text().splitlines()
    assert len(lines) == 15 and lines[0] == "london/database/londond0" and lines[-1] == "london/query/londonq2"


def test_the_k_th_neighbour_is_measured_along_the_great_circle(root):
    answer = distances.measure_percentiles(DATA, str(root), [1, 3], [50])
    # Query 0 has images at 0, 1 and 2 steps of 1e-4 degrees, queries 1 and 2 at 0, 1 and 1.
    step = np.radians(1e-4) * 6_371_000
    assert answer["figures"]["3"]["50"][0] == pytest.approx(step, rel=2e-3)
    assert answer["figures"]["1"]["50"][0] == pytest.approx(0)


def test_settings_of_the_user_change_the_data_and_others_do_not(root, tmp_path):
    run(root, tmp_path, "data.queries=1", "data.gallery=2", "branches.0.encoder.size=64")
    assert len((tmp_path / "images.txt").read_text().splitlines()) == 3


def test_missing_data_and_wrong_settings_leave_the_reason(tmp_path, root):
    cells = {(row, column): cell for row, column, cell in distances.measure(TABLE, TABLE.rows, Run(tmp_path))}
    assert len(cells) == 4
    assert all(isinstance(cell, NotRun) and "msls was not given" in cell.reason for cell in cells.values())
    cell = run(root, tmp_path, "data.colour=red")["1-NN", "P50"]
    assert isinstance(cell, NotRun) and "colour" in cell.reason


def test_a_data_set_without_positions_is_refused(tmp_path):
    from support.samples import craterbench

    craterbench.write(tmp_path, np.random.default_rng(0))
    with pytest.raises(InputError, match="no positions"):
        distances.measure_percentiles("craterbench", str(tmp_path), [1], [50])


def test_the_shipped_table_fits_and_others_are_refused():
    table = load_table("msls_london/table_14")
    assert distances.requirements(table).weights == ()
    distances.check(TABLE)
    for wrong, problem in (
        (replace(TABLE, rows=(PaperRow("1-NN"),)), "has no neighbour"),
        (replace(TABLE, rows=(PaperRow("1-NN", settings={"neighbour": 1, "k": 2}),)), "'k'"),
        (replace(TABLE, columns=(Column("P0", settings={"percentile": 0}),)), "has no percentile"),
        (replace(TABLE, data=("ilias",)), "another data set"),
    ):
        with pytest.raises(RecipeError, match=problem):
            distances.check(wrong)
