"""Maps of a globe with discs for craters, in every format and convention: the same crops come out of all of them."""

import cv2
import numpy as np
import pytest
from support import planet_maps as maps

from resight.data.maps import raster_file
from resight.data.maps.map_file import open_map
from resight.data.maps.map_image import Frame, Grid, MapImage, PlainMap, cut, draw
from resight.errors import ManifestError

METRES = maps.RADIUS * 1000
SIDE = 64
BYTES = "SAMPLE_TYPE = UNSIGNED_INTEGER\r\nSAMPLE_BITS = 8"
HALF = 360 * maps.DENSITY // 2
needs_real_rasterio = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # its own use of affine


def check_crater(image: MapImage, name: str) -> None:
    """The crop shows what lies there on the globe, but for the disc's edge and the map's resolution."""
    lon, lat, diameter = maps.CRATERS[name]
    frame = Frame(lat, lon, 2 * diameter * 1000)
    assert image.grid.holds(frame)
    steps = ((np.arange(SIDE) + 0.5) / SIDE - 0.5) * frame.side
    lats, turned = frame.find_positions(*np.meshgrid(steps, -steps), METRES)
    expected = maps.paint(lats, lon + turned) > 135
    crop = draw(image, frame, SIDE)
    middle = (float(crop.pixels.min()) + float(crop.pixels.max())) / 2
    assert np.ptp(crop.pixels) > 100
    assert crop.missing == 0
    # A shift by one map pixel (7.58 km of 520) would change 1.9 % of the crop.
    assert np.mean((crop.pixels > middle) != expected) < 0.012, name


def check_all(image: MapImage, names: tuple[str, ...] = tuple(maps.CRATERS)) -> None:
    for name in names:
        check_crater(image, name)


def test_a_plain_image(tmp_path):
    check_all(open_map(maps.write_image(tmp_path / "map.png"), (), METRES))


def test_a_map_may_lie_across_the_date_line(tmp_path):
    cv2.imwrite(str(tmp_path / "map.png"), maps.paint_cylinder(150, 210, -10, 50))
    image = open_map(tmp_path / "map.png", (150.0, -10.0, -150.0, 50.0), METRES)
    check_crater(image, "edge")
    lon, lat, diameter = maps.CRATERS["a"]
    assert not image.grid.holds(Frame(lat, lon, diameter * 2000))


@pytest.mark.parametrize(
    ("dtype", "kind", "turned", "keywords"),
    [
        ("u1", BYTES, False, {}),
        ("u1", BYTES, False, {"MAXIMUM_LATITUDE": None}),  # by the offsets alone
        ("<u2", "SAMPLE_TYPE = LSB_UNSIGNED_INTEGER\r\nSAMPLE_BITS = 16", True, {"CENTER_LONGITUDE": 180}),
        # Offsets counted from 1, as MOLA has them: the bounds are right.
        (">i2", "SAMPLE_TYPE = MSB_INTEGER\r\nSAMPLE_BITS = 16", False, {"LINE_PROJECTION_OFFSET": 360.5}),
        ("<f4", "SAMPLE_TYPE = PC_REAL\r\nSAMPLE_BITS = 32", False, {"MAP_RESOLUTION": None, "MAP_SCALE": 7.580836}),
        (">f8", "SAMPLE_TYPE = IEEE_REAL\r\nSAMPLE_BITS = 64", False, {"MAP_SCALE": "7580.836 <METERS/PIXEL>"}),
    ],
)
def test_pds3_in_every_type_of_number(tmp_path, dtype, kind, turned, keywords):
    pixels = maps.paint_cylinder().astype(dtype)
    if turned:
        pixels = np.roll(pixels, HALF, axis=1)
        keywords = {**keywords, "WESTERNMOST_LONGITUDE": 0, "EASTERNMOST_LONGITUDE": 360}
    path = maps.write_pds3(tmp_path / "map.lbl", pixels, kind, maps.project_pds3(**keywords))
    check_all(open_map(path, (), None))
    check_crater(open_map(tmp_path / "map.img", (), None), "edge")  # the raster's name will do


def test_pds3_with_longitudes_that_grow_to_the_west(tmp_path):
    pixels = np.roll(maps.paint_cylinder(), HALF, axis=1)  # east is to the right of every map: 360 to 0 west
    about = maps.project_pds3(
        POSITIVE_LONGITUDE_DIRECTION="WEST", CENTER_LONGITUDE=180, WESTERNMOST_LONGITUDE=360, EASTERNMOST_LONGITUDE=0
    )
    check_all(open_map(maps.write_pds3(tmp_path / "map.lbl", pixels, BYTES, about), (), None))


@pytest.mark.parametrize("line", [359.5, 359.5 - 30 * maps.DENSITY])
def test_pds3_with_a_standard_parallel(tmp_path, line):
    """Rows count from the equator or from the projection's centre: the bounds decide."""
    across = maps.DENSITY * np.cos(np.radians(30))
    pixels = maps.paint_cylinder(-90, 90, across=across)
    about = maps.project_pds3(
        "EQUIRECTANGULAR", CENTER_LATITUDE=30, WESTERNMOST_LONGITUDE=-90, EASTERNMOST_LONGITUDE=90,
        LINE_PROJECTION_OFFSET=line, SAMPLE_PROJECTION_OFFSET=pixels.shape[1] / 2 - 0.5,
    )  # fmt: skip
    image = open_map(maps.write_pds3(tmp_path / "map.lbl", pixels, BYTES, about), (), None)
    check_crater(image, "a")
    lon, lat, diameter = maps.CRATERS["edge"]
    assert not image.grid.holds(Frame(lat, lon, diameter * 2000))


@pytest.mark.parametrize(
    ("is_north", "meridian", "name"), [(True, 0.0, "pole"), (True, 40.0, "north"), (False, 0.0, "south")]
)
def test_pds3_around_a_pole(tmp_path, is_north, meridian, name):
    about = maps.project_pds3(
        "POLAR STEREOGRAPHIC", CENTER_LATITUDE=90 if is_north else -90, CENTER_LONGITUDE=meridian,
        MAP_SCALE="7.6 <KM/PIXEL>", LINE_PROJECTION_OFFSET=199.5, SAMPLE_PROJECTION_OFFSET=199.5,
    )  # fmt: skip
    image = open_map(maps.write_pds3(tmp_path / "map.lbl", maps.paint_pole(is_north, meridian), BYTES, about), (), None)
    check_crater(image, name)
    lon, lat, diameter = maps.CRATERS["a"]
    assert not image.grid.holds(Frame(lat, lon, diameter * 2000))


def test_pds3_with_its_label_inside_prefixes_and_missing_values(tmp_path):
    pixels = maps.paint_cylinder().astype("<f4")
    pixels[:, 900:] = np.frombuffer(bytes.fromhex("fbff7fff"), "<f4")[0]  # east of 45 degrees
    pixels[:, 899] = np.nan
    image = "SAMPLE_TYPE = PC_REAL\r\nSAMPLE_BITS = 32\r\nLINE_PREFIX_BYTES = 8\r\nCORE_NULL = 16#FF7FFFFB#"
    label = maps.label_pds3(pixels, image, maps.project_pds3(), "3", "RECORD_BYTES = 2048").encode().ljust(4096)
    rows = np.pad(np.ascontiguousarray(pixels).view(np.uint8), ((0, 0), (8, 0)))
    (tmp_path / "map.img").write_bytes(label + rows.tobytes())
    opened = open_map(tmp_path / "map.img", (), None)
    check_crater(opened, "a")
    side = 2 * np.sin(np.radians(10)) * METRES  # 35 to 55 degrees, one pixel of which is not a number
    assert draw(opened, Frame(0, 45, side), SIDE).missing == pytest.approx(0.5, abs=0.02)
    assert draw(opened, Frame(0, 120, side), SIDE).missing == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("^IMAGE", "^TABLE"), "without an image"),
        (("SAMPLE_BITS = 8", "SAMPLE_BITS = 12"), "UNSIGNED_INTEGER of 12 bits"),
        (("LINES = 720", "LINES = 0"), "size"),
        (("LINES = 720", "LINES = 1e30"), "LINES is 1e30"),
        (("LINES = 720", "LINES = nan"), "LINES is nan"),
        (("MAP.IMG", "../MAP.IMG"), "leads out of its folder"),
        (("MAP.IMG", "/etc/passwd"), "absolute"),
        (("MAP.IMG", "OTHER.DAT"), "no raster"),
        (("SIMPLE CYLINDRICAL", "SINUSOIDAL"), "projection is SINUSOIDAL"),
        (("MAP_PROJECTION_ROTATION = 0.0", "MAP_PROJECTION_ROTATION = 90.0"), "turned by 90"),
        (("SAMPLE_PROJECTION_OFFSET = 719.5", "SAMPLE_PROJECTION_OFFSET = 0"), "contradicts itself"),
        (("SAMPLE_BITS = 8", "SAMPLE_BITS = 8.5"), "SAMPLE_BITS is 8.5"),
        (("LINES = 720", "LINES = -720"), "LINES is -720"),
        (("CENTER_LONGITUDE", "CENTRE"), "lacks offsets, centre"),
        (("PDS_VERSION_ID = PDS3", "ENCODING_TYPE = JPEG2000"), "compressed"),
        (("\r\nEND\r\n", "\r\n"), "no PDS3 label"),
    ],
)
def test_pds3_that_cannot_be_read_is_refused_with_a_fix(tmp_path, change, problem):
    path = maps.write_pds3(tmp_path / "map.lbl", maps.paint_cylinder(), BYTES, maps.project_pds3())
    text = path.read_bytes().decode()
    assert change[0] in text
    path.write_bytes(text.replace(*change).encode())
    with pytest.raises(ManifestError, match=problem) as caught:
        open_map(path, (), None)
    assert caught.value.fix


def test_a_raster_that_is_cut_short_is_refused_when_it_is_opened_and_when_it_is_read(tmp_path):
    path = maps.write_pds3(tmp_path / "map.lbl", maps.paint_cylinder(), BYTES, maps.project_pds3())
    image = open_map(path, (), None)
    data = (tmp_path / "map.img").read_bytes()
    (tmp_path / "map.img").write_bytes(data[:500_000])
    with pytest.raises(ManifestError, match="cut short"):
        open_map(path, (), None)
    check_crater(image, "north")
    with pytest.raises(ManifestError, match="cut short"):
        check_crater(image, "a")


@pytest.mark.parametrize(
    ("dtype", "kind", "direction", "cart"),
    [
        ("u1", "UnsignedByte", "Positive East", maps.BOUNDS4.format(west=-180, east=180)),
        ("<f4", "IEEE754LSBSingle", "Positive West", maps.BOUNDS4.format(west=180, east=-180)),
        (
            ">i2",
            "SignedMSB2",
            "Positive East",
            maps.PROJECTION4.format(
                name="Equirectangular",
                lon=0,
                lat=0,
                more="<cart:standard_parallel_1>0</cart:standard_parallel_1>",
                scale=np.pi * METRES / 720,
                left=-np.pi * METRES,
                top=np.pi * METRES / 2,
            ),
        ),
    ],
)
def test_pds4_by_bounds_and_by_projection(tmp_path, dtype, kind, direction, cart):
    pixels = maps.paint_cylinder().astype(dtype)
    path = maps.write_pds4(tmp_path / "map.xml", pixels, cart, kind, direction=direction)
    check_all(open_map(path, (), None))
    check_crater(open_map(tmp_path / "map.dat", (), None), "a")


@pytest.mark.parametrize(("is_north", "lat", "name"), [(True, 90, "pole"), (False, -90, "south")])
def test_pds4_around_a_pole(tmp_path, is_north, lat, name):
    cart = maps.PROJECTION4.format(
        name="Polar Stereographic", lon=20, lat=lat, more="", scale=7600, left=-1_520_000, top=1_520_000
    )
    path = maps.write_pds4(tmp_path / "map.xml", maps.paint_pole(is_north, 20.0), cart)
    check_crater(open_map(path, (), None), name)


@pytest.mark.parametrize("written", ["8.0", '"8"', "8 <BITS>", "+8"])
def test_whole_numbers_of_a_label_as_people_write_them(tmp_path, written):
    path = maps.write_pds3(tmp_path / "map.lbl", maps.paint_cylinder(), BYTES, maps.project_pds3())
    text = path.read_bytes().decode().replace("SAMPLE_BITS = 8", f'SAMPLE_BITS = {written}\r\nBANDS = "N/A"')
    path.write_bytes(text.encode())
    check_crater(open_map(path, (), None), "a")


def test_pds4_with_missing_values(tmp_path):
    pixels = maps.paint_cylinder()
    pixels[:360] = 0
    special = "<Special_Constants><missing_constant>0</missing_constant></Special_Constants>"
    path = maps.write_pds4(tmp_path / "map.xml", pixels, maps.BOUNDS4.format(west=-180, east=180), special=special)
    assert draw(open_map(path, (), None), Frame(0, 60, 300_000), SIDE).missing == pytest.approx(0.5, abs=0.02)


BOMB = '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n'


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('encoding="UTF-8"?>', f'encoding="UTF-8"?>{BOMB}'), "document type or an entity"),
        (("map.dat", "../map.dat"), "leads out of its folder"),
        (("map.dat", "other.dat"), "no raster"),
        (("UnsignedByte", "ComplexMSB16"), "ComplexMSB16"),
        (("<elements>720<", "<elements>72000000<"), "cut short"),
        (("<elements>720<", "<elements>-1<"), "elements is -1"),
        (("Array_2D_Image", "Table_Binary"), "without an image"),
        (("Bounding_Coordinates", "Other"), "neither a projection"),
        (("</Product_Observational>", ""), "cannot be read"),
        (("<cart:Cartography>", "<x>" * 100 + "</x>" * 100 + "<cart:Cartography>"), "levels"),
    ],
)
def test_pds4_that_cannot_be_read_is_refused_with_a_fix(tmp_path, change, problem):
    cart = maps.BOUNDS4.format(west=-180, east=180)
    path = maps.write_pds4(tmp_path / "map.xml", maps.paint_cylinder(), cart)
    text = path.read_bytes().decode()
    assert change[0] in text
    path.write_bytes(text.replace(*change).encode())
    with pytest.raises(ManifestError, match=problem) as caught:
        open_map(path, (), None)
    assert caught.value.fix


def test_given_bounds_replace_those_of_a_label(tmp_path):
    about = maps.project_pds3("SINUSOIDAL")
    path = maps.write_pds3(tmp_path / "map.lbl", maps.paint_cylinder(), BYTES, about)
    check_all(open_map(path, (-180.0, -90.0, 180.0, 90.0), None))


def test_a_map_of_another_globe_or_of_none_is_refused(tmp_path):
    path = maps.write_pds3(tmp_path / "map.lbl", maps.paint_cylinder(), BYTES, maps.project_pds3())
    with pytest.raises(ManifestError, match="of another globe"):
        open_map(path, (), 3_389_500)
    with pytest.raises(ManifestError, match="which globe") as caught:
        open_map(maps.write_image(tmp_path / "plain.png"), (), None)
    assert "--body" in caught.value.fix


def test_a_raster_is_never_read_whole(tmp_path, monkeypatch):
    """A window of a map of 200 million pixels reads the bytes of its rows, and a large crop every few pixels."""
    height, width = 10_000, 20_000
    with (tmp_path / "map.img").open("wb") as file:
        file.truncate(height * width)
    label = maps.label_pds3(
        np.empty((height, width), "u1"), BYTES, maps.project_pds3(MAP_RESOLUTION=55.5555555), '"MAP.IMG"'
    )
    label = label.replace("359.5", "4999.5").replace("719.5", "9999.5")
    (tmp_path / "map.lbl").write_text(label)
    image = open_map(tmp_path / "map.lbl", (), None)
    read: list[int] = []
    original = raster_file.RasterMap._read_row

    def count(self: raster_file.RasterMap, row: int, left: int, right: int, step: int) -> np.ndarray:
        read.append(right - left)
        return original(self, row, left, right, step)

    monkeypatch.setattr(raster_file.RasterMap, "_read_row", count)
    cut(image, Frame(0, 0, 30_000), SIDE)  # 55 pixels of 546 m
    assert len(read) < 70
    assert sum(read) < 5_000
    read.clear()
    cut(image, Frame(0, 0, 1_600_000), SIDE)  # 2,930 pixels, and 1,024 samples
    assert len(read) < 2_000


def test_steps_read_every_second_row_and_third_column():
    pixels = np.arange(70, dtype=np.uint8).reshape(7, 10)
    window = PlainMap(Grid(-180, 180, -90, 90, 10, 7, METRES), pixels, missing=33).read(1, 6, 0, 10, (2, 3))
    assert window.pixels.tolist() == [[10, 13, 16, 19], [30, 33, 36, 39], [50, 53, 56, 59]]
    assert window.missing is not None
    assert np.argwhere(window.missing).tolist() == [[1, 1]]


def test_a_crop_drawn_in_strips_is_the_same(tmp_path, monkeypatch):
    image = open_map(maps.write_image(tmp_path / "map.png"), (), METRES)
    frame = Frame(60.0, -100.0, 1_700_000)
    whole = cut(image, frame, 64)
    monkeypatch.setattr("resight.data.maps.map_image.STRIP", 5000)
    assert np.abs(cut(image, frame, 64).astype(int) - whole).max() <= 1


def write_pole(path, lat, pixels, **about):
    """A GeoTIFF of 7,600 m per pixel, centred at that latitude and at longitude 0."""
    rasterio = pytest.importorskip("rasterio")
    half = 7600 * len(pixels) / 2
    transform = rasterio.transform.from_bounds(-half, -half, half, half, *pixels.shape)
    crs = f"+proj=stere +lat_0={lat} +lon_0=0 +k=1 +R={METRES} +units=m +no_defs"
    size = {"width": len(pixels), "height": len(pixels), "count": 1, "dtype": pixels.dtype}
    with rasterio.open(path, "w", driver="GTiff", **size, crs=crs, transform=transform, **about) as file:
        file.write(pixels, 1)
    return path


@needs_real_rasterio
@pytest.mark.parametrize(("is_north", "name"), [(True, "pole"), (False, "south")])
def test_a_geotiff_around_a_pole(tmp_path, is_north, name):
    pixels = maps.paint_pole(is_north, meridian=0.0)
    check_crater(open_map(write_pole(tmp_path / "map.tif", 90 if is_north else -90, pixels), (), None), name)


@needs_real_rasterio
def test_a_geotiff_of_16_bits_is_stretched_and_its_missing_values_stay_missing(tmp_path):
    pixels = maps.paint_pole(is_north=True, meridian=0.0).astype(np.int16) * 20 - 4000
    pixels[:, 200:] = -32768  # the eastern half of the crop
    image = open_map(write_pole(tmp_path / "map.tif", 90, pixels, nodata=-32768), (), None)
    crop = draw(image, Frame(90, 0, 300_000), SIDE)
    assert crop.missing == pytest.approx(0.5, abs=0.02)
    assert np.ptp(crop.pixels) > 200, "of -2,600 to 0"
    west = draw(image, Frame(85, -100, 200_000), SIDE)
    assert west.missing == 0


@needs_real_rasterio
def test_a_geotiff_that_is_not_true_at_a_pole_is_refused(tmp_path):
    path = write_pole(tmp_path / "map.tif", 60, maps.paint_pole(is_north=True, meridian=0.0))
    with pytest.raises(ManifestError, match="not true at a pole"):
        open_map(path, (), None)
