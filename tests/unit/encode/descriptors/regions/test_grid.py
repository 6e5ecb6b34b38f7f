import subprocess
import sys
from types import FunctionType

import numpy as np
import pytest
from support.builders import fill_picture, make_picture

from resight import plugins
from resight.encode.descriptors import regions
from resight.encode.descriptors.regions import grid, sliding
from resight.errors import RecipeError


@pytest.mark.parametrize(("level", "count"), [(0, 1), (1, 5), (2, 14), (3, 30)])
def test_the_levels_of_the_grid_are_cumulative(level: int, count: int):
    boxes = grid(120, 60, level)
    assert boxes.shape == (count, 4) and boxes.dtype == np.float32
    assert np.array_equal(boxes, grid(120, 60, 3)[:count])


def test_cells_come_coarse_to_fine_and_row_by_row():
    assert grid(120, 60, 1).tolist() == [
        [0, 0, 120, 60],
        [0, 0, 60, 30],
        [60, 0, 120, 30],
        [0, 30, 60, 60],
        [60, 30, 120, 60],
    ]
    assert grid(120, 60, 2)[5 + 4].tolist() == [40, 20, 80, 40]


def test_the_cells_of_a_level_tile_the_image():
    cells = grid(101, 67, 3)[14:]
    assert np.prod(cells[:, 2:] - cells[:, :2], axis=1).sum() == pytest.approx(101 * 67, rel=1e-5)
    assert cells[:, 2:].max(axis=0).tolist() == [101, 67]


def test_square_cells_cut_a_panorama_into_a_row():
    boxes = grid(2000, 100, 1, "square")
    assert boxes[1:].tolist() == [[0, 0, 500, 100], [500, 0, 1000, 100], [1000, 0, 1500, 100], [1500, 0, 2000, 100]]
    assert grid(100, 2000, 1, "square")[1].tolist() == [0, 0, 100, 500]
    assert len(grid(2000, 100, 3, "square")) == 1 + 4 + 9 + 16
    assert np.array_equal(grid(90, 90, 3, "square"), grid(90, 90, 3))


def test_windows_overlap_by_the_stride():
    boxes = sliding(80, 40, 1, 0.5)
    assert boxes[0].tolist() == [0, 0, 80, 40]
    assert boxes[1:4].tolist() == [[0, 0, 40, 20], [20, 0, 60, 20], [40, 0, 80, 20]]
    assert boxes[4].tolist() == [0, 10, 40, 30]


@pytest.mark.parametrize(("stride", "count"), [(1.0, 30), (0.5, 1 + 9 + 25 + 49), (0.25, 1 + 25 + 81 + 169)])
def test_the_number_of_windows_is_that_of_the_places(stride: float, count: int):
    assert sliding(640, 480, 3, stride).shape == (count, 4)


def test_stride_one_is_the_grid():
    np.testing.assert_allclose(sliding(640, 480, 3, 1.0), grid(640, 480, 3), rtol=1e-6)


@pytest.mark.parametrize("stride", [0.1, 0.3, 0.6, 0.7])
def test_the_last_window_is_flush_with_the_border(stride: float):
    boxes = sliding(100, 50, 2, stride)
    assert boxes[:, 2].max() == 100 and boxes[:, 3].max() == 50
    assert len(np.unique(boxes, axis=0)) == len(boxes)


def test_sizes_that_are_no_levels_or_strides_are_refused():
    for level in (-1, 9):
        with pytest.raises(RecipeError, match="level"):
            grid(10, 10, level)
    for stride in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(RecipeError, match="stride"):
            sliding(10, 10, 3, stride)
    with pytest.raises(RecipeError, match="too many windows"):
        regions.build("sliding", stride=0.001)
    with pytest.raises(RecipeError, match="most"):
        regions.build("sliding", most=0)


def test_the_sources_speak_in_pixels_of_the_original():
    reduced = make_picture(np.zeros((30, 40, 3), np.uint8), size=(80, 60))
    assert regions.build("grid", level=1).propose(reduced).boxes[-1].tolist() == [40, 30, 80, 60]
    windows = regions.build("sliding", level=1, stride=0.5, most=3).propose(reduced)
    assert windows.boxes.tolist() == [[0, 0, 80, 60], [0, 0, 40, 30], [20, 0, 60, 30]]
    assert windows.scores.tolist() == [1, 1, 1]


def test_settings_reach_the_grid_and_its_fingerprint():
    square = regions.build("grid", level=2, cells="square")
    assert square.finest == 3 and square.fingerprint == "grid(level=2, cells=square)"
    assert len(square.propose(fill_picture(1000, 50)).boxes) == 14
    assert regions.build("sliding", stride=0.25).fingerprint != regions.build("sliding").fingerprint


def test_the_names_grid_and_sliding_are_functions_whatever_was_imported_before():
    ask = (
        "import resight.encode.descriptors.regions.grid, resight.encode.descriptors.regions.sliding; "
        "from resight.encode.descriptors import regions; regions.build('grid'); regions.build('sliding'); "
        "from resight.encode.descriptors.regions import grid, sliding; print(len(grid(8, 8)), len(sliding(8, 8)))"
    )
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["30", "84"]
    regions.build("grid")
    assert isinstance(regions.grid, FunctionType) and isinstance(regions.sliding, FunctionType)


def test_the_sources_are_no_descriptors():
    assert "regions" not in plugins.names("resight.encode.descriptors")
    assert {"grid", "sliding"} <= set(plugins.names("resight.encode.descriptors.regions"))
