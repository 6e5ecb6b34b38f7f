from pathlib import Path

import numpy as np
import pytest

from resight.encode.descriptors import regions
from resight.encode.descriptors.regions import RegionSource
from resight.errors import ManifestError, MissingFile, RecipeError
from resight.types import ImageRef, Picture

HEADER = "id,x0,y0,x1,y1,score\n"


def write(folder: Path, text: str, name: str = "boxes.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def show(source: RegionSource, id: str, path: str = "elsewhere.jpg") -> list[list[float]]:
    return source.propose(Picture(ImageRef(id, Path(path)), np.zeros((8, 8, 3), np.uint8), (800, 600))).boxes.tolist()


def test_a_table_gives_each_image_its_boxes_in_order(tmp_path: Path):
    text = HEADER + "a.jpg,0,0,10,10,0.2\nb.jpg,1,2,3.5,4,1\na.jpg,20,20,50,60,0.9\n"
    source = regions.build("file", path=write(tmp_path, text))
    assert show(source, "a.jpg") == [[0, 0, 10, 10], [20, 20, 50, 60]]
    assert show(source, "b.jpg") == [[1, 2, 3.5, 4]]
    assert show(source, "c.jpg") == []
    best = regions.build("file", path=write(tmp_path, text), most=1)
    assert show(best, "a.jpg") == [[20, 20, 50, 60]]


def test_json_lines_say_the_same(tmp_path: Path):
    lines = """{"id": "a", "x0": 1, "y0": 2, "x1": 3, "y1": 4, "score": 0.5}

        {"id": 7, "x0": 0, "y0": 0, "x1": 9, "y1": 9}"""
    source = regions.build("file", path=str(write(tmp_path, lines, "boxes.jsonl")))
    assert show(source, "a") == [[1, 2, 3, 4]] and show(source, "7") == [[0, 0, 9, 9]]


def test_the_score_may_be_missing(tmp_path: Path):
    source = regions.build("file", path=write(tmp_path, "x0,y0,x1,y1,id\n0,0,5,5,a\n6,6,9,9,a\n"), most=1)
    assert show(source, "a") == [[0, 0, 5, 5]]


def test_an_image_is_known_by_the_end_of_its_path_but_never_by_less_than_its_id(tmp_path: Path):
    source = regions.build("file", path=write(tmp_path, HEADER + "photos/a.jpg,0,0,5,5,1\n.\\b.jpg,0,0,6,6,1\n"))
    assert show(source, "a.jpg", "/data/photos/a.jpg") == [[0, 0, 5, 5]]
    assert show(source, "4711", "/data/photos/a.jpg") == [[0, 0, 5, 5]]
    assert show(source, "b.jpg", "/data/photos/b.jpg") == [[0, 0, 6, 6]]
    assert show(source, "sub/b.jpg", "/data/photos/sub/b.jpg") == []
    assert show(source, "a.jpg", "/data/other/a.jpg") == []


def test_a_file_without_boxes_proposes_nothing(tmp_path: Path):
    assert show(regions.build("file", path=write(tmp_path, HEADER)), "a") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id,x0,y0,x1\na,1,2,3\n", "columns"),
        ("id,x0,y0,x1,y1,label\na,1,2,3,4,cat\n", "label"),
        ("", "columns"),
        (HEADER + "a,1,2,3,4,1\na,1,2,three,4,1\n", "line 3: not a box"),
        (HEADER + "a,1,2,nan,4,1\n", "line 2: not a box"),
        (HEADER + "a,1,2,3,4,inf\n", "line 2: not a box"),
        (HEADER + "a,5,2,3,4,1\n", "line 2: not a box"),
        (HEADER + "a,1,2,3,4\n", "line 2: not a box"),
        (HEADER + "a,1,2,3,4,1,1\n", "line 2: not a box"),
        (HEADER + ",1,2,3,4,1\n", "line 2: a box of no image"),
    ],
)
def test_tables_that_are_none_are_refused_with_the_line(text: str, told: str, tmp_path: Path):
    with pytest.raises(ManifestError, match=told):
        regions.build("file", path=write(tmp_path, text))


@pytest.mark.parametrize(
    "line",
    ["{", "[1, 2]", '{"id": "a", "x0": 1, "y0": 2, "x1": 3}', '{"id": "a", "x0": true, "y0": 0, "x1": 3, "y1": 4}'],
)
def test_lines_that_are_no_boxes_are_refused(line: str, tmp_path: Path):
    with pytest.raises(ManifestError):
        regions.build("file", path=write(tmp_path, line, "boxes.ndjson"))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path):
    with pytest.raises(MissingFile, match="resight data boxes"):
        regions.build("file", path=tmp_path / "absent.csv")
    with pytest.raises(ManifestError, match="cannot read"):
        regions.build("file", path=tmp_path)
    (tmp_path / "bytes.csv").write_bytes(b"id,x0\xff\xfe")
    with pytest.raises(ManifestError, match="cannot read"):
        regions.build("file", path=tmp_path / "bytes.csv")
    with pytest.raises(RecipeError, match="path"):
        regions.build("file")


def test_the_fingerprint_follows_the_file(tmp_path: Path):
    first = regions.build("file", path=write(tmp_path, HEADER + "a,1,2,3,4,1\n")).fingerprint
    assert regions.build("file", path=write(tmp_path, HEADER + "a,1,2,3,4,1\n", "copy.csv")).fingerprint == first
    assert regions.build("file", path=write(tmp_path, HEADER + "a,1,2,3,5,1\n")).fingerprint != first
