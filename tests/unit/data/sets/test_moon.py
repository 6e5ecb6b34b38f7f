"""The moon set, on a map of 35 × 35 degrees with bowl-shaped craters drawn into it."""

import os
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from resight.data import sets
from resight.data.maps.terrain import MOON_RADIUS, Frame, Light, Terrain, find_terrain
from resight.errors import ManifestError, RecipeError, StorageError
from resight.types import Dataset

DENSITY = 12
CRATERS = ((108.0, 34.0, 60.0), (125.0, 52.0, 40.0), (108.0, 51.0, 30.0), (124.0, 36.0, 80.0))  # lon, lat, km
MAP = f"terrain_{DENSITY}ppd_lon100-135_lat25-60.png"


def measure_distances(lat: float, lon: float) -> np.ndarray:
    """Great-circle distances in kilometres of every pixel of the map from a place."""
    lats = np.radians(60 - (np.arange(35 * DENSITY) + 0.5) / DENSITY)[:, None]
    lons = np.radians(100 + (np.arange(35 * DENSITY) + 0.5) / DENSITY)[None]
    cosines = np.sin(lats) * np.sin(np.radians(lat)) + np.cos(lats) * np.cos(np.radians(lat)) * np.cos(
        lons - np.radians(lon)
    )
    return np.arccos(np.clip(cosines, -1, 1)) * MOON_RADIUS / 1000


def draw_map() -> np.ndarray:
    """Flat ground with paraboloid bowls: all ground within a crater's radius is lower, by a tenth of its diameter."""
    heights = np.full((35 * DENSITY, 35 * DENSITY), 20_000, np.float64)
    for lon, lat, diameter in CRATERS:
        share = measure_distances(lat, lon) / (diameter / 2)
        heights -= np.where(share < 1, (1 - share**2) * diameter * 50, 0)  # steps of 2 metres
    return np.rint(heights).astype(np.uint16)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "moon"
    folder.mkdir()
    cv2.imwrite(str(folder / MAP), draw_map())
    lines = ["Lon,Lat,Diam_km", *(",".join(map(str, crater)) for crater in CRATERS)]
    (folder / "HeadCraters.csv").write_bytes("\r".join([*lines, "110,59.9,30", "101,45,19"]).encode())
    return folder


def load(root: Path, **settings: object) -> Dataset:
    chosen = {"craters": 4, "crops": root.parent / "crops", "pixels": 64, **settings}
    return sets.build("moon", **chosen).load(root)


def read(path: Path) -> np.ndarray:
    return cv2.imread(str(path), cv2.IMREAD_UNCHANGED)


def cut(root: Path, lon: float, lat: float, diameter: float, views: float, azimuth: float) -> np.ndarray:
    terrain = find_terrain(root)
    frame = Frame(lat, lon, views * diameter * 1000)
    return terrain.cut(terrain.read_heights(), frame, Light(azimuth, 45, 1), 96).astype(np.float64)


def test_every_crater_has_two_gallery_crops_and_one_query(root):
    dataset = load(root)
    assert {ref.id for ref in dataset.database} == {f"gallery/000{n}_{view}x" for n in range(4) for view in (2, 3)}
    assert {ref.id for ref in dataset.queries} == {f"query/000{n}" for n in range(4)}
    assert dataset.judgements["query/0002"].grades == {"gallery/0002_2x": 1, "gallery/0002_3x": 1}
    assert all(read(ref.path).shape == (64, 64) for ref in (*dataset.database, *dataset.queries))


def test_attributes_say_what_a_crop_is_and_no_part_takes_them_for_a_place_on_the_earth(root):
    dataset = load(root)
    (image,) = [ref for ref in dataset.database if ref.id == "gallery/0001_3x"]
    expected = {"label": "0001", "view": "3x", "crater_lat": 52.0, "crater_lon": 125.0, "diameter_km": 40.0}
    assert image.attributes == expected
    assert not {"lat", "lon"} & {name for ref in dataset.queries for name in ref.attributes}
    assert sorted(ref.attributes["set"] for ref in dataset.queries) == [
        "azimuth 0",
        "azimuth 315",
        "azimuth 315",
        "azimuth 45",
    ]


@pytest.mark.parametrize("crater", CRATERS)
@pytest.mark.parametrize(("azimuth", "x", "y"), [(270, 1, 0), (90, -1, 0), (0, 0, 1), (180, 0, -1), (45, -1, 1)])
def test_the_wall_of_a_crater_that_faces_the_light_is_bright_and_the_other_dark(root, crater, azimuth, x, y):
    crop = cut(root, *crater, 2, azimuth)
    flat = 255 * 0.5**0.5
    reach = 16 / np.hypot(x, y)  # 48 pixels are a diameter: two thirds of the way from the centre to the rim
    assert crop[round(47.5 + y * reach), round(47.5 + x * reach)] > flat + 20
    assert crop[round(47.5 - y * reach), round(47.5 - x * reach)] < flat - 20
    assert crop[:4, :4] == pytest.approx(flat, abs=1)


@pytest.mark.parametrize("crater", CRATERS)
@pytest.mark.parametrize("views", [2, 3])
def test_a_crater_is_round_centred_and_fills_its_share_of_the_crop(root, crater, views):
    inside = np.zeros((96, 96), bool)
    for azimuth in (0, 90):  # one light leaves a line of the bowl as bright as flat ground
        inside |= np.abs(cut(root, *crater, views, azimuth) - 255 * 0.5**0.5) > 8
    middle = inside[96 // 6 : -96 // 6, 96 // 6 : -96 // 6] if views == 3 else inside  # neighbours may reach in
    rows, columns = np.nonzero(middle)
    half = len(middle) / 2 - 0.5
    pixel = views * crater[2] / 96  # kilometres
    blur = 60.6 / 2 / DENSITY / pixel + 1  # a map pixel, half a degree's share, and one of the crop
    for values in (rows, columns):
        assert (values.max() + values.min()) / 2 == pytest.approx(half, abs=blur / 2)
        assert values.max() - values.min() + 1 == pytest.approx(96 / views, abs=2 * blur)


def test_queries_are_shifted_and_scaled_within_their_settings(root):
    still = load(root, query_shift=0.0, query_smallest=2.0, query_largest=2.0, query_azimuths=(270.0,))
    for query in still.queries:
        (image,) = [r for r in still.database if r.id == f"gallery/{query.attributes['label']}_2x"]
        assert np.array_equal(read(query.path), read(image.path))
    moved = load(root, query_shift=0.2, query_smallest=2.2, query_largest=2.8)
    scales = [float(ref.attributes["scale"]) for ref in moved.queries]
    assert all(2.2 <= scale <= 2.8 for scale in scales) and len(set(scales)) == 4


def test_the_seed_chooses_the_craters(root):
    chosen = {
        seed: tuple(ref.attributes["label"] for ref in load(root, craters=2, seed=seed).queries) for seed in range(8)
    }
    assert len(set(chosen.values())) > 2
    assert chosen[3] == tuple(ref.attributes["label"] for ref in load(root, craters=2, seed=3).queries)


def test_craters_off_the_map_or_of_another_size_are_not_chosen(root):
    with pytest.raises(RecipeError) as caught:
        load(root, craters=5)
    assert caught.value.expected == "at most 4"
    assert {ref.attributes["label"] for ref in load(root, craters=2, largest_km=45.0).queries} == {"0001", "0002"}


def test_a_second_load_finds_the_crops_of_the_first(root):
    first = load(root)
    stamps = {ref.path: ref.path.stat().st_mtime_ns for ref in (*first.database, *first.queries)}
    time.sleep(0.01)
    assert load(root) == first
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert sorted(first.database[0].path.parent.iterdir()) == sorted(stamps)  # nothing half or temporary beside them
    assert sorted(path.name for path in root.iterdir()) == ["HeadCraters.csv", MAP]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut short", "one byte changed"])
def test_a_damaged_crop_is_made_again_and_the_others_stay(root, damage):
    dataset = load(root)
    path, other = dataset.database[3].path, dataset.database[4].path
    data, stamp = path.read_bytes(), other.stat().st_mtime_ns
    changed = bytearray(data)
    changed[len(data) // 2] ^= 255
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "cut short": data[: len(data) // 2]}.get(damage, bytes(changed)))
    load(root)
    assert path.read_bytes() == data
    assert other.stat().st_mtime_ns == stamp


def test_other_settings_and_another_map_have_a_folder_of_their_own(root):
    folders = {load(root).queries[0].path.parent, load(root, altitude=30.0).queries[0].path.parent}
    cv2.imwrite(str(root / MAP), draw_map() + np.uint16(1))
    os.utime(root / MAP, (1, 1))
    folders.add(load(root).queries[0].path.parent)
    assert len(folders) == 3


def test_crops_lie_in_the_users_cache_directory_unless_told_otherwise(root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = load(root, crops=None).queries[0].path
    assert path.parent.parent == tmp_path / "cache" / "resight"
    assert path.parent.name.startswith("moon-")


def test_the_folder_that_holds_several_data_sets_will_do(root):
    crops = root.parent / "crops"
    assert load(root.parent, crops=crops) == load(root, crops=crops)


def test_a_missing_map_is_refused(root):
    (root / MAP).rename(root / "map.png")
    with pytest.raises(ManifestError, match="no map of heights") as caught:
        load(root)
    assert "terrain_32ppd" in caught.value.expected


@pytest.mark.parametrize("content", [None, b"", b"Lon,Lat\r1,2", b"Lon,Lat,Diam_km\r1,2,x", b"\xff\xfe"])
def test_a_catalogue_that_is_missing_or_not_one_is_refused(root, content):
    catalogue = root / "HeadCraters.csv"
    catalogue.unlink()
    if content is not None:
        catalogue.write_bytes(content)
    with pytest.raises(ManifestError, match=r"HeadCraters\.csv"):
        load(root)


@pytest.mark.parametrize("damage", ["cut short", "another size", "8 bits", "not an image"])
def test_a_damaged_map_is_refused_and_leaves_no_crops(root, damage):
    path = root / MAP
    if damage == "another size":
        cv2.imwrite(str(path), draw_map()[:-1])
    elif damage == "8 bits":
        cv2.imwrite(str(path), (draw_map() >> 8).astype(np.uint8))
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if damage == "cut short" else b"heights")
    with pytest.raises(ManifestError, match=MAP):
        load(root)
    assert not (root.parent / "crops").exists()


def test_a_place_that_cannot_be_written_to_is_a_storage_error(root, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        load(root, crops=tmp_path / "file")


@pytest.mark.parametrize(
    "settings",
    [
        {"craters": 0},
        {"smallest_km": 50.0, "largest_km": 40.0},
        {"altitude": 91.0},
        {"views": ()},
        {"query_azimuths": ()},
        {"query_smallest": 3.7},
        {"pixels": 0},
        {"query_shift": float("nan")},
    ],
)
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(RecipeError):
        sets.build("moon", **settings)


def test_the_place_of_a_map_is_in_its_name(root):
    terrain = find_terrain(root)
    assert terrain == Terrain(root / MAP, density=12, west=100, east=135, south=25, north=60)
    assert terrain.shape == (420, 420)


def test_the_real_map_makes_crops_that_differ_with_the_light(real_data, tmp_path):
    dataset = sets.build("moon", craters=20, crops=tmp_path).load(real_data)
    assert (len(dataset.database), len(dataset.queries)) == (40, 20)
    bright = np.stack([read(ref.path) for ref in dataset.database]).astype(np.float64)
    assert bright.shape == (40, 256, 256)
    inner = bright[::2, 96:160]  # the 2x crops: the crater spans columns 64 to 192
    assert inner[:, :, 150:185].mean() > inner[:, :, 71:106].mean() + 10  # lit from the west, the east wall shines
