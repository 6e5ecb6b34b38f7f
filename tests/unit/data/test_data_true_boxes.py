"""The true boxes of a data set as a file that regions can be taken from."""

from pathlib import Path

import numpy as np
import pytest

from resight.data.check import list_boxes, write
from resight.encode.descriptors.regions.file import read_boxes
from resight.errors import ManifestError
from resight.types import Dataset, ImageRef, Judgement

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
    write(tmp_path / "boxes.csv", boxes)
    spans, rows = read_boxes(tmp_path / "boxes.csv")
    assert {name: rows[slice(*span), :4].tolist() for name, span in spans.items()} == {
        name: np.array(some).tolist() for name, some in boxes.items()
    }
    assert (tmp_path / "boxes.csv").read_text().splitlines()[0] == "id,x0,y0,x1,y1"


def test_a_data_set_without_boxes_is_refused() -> None:
    with pytest.raises(ManifestError, match="walls does not say where things are"):
        list_boxes(Dataset("walls", REFS, (), {"q": Judgement({"a.jpg": 1})}))
