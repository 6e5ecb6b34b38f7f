"""EXIF block in, orientation, GPS position and heading out.

The block is a small TIFF file: a header, then directories of 12-byte entries. Only three facts are wanted, so
they are read here with every offset checked. A block that is cut, wrong or absent gives no facts and no error:
what a camera wrote about an image never makes the image unreadable.
"""

import math
import struct
from collections.abc import Mapping

ORIENTATION, GPS = 0x0112, 0x8825
LAT_REF, LAT, LON_REF, LON, DIRECTION = 1, 2, 3, 4, 17
WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 9: 4, 10: 8, 11: 4, 12: 8}  # EXIF type → bytes a value
NUMBERS = {3: "H", 4: "I", 5: "II", 9: "i", 10: "ii", 11: "f", 12: "d"}

Entry = tuple[int, bytes]  # EXIF type, bytes of all values


def read_orientation(block: bytes) -> int:
    """1 (upright) to 8, as EXIF numbers them; 1 when the block does not say."""
    order, entries = _read_first_directory(block)
    values = _numbers(order, entries.get(ORIENTATION))
    return int(values[0]) if values and values[0] in range(1, 9) else 1


def read_position(block: bytes) -> tuple[float, float] | None:
    """Latitude and longitude in degrees, or None when absent or impossible."""
    order, gps = _read_gps(block)
    lat = _degrees(order, gps.get(LAT), gps.get(LAT_REF), b"NS", 90)
    lon = _degrees(order, gps.get(LON), gps.get(LON_REF), b"EW", 180)
    return None if lat is None or lon is None else (lat, lon)


def read_heading(block: bytes) -> float | None:
    """Degrees from north, clockwise, that the camera looked at, or None when absent or impossible.

    North may be the magnetic one: the few degrees between the two matter to nobody here.
    """
    order, gps = _read_gps(block)
    values = _numbers(order, gps.get(DIRECTION))
    return values[0] % 360 if values and 0 <= values[0] <= 360 else None  # also None for NaN


def strip_prefix(block: bytes) -> bytes:
    """The TIFF part of a block that may begin with JPEG's `Exif` marker."""
    return block[6:] if block.startswith(b"Exif\0") else block


def _degrees(order: str, entry: Entry | None, reference: Entry | None, letters: bytes, limit: float) -> float | None:
    values = _numbers(order, entry)
    letter = reference[1][:1].upper() if reference else b""
    if not values or not letter or letter not in letters:
        return None
    degrees = math.fsum(value / (1, 60, 3600)[place] for place, value in enumerate(values[:3]))
    if not math.isfinite(degrees) or not 0 <= degrees <= limit:
        return None
    return -degrees if letter == letters[1:] else degrees


def _read_gps(block: bytes) -> tuple[str, Mapping[int, Entry]]:
    order, entries = _read_first_directory(block)
    pointer = _numbers(order, entries.get(GPS))
    return order, _read_directory(block, int(pointer[0]), order) if pointer else {}


def _read_first_directory(block: bytes) -> tuple[str, Mapping[int, Entry]]:
    block_order = {b"II*\0": "<", b"MM\0*": ">"}.get(block[:4])
    if block_order is None or len(block) < 8:
        return "<", {}
    (offset,) = struct.unpack_from(f"{block_order}I", block, 4)
    return block_order, _read_directory(block, offset, block_order)


def _read_directory(block: bytes, offset: int, order: str) -> Mapping[int, Entry]:
    """tag → entry, for every entry that lies within the block."""
    if offset + 2 > len(block):
        return {}
    (count,) = struct.unpack_from(f"{order}H", block, offset)
    entries: dict[int, Entry] = {}
    for start in range(offset + 2, min(offset + 2 + 12 * count, len(block) - 11), 12):
        tag, kind, values = struct.unpack_from(f"{order}HHI", block, start)
        length = WIDTHS.get(kind, 0) * values
        place = start + 8 if length <= 4 else struct.unpack_from(f"{order}I", block, start + 8)[0]
        if 0 < length <= len(block) - place:
            entries[tag] = (kind, block[place : place + length])
    return entries


def _numbers(order: str, entry: Entry | None) -> list[float]:
    """The numbers of an entry; a fraction with denominator 0 is NaN. Only the first few are ever wanted."""
    if entry is None or entry[0] not in NUMBERS:
        return []
    kind, raw = entry
    items = struct.iter_unpack(f"{order}{NUMBERS[kind]}", raw[: 3 * WIDTHS[kind]])
    return [item[0] if len(item) == 1 else _divide(*item) for item in items]


def _divide(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else math.nan
