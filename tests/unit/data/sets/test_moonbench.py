"""MoonBench, on a small Moon with bowl-shaped craters drawn into its maps."""

import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.samples import moonbench as sample

from resight.data import sets
from resight.data.maps.crater_catalogue import Crater
from resight.data.maps.map_image import Frame
from resight.data.maps.moon_maps import find_maps
from resight.data.maps.terrain import Light
from resight.data.sets.moonbench import find_twins
from resight.errors import ManifestError, RecipeError
from resight.types import Dataset, ImageRef


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps") / "moon"
    folder.mkdir()
    sample.write(folder, np.random.default_rng(0))
    return folder


@pytest.fixture(scope="module")
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crops")


@pytest.fixture
def load(root: Path, crops: Path):
    def load_one(folder: Path = root, **settings: object) -> Dataset:
        return sets.build("moonbench", **{"queries": 2, "pixels": 96, "crops": crops, **settings}).load(folder)

    return load_one


def read(ref: ImageRef) -> np.ndarray:
    return cv2.imread(str(ref.path), cv2.IMREAD_UNCHANGED).astype(np.float64)


def list_labels(refs: tuple[ImageRef, ...]) -> list[str]:
    return [str(ref.attributes["label"]) for ref in refs]


def measure_width(image: np.ndarray) -> int:
    """Columns of the middle row between the darkest and the brightest one, the walls of a bowl lit from the west."""
    row = image[len(image) // 2 - 2 : len(image) // 2 + 2].mean(axis=0)
    return int(row.argmax() - row.argmin())


def test_the_gallery_has_two_views_of_every_crater_once_and_leaves_out_the_small_ones(load):
    dataset = load()
    assert sorted(ref.id for ref in dataset.database) == sorted(
        f"gallery/{name}_{view}x" for name in sample.DISTINCT for view in (2, 3)
    )
    assert all(read(ref).shape == (96, 96) for ref in dataset.database)
    assert "lroc-0003" in list_labels(load(least_pixels=1.5).database)  # 15 km are 2 pixels of the 8-bit heights


def test_tuning_and_test_craters_are_disjoint_and_share_the_gallery(load):
    tuning, test = load(split="tuning", queries=3), load(split="test", queries=3)
    assert not set(list_labels(tuning.queries)) & set(list_labels(test.queries))
    assert len(set(list_labels(tuning.queries))) == len(set(list_labels(test.queries))) == 3
    assert tuning.database == test.database
    smaller = load(queries=3, craters=7)
    assert len(smaller.database) == 14
    assert set(list_labels(smaller.database)) >= {*list_labels(tuning.queries), *list_labels(test.queries)}


def test_fewer_queries_are_the_first_of_more(load):
    assert load(queries=1).queries == load(queries=3).queries[: len(load(queries=1).queries)]
    assert {ref.path for ref in load(queries=1).database} == {ref.path for ref in load(queries=3).database}
    everything = load(queries=0)
    halves = {*list_labels(everything.queries), *list_labels(load(queries=0, split="tuning").queries)}
    assert halves == set(sample.DISTINCT)


def test_a_query_is_judged_by_the_views_of_its_own_crater(load):
    dataset = load(queries=0)
    assert dataset.judgements.keys() == {ref.id for ref in dataset.queries}
    for query in dataset.queries:
        label = query.attributes["label"]
        assert dataset.judgements[query.id].grades == {f"gallery/{label}_2x": 1, f"gallery/{label}_3x": 1}


def test_only_wide_craters_ask_and_only_wider_ones_in_mosaics(load):
    widths = {name: load(queries=0, split=name) for name in ("tuning", "test")}
    refs = [ref for dataset in widths.values() for ref in dataset.queries]
    assert {ref.id for ref in refs if ref.attributes["set"] == "light"} == {
        f"query/{name}_light" for name in sample.DISTINCT
    }
    # 7.5 pixels of a mosaic are 57 km: two craters are narrower
    narrow = {"lroc-0001", "lroc-0002"}
    optical = {ref.attributes["label"] for ref in refs if ref.attributes["set"] == "optical"}
    assert optical == set(sample.DISTINCT) - narrow
    able = [ref for name in widths for ref in load(queries=0, split=name, query_pixels=15.0).queries]
    wide = {"head-0000", "head-0001", "head-0002", "head-0003", "head-0004"}  # lat 30 and -40 included: rows count
    assert {ref.attributes["label"] for ref in able} == wide
    assert {ref.attributes["set"] for ref in load(kinds=("light",)).queries} == {"light"}


@pytest.mark.parametrize("label", ["head-0000", "head-0001", "head-0003", "head-0004", "head-0005"])
def test_views_show_the_crater_at_their_scale_on_either_map(load, label):
    widths = {
        ref.attributes["view"]: measure_width(read(ref)) for ref in load().database if ref.attributes["label"] == label
    }
    assert widths["2x"] == pytest.approx(1.5 * widths["3x"], rel=0.2)
    assert 96 / 2 * 0.5 < widths["2x"] <= 96 / 2 * 1.1  # the steepest walls are near the rim


def test_a_query_without_jitter_under_the_gallerys_light_is_the_gallery_view(load):
    still = {"query_shift": 0.0, "query_smallest": 2.0, "query_largest": 2.0, "query_azimuths": (270.0,)}
    dataset = load(queries=3, kinds=("light",), **still)
    images = {ref.id: ref for ref in dataset.database}
    for query in dataset.queries:
        assert np.array_equal(read(query), read(images[f"gallery/{query.attributes['label']}_2x"]))


def test_the_light_of_a_query_comes_from_another_side(load):
    settings = {"query_shift": 0.0, "query_smallest": 2.0, "query_largest": 2.0, "query_azimuths": (0.0,)}
    for query in load(queries=0, kinds=("light",), **settings).queries:
        image = read(query)
        row, column = image.mean(axis=1), image[:, 36:60].mean(axis=1)
        assert column[24:48].min() < column[48:72].max() - 10  # the south wall shines, the north wall is dark
        assert abs(float(row.mean()) - 255 * 0.5**0.5) < 25


def test_optical_queries_are_stretched_and_show_the_disc_in_their_middle(load):
    settings = {"query_shift": 0.0, "query_smallest": 3.0, "query_largest": 3.0}
    queries = [ref for split in ("tuning", "test") for ref in load(queries=0, split=split, **settings).queries]
    for query in queries:
        if query.attributes["set"] != "optical":
            continue
        image = read(query)
        assert (image.min(), image.max()) == (0, 255)
        assert image[40:56, 40:56].mean() > image[:8].mean() + 80
        assert query.attributes["mosaic"] in sample.MOSAICS


def test_scales_and_seeds(load):
    scales = [float(ref.attributes["scale"]) for ref in load(queries=0).queries]
    assert all(2 <= scale <= 3 for scale in scales) and len(set(scales)) == len(scales)
    chosen = {tuple(list_labels(load(seed=seed, kinds=("light",)).queries)) for seed in range(6)}
    assert len(chosen) > 2


def test_a_second_load_renders_nothing_and_a_missing_crop_is_rendered_alike(load):
    first = load()
    stamps = {ref.path: ref.path.stat().st_mtime_ns for ref in first.database}
    path = first.database[3].path
    data = path.read_bytes()
    path.unlink()
    time.sleep(0.01)
    assert load() == first
    assert path.read_bytes() == data
    changed = {each for each, stamp in stamps.items() if each.stat().st_mtime_ns != stamp}
    assert changed == {path}


def test_other_pixels_have_another_folder(load):
    assert load().queries[0].path.parent != load(pixels=64).queries[0].path.parent
    assert load().queries[0].path.parent != load(altitude=30.0).queries[0].path.parent


def test_twins_are_found_by_centre_and_size():
    craters = [
        Crater("a", 0.0, 0.0, 100.0),
        Crater("inside", 0.0, 0.0, 50.0),  # another size
        Crater("twin", 0.5, 0.0, 90.0),  # 15 km away
        Crater("beside", 1.5, 0.0, 100.0),  # 45 km away
        Crater("edge", 10.0, 179.9, 40.0),
        Crater("edge twin", 10.0, -179.9, 45.0),  # 6 km away
    ]
    assert find_twins(craters) == [False, False, True, False, False, True]


def test_maps_are_shaded_by_their_own_heights(root):
    maps = find_maps(root)
    light = Light(270.0, 45.0, 1.0)
    lon, lat, km = sample.HEAD[0]
    fine, coarse = (maps.shade(Frame(lat, lon, 2000 * km), each, light, 96).astype(float) for each in (False, True))
    assert np.corrcoef(fine.ravel(), coarse.ravel())[0, 1] > 0.8
    assert maps.choose_relief(Frame(lat, lon, 1000 * km)) == maps.terrain.grid
    assert maps.choose_relief(Frame(lat, 21.0, 1000 * km)) == maps.global_grid  # leaves the 16-bit heights
    assert maps.choose_relief(Frame(0.0, 0.0, 2e6)) is None


@pytest.mark.parametrize("name", [sample.GLOBAL, *sample.MOSAICS])
def test_a_missing_map_is_refused_by_name(tmp_path, name):
    folder = tmp_path / "moon"
    folder.mkdir()
    sample.write(folder, np.random.default_rng(0))
    (folder / name).unlink()
    with pytest.raises(ManifestError, match="lacks a map") as caught:
        sets.build("moonbench", queries=2, crops=tmp_path / "crops").load(folder)
    assert name in caught.value.actual


@pytest.mark.parametrize(
    "settings", [{"views": ()}, {"kinds": ()}, {"query_smallest": 3.5}, {"pixels": 0}, {"craters": -1}]
)
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(RecipeError):
        sets.build("moonbench", **settings)


@pytest.mark.parametrize("settings", [{"queries": 50}, {"queries": 3, "craters": 5}, {"craters": 99}])
def test_more_craters_than_there_are_cannot_be_asked_for(load, settings):
    with pytest.raises(RecipeError) as caught:
        load(**settings)
    assert caught.value.expected and caught.value.fix
