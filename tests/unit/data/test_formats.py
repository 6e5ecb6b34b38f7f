import base64

import pytest
from support import odd_images

from resight.data import formats


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "WebP"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", "AVIF"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heicavif", "HEIC"),  # what follows the box does not count
        (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1", "AVIF"),
        (b"\xff\x0a\x40\0", "JPEG XL"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", ""),
        (b"II*\0\x10\0\0\0CR\x02\0", ""),
        (b"%PDF-1.7", ""),
        (b"", ""),
    ],
)
def test_the_first_bytes_name_the_format(start: bytes, name: str) -> None:
    assert formats.identify(start) == name
    assert formats.is_image(start) == bool(name)


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"x",
        b"BMW and others",
        b"P1 meeting",
        b"Paris",
        b"RIFF\x24\0\0\0WAVEfmt ",
        b"PK\x03\x04",
        b"\x1f\x8b\x08",
        b"GIF",
        b"\xff\x0a",
    ],
)
def test_first_bytes_of_other_files_are_no_image(start: bytes) -> None:
    assert not formats.is_image(start)
    assert formats.find_other(start) is None


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"%PDF-1.7", "PDF"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0", "video"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0", "video"),
        (b"\x1a\x45\xdf\xa3", "video"),
        (b"RIFF\x24\0\0\0AVI LIST", "video"),
        (b"II*\0\x10\0\0\0CR\x02\0", "raw photo"),
        (b"\0\0\0\x18ftypcrx \0\0\0\x01", "raw photo"),
        (b"FUJIFILMCCD-RAW 0201", "raw photo"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<svg xmlns="', "drawing"),
        (b" <SVG>", "drawing"),
        (b"8BPS\0\1", "layered image"),
        (b"<!DOCTYPE HTML><title>404", "web page"),
    ],
)
def test_formats_that_are_not_decoded_are_known_with_what_to_do(start: bytes, name: str) -> None:
    other = formats.find_other(start)
    assert other is not None and other.name == name
    assert other.reason == f"unsupported format: {name}; {other.advice}"


def test_sound_in_the_container_of_videos_is_none() -> None:
    assert formats.find_other(b"\0\0\0\x18ftypM4A \0\0\0\0") is None


def test_no_ending_stands_for_two_formats() -> None:
    endings = [suffix for other in formats.OTHERS for suffix in other.suffixes] + list(formats.SUFFIXES)
    assert len(endings) == len(set(endings))
    found = formats.find_by_suffix(".MP4")
    assert found is formats.VIDEO and formats.find_by_suffix(".txt") is None


def test_samples_of_the_tests_are_what_they_are_named() -> None:
    assert formats.identify(base64.b85decode(odd_images.TURNED_HEIC)) == "HEIC"
