"""Crops of maps by a catalogue, on the two small maps of the sample, on which craters are discs of one value."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from support.samples import crater_map as sample

from resight.data import sets
from resight.data.maps.crater_catalogue import read_catalogue
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import Frame, Grid, cut
from resight.errors import ManifestError, MissingExtra, RecipeError, StorageError
from resight.types import Dataset

METRES = sample.RADIUS * 1000
WHOLE = (-180.0, -90.0, 180.0, 90.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "globe"
    folder.mkdir()
    sample.write(folder, np.random.default_rng(0))
    return folder


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("crater_map", **{"crops": root.parent / "crops", "pixels": 96, **settings}).load(root)


def read(path: Path) -> np.ndarray:
    return cv2.imread(str(path), cv2.IMREAD_UNCHANGED)


def check_disc(inside: np.ndarray, views: float, blur: float) -> None:
    """A disc that is round, in the middle, and a share of 1 / views of the crop wide."""
    side = len(inside)
    rows, columns = np.nonzero(inside)
    for values in (rows, columns):
        assert (values.max() + values.min()) / 2 == pytest.approx(side / 2 - 0.5, abs=blur)
        assert values.max() - values.min() + 1 == pytest.approx(side / views, abs=2 * blur)
    assert inside.sum() == pytest.approx(np.pi / 4 * (side / views) ** 2, rel=0.08)


@pytest.mark.parametrize("crater", sample.CRATERS)
def test_craters_are_round_centred_and_of_their_size_at_any_latitude_and_across_the_edge(root, crater):
    dataset = load(root)
    for ref in (*dataset.database, *dataset.queries):
        if ref.attributes["label"] == crater:
            views = float(str(ref.attributes["view"])[:-1])
            pixel = views * sample.CRATERS[crater][2] / 96
            check_disc(
                read(ref.path) > 150 if ref.id.startswith("gallery") else read(ref.path) < 60,
                views,
                blur=30.3 / sample.DENSITY / pixel + 0.5,  # a map pixel, and half one of the crop
            )


def test_ids_attributes_and_positives(root):
    dataset = load(root)
    assert [ref.id for ref in dataset.queries] == ["query/a_2.5x", "query/edge_2.5x", "query/north_2.5x"]
    assert dataset.judgements["query/edge_2.5x"].grades == {"gallery/edge_2x": 1, "gallery/edge_3x": 1}
    assert dataset.database[1].attributes == {
        "label": "a",
        "view": "3x",
        "radius_km": 1737.4,
        "crater_lat": 0.0,
        "crater_lon": 10.0,
        "diameter_km": 300.0,
    }
    assert all(read(ref.path).shape == (96, 96) for ref in (*dataset.database, *dataset.queries))


def test_without_a_second_map_there_are_no_queries(root):
    (root / "query_map.png").unlink()
    dataset = load(root)
    assert (len(dataset.database), dataset.queries, dataset.judgements) == (6, (), {})


def test_a_map_that_begins_at_longitude_0_gives_the_same_crops(root):
    expected = [read(ref.path) for ref in load(root).database]
    image = read(root / "map.png")
    half = image.shape[1] // 2
    cv2.imwrite(str(root / "other.png"), np.hstack([image[:, half:], image[:, :half]]))
    turned = load(root, map="other.png", bounds=(0.0, -90.0, 360.0, 90.0))
    for ref, pixels in zip(turned.database, expected, strict=True):
        assert np.abs(read(ref.path).astype(int) - pixels).max() <= 1


def test_colour_stays_and_jpeg_will_do(root):
    image = cv2.cvtColor(read(root / "map.png"), cv2.COLOR_GRAY2BGR)
    image[..., 0] //= 2  # blue
    (root / "map.png").unlink()
    cv2.imwrite(str(root / "map.jpg"), image, [cv2.IMWRITE_JPEG_QUALITY, 100])
    middle = read(load(root).database[0].path)[48, 48]
    assert middle == pytest.approx([100, 200, 200], abs=6)


def test_craters_off_the_map_too_small_or_of_another_size_are_left_out(root):
    image = read(root / "map.png")
    cv2.imwrite(str(root / "part.png"), image[:, 160 * 4 : 220 * 4])  # longitude -20 to 40
    part = load(root, map="part.png", bounds=(-20.0, -90.0, 40.0, 90.0))
    assert {ref.attributes["label"] for ref in part.database} == {"a"}
    assert {ref.attributes["label"] for ref in load(root, smallest_km=250.0).database} == {"a", "edge"}
    # a pixel is 7.58 km: twice 240 km are 63 of them
    assert {ref.attributes["label"] for ref in load(root, least_pixels=64.0).database} == {"a", "edge"}
    with pytest.raises(RecipeError, match="do not have 1 such") as caught:
        load(root, smallest_km=1000.0)
    assert caught.value.expected == "at most 0 of the 3 in the catalogue"
    with pytest.raises(RecipeError, match="do not have 4 such"):
        load(root, craters=4)


def test_the_seed_chooses_the_craters(root):
    chosen = {seed: tuple(ref.id for ref in load(root, craters=1, seed=seed).queries) for seed in range(6)}
    assert len(set(chosen.values())) > 1
    assert chosen[4] == tuple(ref.id for ref in load(root, craters=1, seed=4).queries)


def test_a_second_load_finds_the_crops_and_makes_a_broken_one_again(root):
    first = load(root)
    stamps = {ref.path: ref.path.stat().st_mtime_ns for ref in (*first.database, *first.queries)}
    broken = first.database[0].path
    data = broken.read_bytes()
    broken.write_bytes(data[:50])
    time.sleep(0.01)
    assert load(root) == first
    assert broken.read_bytes() == data
    assert {path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp} == {broken}
    assert sorted(path.name for path in root.iterdir()) == ["craters.csv", "map.png", "query_map.png"]


def test_a_crop_across_the_pole_is_whole(tmp_path):
    lats = 90 - (np.arange(720) + 0.5) / 4
    cv2.imwrite(str(tmp_path / "map.png"), np.repeat(np.where(lats > 85, 200, 50)[:, None], 1440, 1).astype(np.uint8))
    image = open_map(tmp_path / "map.png", (), METRES)
    side = 4 * np.sin(np.radians(5)) * METRES
    assert image.grid.holds(Frame(89.5, 123.0, side))
    crop = cut(image, Frame(90.0, 0.0, side), 96)
    check_disc(crop > 125, 2, blur=1)
    check_disc(cut(image, Frame(90.0, 77.0, side), 96) > 125, 2, blur=1)


def test_a_map_that_is_finer_than_the_crop_is_averaged(tmp_path):
    checks = (np.indices((1800, 3600)).sum(0) % 2 * 255).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "map.png"), checks)
    crop = cut(open_map(tmp_path / "map.png", (), METRES), Frame(0.0, 0.0, 600_000), 16)  # 12 map pixels each
    assert crop == pytest.approx(np.full((16, 16), 127), abs=30)


def test_rows_and_columns_by_hand():
    grid = Grid(-180, 180, -90, 90, 360, 180, 1000.0)
    zero = np.zeros(1)
    assert np.concatenate(grid.find_pixels(Frame(0.5, 0.5, 1), zero, zero)).tolist() == [89.0, 180.0]
    assert np.concatenate(grid.find_pixels(Frame(0.5, 359.5, 1), zero, zero)).tolist() == [89.0, 179.0]
    east = np.array([1000 * np.sin(np.radians(30))])  # 30 degrees around, seen from above
    rows, columns = grid.find_pixels(Frame(0.0, 0.0, 1), east, zero)
    assert (rows[0], columns[0]) == (pytest.approx(89.5), pytest.approx(209.5))
    rows, columns = grid.find_pixels(Frame(60.0, 0.0, 1), zero, east)
    assert rows[0] == pytest.approx(-0.5, abs=1e-5)  # 30 degrees further north is the pole


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("CRATER_ID,LAT_CIRC_IMG,LON_CIRC_IMG,DIAM_CIRC_IMG", "x,2,3,4"),
        ("CRATER_ID,LATITUDE_CIRCLE_IMAGE,LONGITUDE_CIRCLE_IMAGE,DIAM_CIRCLE_IMAGE", "x,2,3,4"),
        ("Lon,Lat,Diam_km", "3,2,4"),
        (",Unnamed: 0,Diameter (km),Long,Lat,tag", "0,0,4,3,2,standard"),
        ("longitude, latitude ,diameter", "3,2,4"),
    ],
)
def test_columns_of_known_catalogues_are_found(tmp_path, header, row):
    path = tmp_path / "craters.csv"
    path.write_bytes(f"{header}\r{row}\r".encode())
    (crater,) = read_catalogue(path)
    assert (crater.lon, crater.lat, crater.diameter) == (3, 2, 4)
    assert crater.id == ("x" if header.startswith("CRATER") else "0000")


def test_columns_may_be_named(root):
    (root / "other.csv").write_text("x,y,size,who\n10,0,300,b/c\n")
    with pytest.raises(ManifestError, match="no column of lon_circ_img"):
        load(root, catalogue="other.csv")
    columns = {"catalogue": "other.csv", "lon": "X", "lat": "y", "diameter": "size"}
    assert [ref.attributes["label"] for ref in load(root, **columns).queries] == ["0000"]
    with pytest.raises(ManifestError, match=r"line 2 .* no usable id"):
        load(root, **columns, id="who")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column"),
        ("lon,lat\n1,2\n", "no column of diam_circ_img"),
        ("lon,lat,diam\n1,2,3\n\n4,91,5\n", "line 4"),
        ("lon,lat,diam\n1,2,3\n1,2\n", "line 3"),
        ("lon,lat,diam\n1,2,nan\n", "line 2"),
        ("id,lon,lat,diam\na,1,2,3\na,4,5,6\n", "same id"),
        ('lon,lat,diam\n"1,2,3\n', "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_broken_catalogue_is_refused(root, text, message):
    (root / "craters.csv").unlink()
    if text is not None:
        (root / "craters.csv").write_text(text)
    with pytest.raises(ManifestError, match=message):
        load(root)


@pytest.mark.parametrize("content", [b"", b"no image"])
def test_a_broken_map_is_refused(root, content):
    (root / "map.png").write_bytes(content)
    with pytest.raises(ManifestError, match=r"map\.png cannot be read"):
        load(root)


@pytest.mark.parametrize(
    "settings",
    [
        {"bounds": (0.0, 0.0, 10.0)},
        {"bounds": (10.0, 0.0, 0.0, 10.0)},
        {"bounds": (0.0, -91.0, 10.0, 10.0)},
        {"query_bounds": (0.0, 0.0, 361.0, 10.0)},
        {"radius_km": 0.0},
        {"views": ()},
        {"query_views": (11.0,)},
        {"pixels": 4},
        {"smallest_km": 5.0, "largest_km": 4.0},
        {"least_pixels": float("nan")},
    ],
)
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(RecipeError):
        sets.build("crater_map", **settings)


def test_a_place_that_cannot_be_written_to_is_a_storage_error(root, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        load(root, crops=tmp_path / "file")


def rename_to_tiff(root: Path) -> None:
    cv2.imwrite(str(root / "map.tif"), read(root / "map.png"))
    (root / "map.png").unlink()


def test_a_tiff_needs_its_bounds_or_the_extra_geo(root, monkeypatch):
    expected = [read(ref.path) for ref in load(root).database]
    rename_to_tiff(root)
    monkeypatch.setitem(sys.modules, "rasterio", None)  # as if it were not installed
    with pytest.raises(MissingExtra, match="rasterio") as caught:
        load(root)
    assert "[geo]" in caught.value.fix and "bounds" in caught.value.fix
    assert all(
        np.array_equal(read(ref.path), pixels)
        for ref, pixels in zip(load(root, bounds=WHOLE).database, expected, strict=True)
    )


class FakeRaster:
    """As much of a rasterio dataset as is read: one band in memory."""

    name, count = "map.tif", 1

    def __init__(self, values: np.ndarray, bounds: tuple[float, ...], crs: object) -> None:
        self.values, self.bounds, self.crs = values, bounds, crs
        self.height, self.width = values.shape
        self.dtypes = (str(values.dtype),)
        self.transform = SimpleNamespace(b=0.0, d=0.0, e=-1.0)

    def read(self, bands, window=None, out_shape=None, masked=False):
        assert bands == (1,) and masked
        (top, bottom), (left, right) = window or ((0, self.height), (0, self.width))
        assert 0 <= top < bottom <= self.height and 0 <= left < right <= self.width
        values = self.values[top:bottom, left:right]
        if out_shape:
            values = values[:: self.height // out_shape[1], :: self.width // out_shape[2]]
        return np.ma.MaskedArray(values[None], np.isnan(values[None].astype(np.float64)))


DEGREES = SimpleNamespace(is_geographic=True, to_dict=dict)
EQUIRECTANGULAR = {"proj": "eqc", "lat_ts": 0, "lon_0": 180, "R": METRES}


def serve(monkeypatch, raster: FakeRaster) -> None:
    monkeypatch.setitem(sys.modules, "rasterio", SimpleNamespace(open=lambda _: raster))


def test_a_geotiff_lies_where_it_says_in_degrees_or_metres(root, monkeypatch):
    expected = [read(ref.path) for ref in load(root).database]
    image = read(root / "map.png")
    rename_to_tiff(root)
    half = np.pi * METRES
    metres = SimpleNamespace(is_geographic=False, to_dict=lambda: {**EQUIRECTANGULAR, "lon_0": 0})
    for bounds, crs in ((WHOLE, DEGREES), ((-half, -half / 2, half, half / 2), metres)):
        serve(monkeypatch, FakeRaster(image, bounds, crs))
        made = load(root, crops=root.parent / str(crs.is_geographic)).database
        assert all(np.abs(read(ref.path).astype(int) - old).max() <= 1 for ref, old in zip(made, expected, strict=True))


def test_numbers_of_more_than_8_bits_are_stretched_once_for_the_whole_map(root, monkeypatch):
    image = read(root / "map.png").astype(np.float32) * 100 - 3000
    image[:40] = np.nan  # no data in the far north
    rename_to_tiff(root)
    serve(monkeypatch, FakeRaster(image, WHOLE, DEGREES))
    crops = [read(ref.path) for ref in load(root).database]
    assert all(crop[48, 48] == 255 and crop.min() < 60 for crop in crops)


@pytest.mark.parametrize(
    ("crs", "turn"),
    [
        (None, 0.0),
        (SimpleNamespace(is_geographic=False, to_dict=lambda: {"proj": "stere", "R": 1.0}), 0.0),
        (DEGREES, 0.1),
    ],
)
def test_a_geotiff_in_another_projection_or_without_a_place_is_refused(root, monkeypatch, crs, turn):
    raster = FakeRaster(read(root / "map.png"), WHOLE, crs)
    raster.transform.b = turn
    rename_to_tiff(root)
    serve(monkeypatch, raster)
    with pytest.raises(ManifestError, match=r"map\.tif"):
        load(root)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # rasterio's own use of affine
def test_a_real_geotiff(root):
    rasterio = pytest.importorskip("rasterio")
    expected = [read(ref.path) for ref in load(root).database]
    image = read(root / "map.png")
    (root / "map.png").unlink()
    half = np.pi * METRES
    height, width = image.shape
    for crs, (west, south, east, north) in (
        (f"+proj=longlat +R={METRES} +no_defs", WHOLE),
        (f"+proj=eqc +lat_ts=0 +lon_0=0 +R={METRES} +units=m +no_defs", (-half, -half / 2, half, half / 2)),
    ):
        transform = rasterio.transform.from_bounds(west, south, east, north, width, height)
        about = {"driver": "GTiff", "width": width, "height": height, "count": 1, "dtype": "uint8"}
        with rasterio.open(root / "map.tif", "w", **about, crs=crs, transform=transform) as file:
            file.write(image, 1)
        made = load(root, crops=root.parent / crs[6:9]).database
        assert all(np.abs(read(ref.path).astype(int) - old).max() <= 1 for ref, old in zip(made, expected, strict=True))


def test_the_real_maps_show_the_crater_in_the_middle(real_data, tmp_path):
    dataset = sets.build(
        "crater_map",
        map="WAC_GLD100_E000N1800_016P.jpg",
        bounds=(0.0, -90.0, 360.0, 90.0),
        catalogue="HeadCraters.csv",
        craters=30,
        smallest_km=60.0,
        largest_km=120.0,
        crops=tmp_path,
    ).load(real_data / "moon")
    heights = np.stack([read(ref.path) for ref in dataset.database if ref.attributes["view"] == "2x"]).mean(0)
    if heights.ndim == 3:
        heights = heights.mean(-1)
    rows, columns = np.indices((256, 256)) - 127.5
    ring = np.hypot(rows, columns)
    assert heights[ring < 40].mean() < heights[(ring > 60) & (ring < 80)].mean() - 5  # floors lie lower than rims
    low = np.maximum(heights[ring < 64].mean() - heights, 0) * (ring < 64)
    assert np.hypot((low * rows).sum(), (low * columns).sum()) / low.sum() < 5  # the middle of the hollow
