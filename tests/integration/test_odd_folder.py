"""A folder of odd files is accounted for file by file: added, skipped with a reason, or counted as no image."""

import os
from pathlib import Path

import pytest
from PIL import Image
from support import odd_images
from support.running import run

import resight

OTHERS = {  # name → content, and a part of the reason
    "paper.pdf": (b"%PDF-1.7\n", "pdftoppm"),
    "clip.mp4": (b"\0\0\0\x18ftypmp42\0\0\0\0", "ffmpeg"),
    "phone.MOV": (b"\0\0\0\x14ftypqt  \0\0\0\0", "ffmpeg"),
    "screen.mkv": (b"\x1a\x45\xdf\xa3", "ffmpeg"),
    "logo.svg": (b"<svg/>", "rsvg-convert"),
    "camera.nef": (b"MM\0*", "darktable-cli"),
    "camera.CR3": (b"\0\0\0\x18ftypcrx ", "darktable-cli"),
    "poster.psd": (b"8BPS", "export it as PNG"),
    "icon.ico": (b"\0\0\1\0", "magick"),
    "video_named.jpg": (b"\0\0\0\x18ftypmp42\0\0\0\0", "ffmpeg"),
    "page_named.jpg": (b"<!DOCTYPE html><title>404 Not Found</title>", "download it again"),
    "scan": (b"%PDF-1.4\n", "pdftoppm"),  # without an ending
    "cut.heic": (odd_images.base64.b85decode(odd_images.HEIC)[:300], "truncated"),
    "header_only.avif": (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1", "truncated"),
    "header_only.jxl": (b"\xff\x0a\x40\0", "truncated"),
}
NO_IMAGES = ("notes.txt", "README", "table.csv", "Thumbs.db", ".DS_Store", "sub/more.json", "song.m4a", "archive.zip")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("odd")
    odd_images.write_readable(root / "good")
    odd_images.write_unreadable(root / "bad")
    for name, (content, _) in OTHERS.items():
        (root / name).write_bytes(content)
    exif = {50706: b"\1\4\0\0"}  # DNGVersion
    Image.new("RGB", (16, 16)).save(root / "raw_named.tif", tiffinfo=exif)
    (root / "sub").mkdir()
    for name in NO_IMAGES:
        (root / name).write_bytes(b"text")
    return root


@pytest.fixture(scope="module")
def answer(folder: Path) -> dict:
    return run("index", folder, "--into", folder / "c.resight", "--encoder", "sift", "--json").answer


def test_every_file_is_added_skipped_or_counted(folder: Path, answer: dict) -> None:
    ids = [record.id for record in resight.open(folder / "c.resight").records()]
    skipped = {os.path.relpath(item["path"], folder) for item in answer["skipped"]}
    files = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if not path.is_dir() and "c.resight" not in path.parts
    }
    assert len(files) > 80
    assert not skipped & set(ids)
    assert files - skipped - set(ids) == set(NO_IMAGES)
    assert answer["not_images"] == len(NO_IMAGES)
    assert answer["added"] == len(ids) == len([name for name in files if name.startswith("good/")])


def test_the_reason_of_a_file_that_holds_pictures_says_how_to_make_images_of_it(folder: Path, answer: dict) -> None:
    reasons = {os.path.relpath(item["path"], folder): item["reason"] for item in answer["skipped"]}
    assert all(reasons.values())
    for name, (_, words) in OTHERS.items():
        assert words in reasons[name], (name, reasons[name])
    assert "raw photo" in reasons["raw_named.tif"]


def test_python_returns_the_same_account(folder: Path, answer: dict) -> None:
    report = resight.open(folder / "c.resight").add(folder)
    assert (report.added, report.unchanged) == (0, answer["added"])
    assert (len(report.skipped), report.not_images) == (len(answer["skipped"]), len(NO_IMAGES))
