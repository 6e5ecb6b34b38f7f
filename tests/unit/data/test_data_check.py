import shutil
from dataclasses import replace
from pathlib import Path

from odd_images import write_readable, write_unreadable

from resight.data.check import check
from resight.types import Dataset, ImageRef, Judgement, Skipped


def dataset_of(*paths: Path) -> Dataset:
    return Dataset("test", tuple(ImageRef(path.name, path) for path in paths), (), {})


def test_counts_are_those_of_the_data_set(tmp_path):
    files = write_readable(tmp_path)
    labels = {"plain.png": "x", "plain.bmp": "x", "plain.tif": "y"}
    refs = tuple(ImageRef(name, files[name], attributes={"label": label}) for name, label in labels.items())
    truth = {"plain.tif": Judgement({"plain.png": 1}), "plain.jpg": Judgement({}), "plain.bmp": Judgement({"a": 0})}
    queries = tuple(ImageRef(name, files[name]) for name in truth)
    result = check(Dataset("test", refs, queries, truth))
    assert (result.database, result.queries, result.queries_with_truth, result.labels) == (3, 3, 1, 2)
    assert result.modes == {"RGB": 4}  # two files are database and query at once
    assert result.ok


def test_odd_facts_are_counted(tmp_path):
    files = write_readable(tmp_path)
    names = ("plain.jpg", "cmyk.jpg", "grey16.png", "turned_right.jpg", "turned.tif", "position.jpg", "tiny.png")
    result = check(dataset_of(*(files[name] for name in names)))
    assert result.modes == {"RGB": 5, "CMYK": 1, "I;16": 1}
    assert result.rotated == 2
    assert result.with_position == 1
    assert (result.smallest, result.largest) == ((1, 1), (60, 40))


def test_missing_and_unreadable_files_are_told_apart(tmp_path):
    files = write_unreadable(tmp_path)
    result = check(dataset_of(files["missing.jpg"], files["broken_link.jpg"], files["empty.jpg"], files["text.jpg"]))
    assert [Path(item.path).name for item in result.missing] == ["missing.jpg", "broken_link.jpg"]
    assert result.unreadable == (
        Skipped(str(files["empty.jpg"]), "the file is empty"),
        Skipped(str(files["text.jpg"]), "it is not an image of a known format"),
    )
    assert not result.ok
    assert (result.smallest, result.largest) == (None, None)


def test_files_with_the_same_bytes_are_grouped_and_broken_ones_are_not(tmp_path):
    files = write_readable(tmp_path)
    for copy in ("copy.png", "again.png"):
        shutil.copy(files["plain.png"], tmp_path / copy)
    for empty in ("one.jpg", "two.jpg"):
        (tmp_path / empty).touch()
    names = ("plain.png", "copy.png", "plain.bmp", "again.png", "one.jpg", "two.jpg")
    result = check(dataset_of(*(tmp_path / name for name in names)))
    assert result.duplicates == (("plain.png", "copy.png", "again.png"),)


def test_what_was_skipped_before_is_passed_on():
    before = Skipped("x", "its name is not valid UTF-8")
    found = check(replace(dataset_of(), skipped=(before,)))
    assert found.skipped == (before,)
    assert not found.ok


def test_progress_is_told_after_each_file(tmp_path):
    files = write_readable(tmp_path)
    calls: list[tuple[int, int]] = []
    check(dataset_of(files["plain.png"], files["plain.bmp"]), progress=lambda *call: calls.append(call))
    assert calls == [(1, 2), (2, 2)]


def test_nothing_is_written(tmp_path):
    files = write_readable(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    check(dataset_of(*files.values()))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
