import hashlib
import os
import threading
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile, ImageOps
from support.odd_images import BLUE, RED, encode, grey_ramp, png_header, scene, write_readable, write_unreadable

from resight.data import image_files
from resight.data.decode import decode
from resight.errors import ImageError
from resight.types import ImageRef, Picture


@pytest.fixture(scope="module")
def readable(tmp_path_factory):
    return write_readable(tmp_path_factory.mktemp("readable"))


@pytest.fixture(scope="module")
def unreadable(tmp_path_factory):
    return write_unreadable(tmp_path_factory.mktemp("unreadable"))


def read(path: Path, **options) -> Picture:
    return image_files.read(ImageRef(path.name, path), **options)


def reason_of(path: Path, **options) -> str:
    with pytest.raises(ImageError) as caught:
        read(path, **options)
    assert str(path) in caught.value.problem
    return caught.value.problem.removeprefix(f"cannot read {path}: ")


COLOURED = [
    "plain.jpg",
    "progressive.jpeg",
    "UPPER.JPG",
    "upside_down.jpg",
    "turned_right.jpg",
    "turned_left.jpg",
    "position.jpg",
    "cut_exif.jpg",
    "cmyk.jpg",
    "plain.png",
    "png_named.jpg",
    "palette.png",
    "animated.png",
    "animated.gif",
    "animated.webp",
    "lossy.webp",
    "plain.bmp",
    "plain.ppm",
    "plain.jp2",
    "plain.tif",
    "deflated.tiff",
    "pages.tif",
    "turned.tif",
    "cmyk.tif",
]


@pytest.mark.parametrize("name", [*COLOURED, "grün 図 🜨.png"])
def test_the_scene_is_red_at_the_left_and_blue_at_the_right_whatever_the_format(readable, name):
    picture = read(readable[name])
    assert picture.size == (60, 40)
    assert picture.pixels.shape == (40, 60, 3)
    assert picture.pixels.dtype == np.uint8
    np.testing.assert_allclose(picture.pixels[:, 5].astype(int), np.tile(RED, (40, 1)), atol=4)
    np.testing.assert_allclose(picture.pixels[:, 55].astype(int), np.tile(BLUE, (40, 1)), atol=4)


@pytest.mark.parametrize("name", ["grey16.png", "grey16.pgm", "int32.tif", "float.tif"])
def test_deep_grey_is_stretched_over_all_8_bits(readable, name):
    row = read(readable[name]).pixels[20, :, 0].astype(int)
    assert (row[0], row[-1]) == (0, 255)
    np.testing.assert_allclose(row, np.linspace(0, 255, 60), atol=1)


def test_one_extreme_pixel_does_not_darken_deep_grey():
    values = grey_ramp(np.uint16, 1000, 2000)
    values[0, 0] = 65535
    picture = image_files.read_bytes(encode(Image.fromarray(values), "PNG"), "spike")
    assert picture.pixels[20, 30, 0] == pytest.approx(255 * 30 / 59, abs=2)


def test_deep_grey_of_two_values_keeps_both_however_rare_the_one():
    values = np.zeros((100, 100), np.uint16)
    values[50, 50] = 700
    pixels = image_files.read_bytes(encode(Image.fromarray(values), "PNG"), "star").pixels
    assert (pixels[0, 0, 0], pixels[50, 50, 0]) == (0, 255)


def test_constant_deep_grey_is_black():
    data = encode(Image.fromarray(np.full((9, 9), 1234, np.uint16)), "PNG")
    assert not image_files.read_bytes(data, "flat").pixels.any()


@pytest.mark.parametrize("name", ["rgba.png", "la.png", "palette_transparent.png", "rgb_transparent.png"])
def test_what_is_transparent_becomes_white(readable, name):
    pixels = read(readable[name]).pixels
    assert pixels[20, 55].tolist() == [255, 255, 255]
    assert pixels[20, 5].tolist() != [255, 255, 255]


def test_half_transparent_black_on_white_is_mid_grey():
    data = encode(Image.new("RGBA", (10, 10), (0, 0, 0, 128)), "PNG")
    np.testing.assert_allclose(image_files.read_bytes(data, "glass").pixels, 127, atol=1)


def test_one_bit_images_are_black_and_white(readable):
    assert set(np.unique(read(readable["one_bit.png"]).pixels)) == {0, 255}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("empty.jpg", "the file is empty"),
        ("text.jpg", "unsupported format"),
        ("folder.jpg", "a folder"),
        ("broken_link.jpg", "no such file"),
        ("missing.jpg", "no such file"),
        ("loop_link.jpg", "symbolic links"),
        ("no_width.png", "header"),
        ("signature_only.jpg", "truncated"),
    ],
)
def test_what_is_no_image_is_refused_with_the_reason(unreadable, name, reason):
    assert reason in reason_of(unreadable[name])


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "gif", "bmp", "tif", "ppm", "jp2"])
def test_a_file_that_ends_early_is_refused_as_truncated(unreadable, kind):
    assert "truncated" in reason_of(unreadable[f"truncated.{kind}"])


@pytest.mark.parametrize("name", ["truncated_progressive.jpg", "truncated_deflated.tif"])
def test_compressed_variants_that_end_early_are_refused_too(unreadable, name):
    assert "truncated" in reason_of(unreadable[name])


def test_a_truncated_jpeg_is_refused_when_decoded_reduced(unreadable):
    assert "truncated" in reason_of(unreadable["truncated.jpg"], max_side=8)


def test_no_cut_of_a_jpeg_gives_other_pixels_than_the_whole(readable):
    data = readable["plain.jpg"].read_bytes()
    whole = decode(data, "whole").pixels
    for length in range(0, len(data), 11):
        try:
            part = decode(data[:length], "part").pixels
        except ImageError:
            continue
        np.testing.assert_array_equal(part, whole)


def test_flipped_bytes_give_pixels_or_an_image_error(readable):
    rng = np.random.default_rng(7)
    for path in readable.values():
        data = np.frombuffer(path.read_bytes(), np.uint8).copy()
        if path.suffix.startswith(".tif"):
            continue  # libtiff writes to stderr about damaged files
        for _ in range(10):
            damaged = data.copy()
            damaged[rng.integers(0, len(data), 4)] = rng.integers(0, 256, 4)
            try:
                assert decode(damaged.tobytes(), path.name, 32, 1_000_000).pixels.ndim == 3
            except ImageError as error:
                assert path.name in error.problem


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_does_not_block(unreadable):
    outcome: list[str] = []
    thread = threading.Thread(target=lambda: outcome.append(reason_of(unreadable["pipe.jpg"])), daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert outcome == ["it is not a regular file"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_permission_denied_is_said(tmp_path):
    path = tmp_path / "locked.png"
    path.write_bytes(encode(scene(), "PNG"))
    path.chmod(0)
    assert reason_of(path) == "permission denied"


def test_a_path_with_a_null_byte_is_an_image_error():
    assert "null" in reason_of(Path("a\0b.jpg"))


def test_a_file_beyond_2_gib_is_refused_unread(tmp_path):
    path = tmp_path / "huge.tif"
    with path.open("wb") as file:
        file.truncate(2 * 1024**3 + 1)
    assert reason_of(path) == "the file is too large"


def test_a_bomb_is_refused_with_pixel_count_and_limit(unreadable):
    reason = reason_of(unreadable["bomb.png"])
    assert "3,600,000,000" in reason
    assert "256,000,000" in reason


def test_the_limit_on_pixels_is_the_callers(readable):
    assert read(readable["plain.png"], max_pixels=2400).size == (60, 40)
    assert "2,400 pixels" in reason_of(readable["plain.png"], max_pixels=2399)


@pytest.mark.parametrize("name", ["plain.jpg", "plain.png", "plain.bmp", "animated.gif", "plain.jp2"])
def test_pillows_own_limit_neither_refuses_nor_changes(monkeypatch, readable, name):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert read(readable[name]).size == (60, 40)
    assert Image.MAX_IMAGE_PIXELS == 100
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


@pytest.mark.parametrize("name", ["plain.tif", "deflated.tiff", "lossy.webp"])
def test_pillows_own_limit_does_not_warn(monkeypatch, readable, name):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    assert read(readable[name]).size == (60, 40)  # warnings are errors in these tests


@pytest.mark.parametrize("name", ["plain.tif", "lossy.webp"])
def test_what_pillow_refuses_for_its_size_is_refused_with_both_numbers(monkeypatch, readable, name):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    reason = reason_of(readable[name])
    assert "2400 pixels" in reason
    assert "200 pixels" in reason


def test_a_header_alone_is_not_decoded_before_the_limit_is_checked():
    with pytest.raises(ImageError, match="more than the limit"):
        image_files.read_bytes(png_header(20_000, 20_000), "claim")


def test_threads_leave_the_warning_filters_as_they_were(readable):
    before = list(warnings.filters)
    paths = [readable[name] for name in ("plain.tif", "cut_exif.jpg", "plain.png", "turned.tif")] * 5
    threads = [threading.Thread(target=read, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF"])
def test_a_large_image_is_reduced_and_its_size_remembered(format):
    picture = image_files.read_bytes(encode(scene(1600, 900), format), "large", max_side=160)
    assert picture.size == (1600, 900)
    assert picture.pixels.shape == (90, 160, 3)
    np.testing.assert_allclose(picture.pixels[45, 40].astype(int), RED, atol=4)


def test_reduction_averages_rather_than_picks():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 200
    picture = image_files.read_bytes(encode(Image.fromarray(stripes), "PNG"), "stripes", max_side=16)
    np.testing.assert_allclose(picture.pixels, 100, atol=1)


def test_a_small_image_is_not_enlarged(readable):
    assert read(readable["plain.jpg"], max_side=500).pixels.shape == (40, 60, 3)


def test_a_needle_keeps_one_pixel_of_width():
    assert image_files.read_bytes(encode(scene(2000, 2), "JPEG"), "needle", max_side=100).pixels.shape == (1, 100, 3)


def test_a_turned_image_is_reduced_the_right_way_round(readable):
    picture = read(readable["turned_right.jpg"], max_side=30)
    assert picture.size == (60, 40)
    assert picture.pixels.shape == (20, 30, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_each_of_the_eight_orientations_agrees_with_pillow(orientation):
    pixels = np.arange(5 * 3 * 3, dtype=np.uint8).reshape(3, 5, 3) * 5
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(Image.fromarray(pixels), "PNG", exif=exif)
    picture = image_files.read_bytes(data, "turned")
    with Image.open(BytesIO(data)) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    np.testing.assert_array_equal(picture.pixels, expected)
    assert picture.size == (expected.shape[1], expected.shape[0])


def test_hash_length_and_time_are_those_of_the_file(readable):
    path = readable["plain.png"]
    picture = read(path)
    assert picture.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert picture.bytes == path.stat().st_size
    assert picture.modified_ns == path.stat().st_mtime_ns


def test_pixels_may_be_written_to(readable):
    assert read(readable["plain.png"]).pixels.flags.writeable


def test_the_position_of_the_camera_becomes_attributes(readable):
    assert read(readable["position.jpg"]).ref.attributes == {"lat": -33.5, "lon": 151.25}


def test_a_position_that_is_known_already_stays(readable):
    ref = ImageRef("a", readable["position.jpg"], attributes={"lat": 1.0, "lon": 2.0, "label": "x"})
    assert image_files.read(ref).ref.attributes == {"lat": 1.0, "lon": 2.0, "label": "x"}


def test_bytes_and_file_give_the_same_picture(readable):
    path = readable["turned_right.jpg"]
    upload, file = image_files.read_bytes(path.read_bytes(), "upload"), read(path)
    np.testing.assert_array_equal(upload.pixels, file.pixels)
    assert (upload.ref.id, upload.size, upload.sha256) == ("upload", file.size, file.sha256)


def test_a_box_of_the_reference_does_not_crop(readable):
    picture = image_files.read(ImageRef("a", readable["plain.png"], box=(0, 0, 10, 10)))
    assert picture.pixels.shape == (40, 60, 3)
    assert picture.ref.box == (0, 0, 10, 10)
