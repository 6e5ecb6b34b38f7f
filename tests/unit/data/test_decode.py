import struct
from pathlib import Path

import numpy as np
import pytest
from support import odd_images

from resight.data import decode

Entry = tuple[int, int, int, bytes]  # tag, type, count, value


def build_block(entries: list[Entry], gps: list[Entry], order: str) -> bytes:
    """A block with a first directory and a GPS directory; long values go behind their directory."""
    start = b"II*\0" if order == "<" else b"MM\0*"
    first_length = 2 + 12 * (len(entries) + 1) + 4
    pointer = (0x8825, 4, 1, struct.pack(f"{order}I", 8 + first_length))
    first = build_directory([*entries, pointer], 8, order)
    return start + struct.pack(f"{order}I", 8) + first + build_directory(gps, 8 + first_length, order)


def build_directory(entries: list[Entry], offset: int, order: str) -> bytes:
    body, extra = struct.pack(f"{order}H", len(entries)), b""
    behind = offset + 2 + 12 * len(entries) + 4
    for tag, kind, count, value in entries:
        field = value.ljust(4, b"\0") if len(value) <= 4 else struct.pack(f"{order}I", behind + len(extra))
        extra += value if len(value) > 4 else b""
        body += struct.pack(f"{order}HHI", tag, kind, count) + field
    return body + b"\0" * 4 + extra


def angle(*fractions: tuple[int, int], order: str = ">") -> bytes:
    return b"".join(struct.pack(f"{order}II", *fraction) for fraction in fractions)


def gps_entries(lat: bytes, lon: bytes, lat_ref: bytes = b"N\0", lon_ref: bytes = b"E\0") -> list[Entry]:
    return [(1, 2, 2, lat_ref), (2, 5, len(lat) // 8, lat), (3, 2, 2, lon_ref), (4, 5, len(lon) // 8, lon)]


LAT = angle((52, 1), (30, 1), (36, 1))  # 52 + 0.5 + 0.01
LON = angle((13, 1), (15, 1), (0, 1))  # 13 + 0.25


@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation_is_read_in_both_byte_orders(order):
    block = build_block([(0x0112, 3, 1, struct.pack(f"{order}H", 6))], [], order)
    assert decode.read_exif(block).orientation == 6


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_impossible_orientation_counts_as_upright(value):
    assert decode.read_exif(build_block([(0x0112, 3, 1, struct.pack(">H", value))], [], ">")).orientation == 1


def test_degrees_minutes_and_seconds_add_up():
    block = build_block([], gps_entries(LAT, LON), ">")
    assert decode.read_exif(block).position == pytest.approx((52.51, 13.25))


def test_south_and_west_are_negative():
    block = build_block([], gps_entries(LAT, LON, b"S\0", b"W\0"), ">")
    assert decode.read_exif(block).position == pytest.approx((-52.51, -13.25))


@pytest.mark.parametrize(
    ("lat", "lon", "lat_ref"),
    [
        (angle((52, 0), (0, 1), (0, 1)), LON, b"N\0"),
        (angle((0, 0), (0, 0), (0, 0)), LON, b"N\0"),
        (angle((91, 1), (0, 1), (0, 1)), LON, b"N\0"),
        (LAT, angle((181, 1), (0, 1), (0, 1)), b"N\0"),
        (LAT, LON, b"\0\0"),
        (LAT, LON, b"X\0"),
    ],
)
def test_an_impossible_position_is_no_position(lat, lon, lat_ref):
    assert decode.read_exif(build_block([], gps_entries(lat, lon, lat_ref), ">")).position is None


def test_nan_degrees_are_no_position():
    nan = struct.pack(">ddd", float("nan"), 0, 0)
    entries = [(1, 2, 2, b"N\0"), (2, 12, 3, nan), (3, 2, 2, b"E\0"), (4, 5, 3, LON)]
    assert decode.read_exif(build_block([], entries, ">")).position is None


@pytest.mark.parametrize(("degrees", "expected"), [(0, 0.0), (271, 271.0), (360, 0.0), (361, None)])
def test_the_direction_of_the_camera_is_its_heading(degrees, expected):
    entry = (17, 5, 1, struct.pack(">II", 10 * degrees, 10))
    assert decode.read_exif(build_block([], [*gps_entries(LAT, LON), entry], ">")).heading == expected


def test_a_direction_that_is_no_number_or_not_there_is_none():
    assert decode.read_exif(build_block([], [(17, 5, 1, struct.pack(">II", 7, 0))], ">")).heading is None
    assert decode.read_exif(build_block([], gps_entries(LAT, LON), ">")).heading is None
    assert decode.read_exif(b"") == decode.ExifFacts()


def test_a_block_cut_anywhere_is_no_error():
    block = build_block([(0x0112, 3, 1, struct.pack(">H", 6))], gps_entries(LAT, LON), ">")
    for length in range(len(block)):
        assert decode.read_exif(block[:length]).orientation in (1, 6)
        assert decode.read_exif(block[:length]).position in (None, decode.read_exif(block).position)


def test_any_broken_byte_is_no_error():
    block = build_block([(0x0112, 3, 1, struct.pack(">H", 6))], gps_entries(LAT, LON), ">")
    for at in range(len(block)):
        for byte in (0, 1, 0x7F, 0xFF):
            assert decode.read_exif(block[:at] + bytes([byte]) + block[at + 1 :]).orientation in range(1, 9)


def test_a_pointer_to_the_gps_directory_that_leads_nowhere_leaves_the_orientation():
    entries = [(0x0112, 3, 1, struct.pack(">H", 6)), (0x8825, 4, 1, struct.pack(">I", 2**32 - 1))]
    block = b"MM\0*" + struct.pack(">I", 8) + build_directory(entries, 8, ">")
    assert decode.read_exif(block) == decode.ExifFacts(orientation=6)


def test_the_jpeg_marker_makes_no_difference():
    block = build_block([(0x0112, 3, 1, struct.pack(">H", 6))], gps_entries(LAT, LON), ">")
    assert decode.read_exif(b"Exif\0\0" + block) == decode.read_exif(block)
    assert decode.read_exif(block).orientation == 6


@pytest.mark.parametrize("max_side", [None, 1, 7, 30, 59])
def test_an_image_converted_in_strips_is_that_converted_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_side: int | None
) -> None:
    for name, path in odd_images.write_readable(tmp_path).items():
        data = path.read_bytes()
        monkeypatch.setattr(decode, "STRIP", 10**9)
        whole = decode.decode(data, name, max_side).pixels
        monkeypatch.setattr(decode, "STRIP", 300)
        assert np.array_equal(decode.decode(data, name, max_side).pixels, whole), name
