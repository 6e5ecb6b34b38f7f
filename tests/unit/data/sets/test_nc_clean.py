from pathlib import Path

import numpy as np
import pytest
from support.samples import nc_clean as sample

from resight.data import sets
from resight.errors import InputError, ManifestError
from resight.types import Dataset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def list_labels(dataset: Dataset) -> dict[str, object]:
    return {ref.id: ref.attributes["label"] for ref in dataset.database}


def test_both_lists_give_labels_and_files_by_the_last_part_of_their_url(root: Path):
    dataset = sets.build("nc_clean").load(root)
    assert list_labels(dataset) == {
        "0/a.jpg": "0",
        "0/b b.jpg": "0",
        "17/c.jpg": "17",
        "580/c.jpg": "580",
        "17/d.jpeg": "17",
    }
    assert dataset.database[-1].path == root / "images" / "d.jpeg"
    assert (dataset.queries, dataset.skipped) == ((), ())


def test_one_list_alone(root: Path):
    assert list(list_labels(sets.build("nc_clean", split="val").load(root))) == ["17/d.jpeg"]


def test_listed_images_without_a_file_are_skipped_and_named(root: Path):
    (root / "images" / "17" / "c.jpg").unlink()
    with (root / "annotation_clean_val.txt").open("a") as file:
        file.write("http://farm2.example.org/9/a.jpg 0 1 2 3 4\n")
    dataset = sets.build("nc_clean").load(root)
    assert "17/c.jpg" not in list_labels(dataset)
    reasons = {Path(item.path).relative_to(root / "images").as_posix(): item.reason for item in dataset.skipped}
    assert reasons == {"17/c.jpg": "no such file", "0/a.jpg": "its URL is listed twice"}


def test_without_lists_a_folder_is_a_landmark(root: Path):
    for name in ("train", "val"):
        (root / f"annotation_clean_{name}.txt").unlink()
    dataset = sets.build("nc_clean").load(root)
    assert sorted(list_labels(dataset).values()) == ["0", "0", "17", "580"]
    assert [item.reason for item in dataset.skipped] == ["it is in no landmark's folder"]
    with pytest.raises(ManifestError, match=r"annotation_clean_train\.txt is missing"):
        sets.build("nc_clean", split="train").load(root)


@pytest.mark.parametrize(
    "line",
    ["http://a/b.jpg 3", "http://a/b.jpg tower 1 2 3 4", "http://a/ 3 1 2 3 4", "http://a/..%2f..%2fb 3 1 2 3 4"],
)
def test_a_line_that_is_no_image_is_refused_by_its_number(root: Path, line: str):
    (root / "annotation_clean_val.txt").write_text(f"\n{line}\n")
    with pytest.raises(ManifestError, match=r"annotation_clean_val\.txt, line 2") as caught:
        sets.build("nc_clean").load(root)
    assert caught.value.expected and caught.value.fix


def test_lists_without_any_image_are_refused(root: Path):
    for path in (root / "images").rglob("*.jp*"):
        path.unlink()
    with pytest.raises(InputError, match="there are no images"):
        sets.build("nc_clean").load(root)
