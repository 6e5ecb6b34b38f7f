"""A map reduced for a page: its pixels are means, its size is bounded, its bounds stay."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.data.maps.map_image import Grid, PlainMap
from resight.data.maps.overview import SIDE, read_overview, reduce
from resight.errors import InputError


def test_every_pixel_is_the_mean_of_those_it_stands_for():
    pixels = np.array([[0, 10, 20, 30], [40, 50, 60, 70]], np.uint8)
    reduced = reduce(PlainMap(Grid(-180, 180, -90, 90, 4, 2, 1.0), pixels), 2)
    assert reduced.tolist() == [[25, 45]]  # (0 + 10 + 40 + 50) / 4, (20 + 30 + 60 + 70) / 4


def test_a_small_map_stays_as_it_is():
    pixels = np.random.default_rng(0).integers(0, 255, (3, 6, 3), np.uint8)
    assert (reduce(PlainMap(Grid(0, 360, -90, 90, 6, 3, 1.0), pixels), SIDE) == pixels).all()


def test_a_map_is_reduced_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "moon.png"
    Image.new("L", (8, 4), 90).save(path)
    found = read_overview(path, (0, -60, 180, 60))
    assert (found.west, found.south, found.east, found.north) == (0, -60, 180, 60)
    with Image.open(found.file) as image:
        assert (image.format, image.size) == ("WEBP", (8, 4))
    made = found.file.stat().st_mtime_ns
    assert read_overview(path, (0, -60, 180, 60)).file.stat().st_mtime_ns == made
    Image.new("L", (8, 4), 200).save(path)
    os.utime(path, ns=(1, 1))
    assert read_overview(path, (0, -60, 180, 60)).file != found.file
    assert read_overview(path).west == -180


@pytest.mark.parametrize(
    "bounds", [(1, 2, 3), (10, -90, 0, 90), (0, -91, 360, 90), (0, 0, 361, 1), (0, 0, float("nan"), 1)]
)
def test_bounds_that_no_map_has_are_refused(tmp_path: Path, bounds: tuple[float, ...]):
    with pytest.raises(InputError, match="bounds"):
        read_overview(tmp_path / "moon.png", bounds)


def test_a_missing_map_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="no map"):
        read_overview(tmp_path / "moon.png")
