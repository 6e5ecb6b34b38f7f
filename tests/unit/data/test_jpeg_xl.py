import io
import struct

import numpy as np
import pytest

from resight.data.jpeg_xl import JpegXlFile, read_size

imagecodecs = pytest.importorskip("imagecodecs")
SIZES = [(16, 16), (60, 40), (1, 1), (8, 256), (257, 300), (1200, 1000), (1920, 1080), (5000, 3), (300, 2100)]


@pytest.mark.parametrize("boxes", [False, True])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_size_is_known_before_the_image_is_decoded(width: int, height: int, boxes: bool) -> None:
    data = imagecodecs.jpegxl_encode(np.zeros((height, width, 3), np.uint8), usecontainer=boxes)
    assert data.startswith(b"\0\0\0\x0cJXL ") == boxes
    assert JpegXlFile(io.BytesIO(data)).size == (width, height)


@pytest.mark.parametrize(
    ("dtype", "channels", "mode", "value"),
    [
        (np.uint8, 1, "L", 200),
        (np.uint8, 4, "RGBA", (200, 200, 200, 200)),
        (np.uint16, 1, "I;16", 200),
        (np.uint16, 3, "RGB", (1, 1, 1)),  # 200 of 65,535
        (np.float32, 1, "F", 200.0),
    ],
)
def test_every_depth_becomes_a_mode_of_pillow(dtype: type, channels: int, mode: str, value: object) -> None:
    values = np.full((9, 7, channels), 200, dtype)
    image = JpegXlFile(io.BytesIO(imagecodecs.jpegxl_encode(values, lossless=True)))
    image.load()
    assert (image.mode, image.size, image.getpixel((3, 3))) == (mode, (7, 9), value)


def test_a_file_cut_anywhere_is_refused_and_never_breaks_the_parser() -> None:
    data = imagecodecs.jpegxl_encode(np.zeros((40, 60, 3), np.uint8), usecontainer=True)
    for length in range(2, len(data) - 1):
        with pytest.raises(Exception, match=r".+"):
            JpegXlFile(io.BytesIO(data[:length])).load()
    with pytest.raises(ValueError, match="codestream"):
        read_size(b"")


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", 8 + len(content)) + kind + content


def test_no_arrangement_of_boxes_hides_the_size() -> None:
    large, small = (imagecodecs.jpegxl_encode(np.zeros((side, side, 3), np.uint8)) for side in (3000, 8))
    head = b"\0\0\0\x0cJXL \r\n\x87\n" + box(b"ftyp", b"jxl \0\0\0\0jxl ")
    first, last = struct.pack(">I", 0), struct.pack(">I", 1 << 31 | 1)  # numbers of parts; the last has a mark
    for cut in (2, 3, 6):
        parts = box(b"jxlp", first + large[:cut]) + box(b"jxlp", last + large[cut:])
        assert JpegXlFile(io.BytesIO(head + parts)).size == (3000, 3000)
    assert JpegXlFile(io.BytesIO(head + box(b"jxlc", large) + box(b"jxlc", small))).size == (3000, 3000)
