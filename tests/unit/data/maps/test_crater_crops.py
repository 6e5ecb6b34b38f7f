"""Crops of a catalogue on a map of a small globe: which there are, their attributes, and what they show."""

import tracemalloc
from pathlib import Path

import cv2
import numpy as np
import pytest
from support import planet_maps as maps

from resight.data.maps.crater_catalogue import Columns, CraterTable, read_table
from resight.data.maps.crater_crops import COARSE, OFF_MAP, TOO_LARGE, TOO_SMALL, CraterCrops, CropSettings
from resight.data.maps.crater_view import read_crater_view
from resight.data.maps.map_file import identify, open_map
from resight.errors import ImageError, InputError, ManifestError, RecipeError, StorageError

METRES = maps.RADIUS * 1000


def make(tmp_path: Path, **settings: object) -> CraterCrops:
    path = maps.write_image(tmp_path / "map.png")
    table = read_table(maps.write_catalogue(tmp_path / "craters.csv"))
    cut = CropSettings(**{"views": (2.0, 3.0), "pixels": 48, **settings})
    return CraterCrops(open_map(path, (), METRES), table, cut, tmp_path / "crops", identify(path))


def test_every_crop_has_an_id_a_file_and_its_place_on_the_globe(tmp_path):
    crops = make(tmp_path, map="wac", prefix="wac/")
    refs = {ref.id: ref for ref in crops}
    assert len(crops) == 10
    assert set(refs) == {f"wac/{name}_{view}x" for name in maps.CRATERS for view in (2, 3)}
    assert len({ref.path for ref in refs.values()}) == 10
    ref = refs["wac/edge_3x"]
    assert ref.attributes["map"] == "wac"
    view = read_crater_view(ref.attributes)
    assert view is not None
    assert (view.label, view.lat, view.lon, view.diameter_km, view.view) == ("edge", 20.0, 179.5, 260.0, 3)
    assert view.radius_km == pytest.approx(maps.RADIUS)
    assert ref.path.parent == tmp_path / "crops" / "00000"
    assert not (tmp_path / "crops").exists()  # listing draws nothing


def test_reading_draws_a_crop_once_and_again_if_it_is_damaged(tmp_path):
    crops = make(tmp_path)
    ref = next(ref for ref in crops if ref.id == "pole_2x")
    picture = crops.read(ref)
    assert picture.pixels.shape == (48, 48, 3)
    inside = picture.pixels[..., 0] > 135
    assert inside.sum() == pytest.approx(np.pi / 4 * 24**2, rel=0.08)
    data, stamp = ref.path.read_bytes(), ref.path.stat().st_mtime_ns
    crops.read(ref)
    assert ref.path.stat().st_mtime_ns == stamp
    ref.path.write_bytes(data[:60])
    ref.path.with_name(f"{ref.path.name}.tmp").write_bytes(b"left by a kill")
    assert crops.read(ref).sha256 == picture.sha256
    assert [path.name for path in ref.path.parent.iterdir()] == [ref.path.name]


def test_another_map_size_or_position_is_another_file(tmp_path):
    paths = {next(iter(make(tmp_path, **settings))).path for settings in ({}, {"pixels": 64}, {})}
    assert len(paths) == 2 or len(paths) == 3  # the map is written again each time: its date may change
    crops = make(tmp_path)
    table = CraterTable()
    for row in range(len(crops.craters)):
        table.add(crops.craters[row])
    assert [ref.path for ref in crops] == [
        ref.path
        for ref in CraterCrops(
            open_map(tmp_path / "map.png", (), METRES),
            table,
            crops.settings,
            crops.folder,
            identify(tmp_path / "map.png"),
        )
    ]


def test_what_is_left_out_is_counted_by_reason(tmp_path):
    crops = make(tmp_path, smallest_km=250, largest_km=290, least_pixels=70, views=(2.0, 6.0, 7.0))
    # 240 km is too small and 300 too large; 7 × 260 and 280 km exceed the globe's radius; 2 × 260 km are 68.6 pixels.
    assert crops.left_out == {TOO_SMALL: 1, TOO_LARGE: 1, OFF_MAP: 3, COARSE: 2}
    assert {ref.id for ref in crops} == {"edge_6x", "pole_6x", "south_2x", "south_6x"}


def test_no_crater_on_the_map_is_an_error_that_shows_both_ranges(tmp_path):
    maps.write_image(tmp_path / "map.png")
    table = read_table(maps.write_catalogue(tmp_path / "craters.csv", "north".__eq__))
    image = open_map(tmp_path / "map.png", (0.0, -90.0, 90.0, 90.0), METRES)
    with pytest.raises(InputError, match="0 of 1 craters") as caught:
        CraterCrops(image, table, CropSettings(), tmp_path).check()
    assert "longitudes 0 to 90" in caught.value.expected
    assert "longitudes -100 to -100" in caught.value.actual
    assert "--bounds" in caught.value.fix


def test_ground_without_data_is_an_error_and_counted(tmp_path):
    pixels = maps.paint_cylinder()
    pixels[:, :800] = 0
    cv2.imwrite(str(tmp_path / "map.png"), pixels)
    table = read_table(maps.write_catalogue(tmp_path / "craters.csv", lambda name: name in ("a", "edge")))
    crops = CraterCrops(
        open_map(tmp_path / "map.png", (), METRES, 0), table, CropSettings((3.0,), 48), tmp_path / "crops"
    )
    for ref in crops:
        if ref.id == "edge_3x":  # the west of it, as the map has data up to its eastern edge
            with pytest.raises(ImageError, match="no data for 48%"):
                crops.read(ref)
            assert list(crops.take_empty()) == [str(ref.path)]
        else:
            with pytest.raises(ImageError, match="no data"):
                crops.read(ref)
    assert not list((tmp_path / "crops").rglob("*.png"))


def test_a_folder_that_cannot_be_written_to_is_a_storage_error(tmp_path):
    (tmp_path / "crops").touch()
    crops = make(tmp_path)
    with pytest.raises(StorageError, match="cannot be written") as caught:
        crops.read(next(iter(crops)))
    assert "--crops" in caught.value.fix


@pytest.mark.parametrize(
    "settings",
    [{"views": ()}, {"views": (3.0, 3.0)}, {"views": (0.01,)}, {"pixels": 5000}, {"smallest_km": 5, "largest_km": 4},
     {"most_missing": 2}, {"least_pixels": 0}],
)  # fmt: skip
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(RecipeError):
        CropSettings(**settings)


def test_names_of_any_craters_become_files_and_no_two_the_same(tmp_path):
    lines = [
        "id;lon;lat;diam",
        *(f"{name};10;{row};300" for row, name in enumerate(("A b", "a b", "Ö%", "..", "x" * 500))),
    ]
    (tmp_path / "c.csv").write_text("\n".join(lines))
    path = maps.write_image(tmp_path / "map.png")
    crops = CraterCrops(
        open_map(path, (), METRES), read_table(tmp_path / "c.csv"), CropSettings((3.0,), 16), tmp_path / "crops"
    )
    names = [crops.read(ref).ref.path for ref in crops]
    assert len({str(name).lower() for name in names}) == 5
    assert all(name.parent.parent == tmp_path / "crops" for name in names)


def test_a_table_of_craters_takes_little_memory(tmp_path):
    path, count = tmp_path / "robbins.csv", 20_000
    rng = np.random.default_rng(0)
    lats, lons = np.degrees(np.arcsin(rng.uniform(-1, 1, count))).tolist(), rng.uniform(0, 360, count).tolist()
    with path.open("w") as file:
        file.write("CRATER_ID,LAT_CIRC_IMG,LON_CIRC_IMG,LAT_ELLI_IMG,LON_ELLI_IMG,DIAM_CIRC_IMG\n")
        file.writelines(f"00-1-{row:06d},{lats[row]:.6f},{lons[row]:.6f},0,0,1.5\n" for row in range(count))
    tracemalloc.start()
    table = read_table(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table) == count
    assert table[count - 1].id == f"00-1-{count - 1:06d}"
    # 24 bytes of numbers, 11 of the id, 8 of its end; Craters in a list would take 270 each.
    assert held < 60 * count
    assert peak < 150 * count


def test_columns_with_longitudes_to_the_west_and_other_delimiters(tmp_path):
    (tmp_path / "c.tsv").write_text("who\tLong\tLat\tsize\nx\t100\t5\t20\n")
    table = read_table(tmp_path / "c.tsv", Columns(diameter="size", id="who", is_west=True))
    assert (table[0].id, table[0].lon, table[0].lat, table[0].diameter) == ("x", 260.0, 5.0, 20.0)


def test_bad_lines_are_an_error_or_listed(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("id,lon,lat,diam\na,1,2,3\nb,1,,3\nc,1,95,3\nd,7,8,9\n/,1,2,3\n")
    with pytest.raises(ManifestError, match="line 3") as caught:
        read_table(path)
    assert "--skip-bad" in caught.value.fix
    table = read_table(path, skip_bad=True)
    assert [table[row].id for row in range(len(table))] == ["a", "d"]
    assert table.bad == 3
    assert [line.partition(":")[0] for line in table.bad_lines] == ["line 3", "line 4", "line 6"]
    path.write_text("id,lon,lat,diam\nb,1,,3\n")
    with pytest.raises(ManifestError, match="has no crater"):
        read_table(path, skip_bad=True)


def test_the_same_id_twice_is_an_error_that_names_the_rows(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("id,lon,lat,diam\n" + "".join(f"{name},1,2,3\n" for name in "abcdefb"))
    with pytest.raises(ManifestError, match="same id") as caught:
        read_table(path)
    assert caught.value.actual == "'b': craters 1 and 6, counted from 0"


def test_a_line_without_end_is_refused(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("id,lon,lat,diam\n" + "1" * 300_000)
    with pytest.raises(ManifestError, match="letters"):
        read_table(path)
