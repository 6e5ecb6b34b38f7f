"""The true boxes of a data set as a file that regions can be taken from."""

import hashlib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support.odd_images import write_readable, write_unreadable

from resight.data.check import Fact, check, check_source, count, export_boxes, list_boxes
from resight.data.sets import Published
from resight.encode.descriptors.regions.file import read_boxes
from resight.errors import ManifestError
from resight.types import Dataset, ImageRef, Judgement, Skipped


@dataclass(frozen=True)
class Source:
    """A data set of the files in a folder, of which something was published."""

    published: Published

    def load(self, root: Path) -> Dataset:
        if not (root / "list.txt").is_file():
            raise ManifestError(f"no list in {root}", expected="list.txt", fix="check the path")
        return dataset_of(*(root / name for name in (root / "list.txt").read_text().split()))


def publish(counts: dict[str, int], **checksums: str) -> Source:
    sums = {name.replace("_", "."): value for name, value in checksums.items()}
    return Source(Published(counts, ("list.txt of a page, to ROOT",), "free", sums))


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
        Skipped(str(files["text.jpg"]), "unsupported format; convert it to PNG, if an image viewer shows it"),
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


def test_without_decoding_only_missing_files_are_found(tmp_path):
    files = write_unreadable(tmp_path)
    result = check(dataset_of(files["missing.jpg"], files["text.jpg"]), decoding=False)
    assert [Path(item.path).name for item in result.missing] == ["missing.jpg"]
    assert (result.unreadable, result.modes, result.decoded) == ((), {}, False)


def test_counts_and_checksums_are_compared_with_the_published_ones(tmp_path):
    write_readable(tmp_path)
    (tmp_path / "list.txt").write_text("plain.png plain.bmp")
    md5, sha256 = (f"{kind}:{hashlib.new(kind, b'plain.png plain.bmp').hexdigest()}" for kind in ("md5", "sha256"))
    right = check_source(publish({"database": 2, "queries": 0}, list_txt=sha256), tmp_path)
    assert right.facts == (Fact("database", 2, 2), Fact("queries", 0, 0), Fact("list.txt", sha256, sha256))
    assert right.ok
    wrong = check_source(publish({"database": 3}, list_txt="md5:0"), tmp_path)
    assert wrong.facts == (Fact("database", 3, 2), Fact("list.txt", "md5:0", md5))
    assert not wrong.ok
    assert wrong.published.downloads == ("list.txt of a page, to ROOT",)


def test_a_file_that_is_not_there_has_no_checksum_and_one_in_a_folder_below_has(tmp_path):
    (tmp_path / "list.txt").touch()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "b.txt").touch()
    empty = f"md5:{hashlib.md5(b'').hexdigest()}"
    found = check_source(publish({}, a_txt="md5:0", b_txt=empty), tmp_path)
    assert found.facts == (Fact("a.txt", "md5:0", None), Fact("b.txt", empty, empty))
    assert not found.ok


def test_a_data_set_that_is_not_there_says_what_to_download(tmp_path):
    with pytest.raises(ManifestError, match="no list in") as caught:
        check_source(publish({}), tmp_path)
    assert "list.txt of a page, to ROOT" in caught.value.fix
    assert "check the path" in caught.value.fix
    assert caught.value.expected == "list.txt"


def test_all_that_judgements_hold_is_counted():
    refs = tuple(ImageRef(name, Path(name), attributes={"label": name[0]}) for name in ("a1", "a2", "b1"))
    truth = {
        "q": Judgement({"a1": 2, "a2": 0}, frozenset({"b1"}), {"a1": (0, 0, 1, 1)}),
        "r": Judgement({}, frozenset({"a1", "a2"})),
    }
    queries = tuple(ImageRef(name, Path(name)) for name in truth)
    assert count(Dataset("test", refs, queries, truth)) == {
        "database": 3,
        "queries": 2,
        "queries_with_truth": 1,
        "labels": 2,
        "positives": 1,
        "ignored": 3,
        "boxes": 1,
    }


REFS = tuple(ImageRef(name, Path(name)) for name in ("b.jpg", "street, night.jpg", "a.jpg"))


def test_each_box_of_a_database_image_stands_once_in_the_order_of_the_database() -> None:
    judgements = {
        "q": Judgement({"a.jpg": 1, "b.jpg": 1}, boxes={"a.jpg": (1, 2, 3, 4), "b.jpg": (0, 0, 5, 5)}),
        "r": Judgement({"a.jpg": 1}, boxes={"a.jpg": (2, 2, 3, 4), "elsewhere.jpg": (0, 0, 1, 1)}),
        "s": Judgement({"a.jpg": 1}, boxes={"a.jpg": (1, 2, 3, 4)}),
    }
    found = list_boxes(Dataset("walls", REFS, (), judgements))
    assert list(found.items()) == [("b.jpg", [(0, 0, 5, 5)]), ("a.jpg", [(1, 2, 3, 4), (2, 2, 3, 4)])]


def test_the_region_source_reads_what_was_written(tmp_path: Path) -> None:
    boxes = {"street, night.jpg": [(0.0, 0.0, 12345.625, 5.0)], "a.jpg": [(1.0, 2.0, 3.0, 4.0), (2.0, 2.0, 3.0, 4.0)]}
    export_boxes(boxes, tmp_path / "boxes.csv")
    spans, rows = read_boxes(tmp_path / "boxes.csv")
    assert {name: rows[slice(*span), :4].tolist() for name, span in spans.items()} == {
        name: np.array(some).tolist() for name, some in boxes.items()
    }
    assert (tmp_path / "boxes.csv").read_text().splitlines()[0] == "id,x0,y0,x1,y1"


def test_a_data_set_without_boxes_is_refused() -> None:
    with pytest.raises(ManifestError, match="walls has no boxes"):
        list_boxes(Dataset("walls", REFS, (), {"q": Judgement({"a.jpg": 1})}))
