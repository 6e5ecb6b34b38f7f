from pathlib import Path

import numpy as np
import pytest
from support.samples import gldv2 as sample

from resight.data import sets
from resight.data.sets.gldv2 import COUNTS, list_removed
from resight.errors import ManifestError
from resight.types import Judgement

ID = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def test_the_landmarks_of_table_a12_are_18_with_1565_images():
    removed = list_removed()
    assert len({landmark.gid for landmark in removed}) == 18
    assert sum(landmark.images for landmark in removed) == 1565
    assert {landmark.gid: landmark.name for landmark in removed}["146388"] == "Basilique du Sacré-Cœur de Montmartre"
    clean, rest = COUNTS["clean"], COUNTS["rgldv2_clean"]
    assert clean["database"] - rest["database"] == 1565
    assert clean["labels"] - rest["labels"] == 18


def test_train_and_clean_are_databases_with_labels(folder: Path):
    train = sets.build("gldv2", which="train").load(folder)
    clean = sets.build("gldv2").load(folder)
    assert [ref.attributes["label"] for ref in train.database] == ["7", "7", "7", "47378", "9"]
    assert [ref.attributes["label"] for ref in clean.database] == ["7", "7", "7", "47378"]
    assert train.database[:4] == clean.database
    assert clean.database[1].path == folder / "train" / "0" / "0" / "1" / "00100000000000a1.jpg"
    assert (train.queries, train.judgements) == ((), {})


def test_the_revisited_set_lacks_the_landmarks_of_the_table(folder: Path):
    dataset = sets.build("gldv2", which="rgldv2_clean").load(folder)
    assert {ref.attributes["label"] for ref in dataset.database} == {"7"}


def test_private_and_public_queries_are_told_apart_and_ignored_ones_are_none(folder: Path):
    private = sets.build("gldv2", which="retrieval").load(folder)
    assert [ref.id for ref in private.database] == sample.INDEX
    assert private.judgements == {"33300000000000c0": Judgement({sample.INDEX[0]: 1, sample.INDEX[2]: 1})}
    assert private.queries[0].path == folder / "test" / "3" / "3" / "3" / "33300000000000c0.jpg"
    both = sets.build("gldv2", which="retrieval", usage="both").load(folder)
    assert [ref.id for ref in both.queries] == ["33300000000000c0", "33300000000000c1"]


def test_a_landmark_of_more_images_than_a_csv_cell_may_hold_is_read(tmp_path: Path):
    ids = [f"{number:016x}" for number in range(10_000)]  # 170,000 characters; Python's csv stops at 131,072
    (tmp_path / "train_clean.csv").write_text(f"landmark_id,images\n5,{' '.join(ids)}\n")
    assert len(sets.build("gldv2").load(tmp_path).database) == 10_000


@pytest.mark.parametrize(
    ("which", "file", "text", "problem"),
    [
        ("train", "train.csv", "a,b\n", "line 1: wrong header"),
        ("train", "train.csv", f"id,url,landmark_id\n{ID},u,1\nxyz,u,1\n", "line 3: not an id"),
        ("train", "train.csv", f"id,url,landmark_id\n{ID},u,one\n", "line 2: not the number of a landmark"),
        ("train", "train.csv", f"id,url,landmark_id\n{ID}\n", "line 2: not the number of a landmark"),
        ("train", "train.csv", f"id,url,landmark_id\n{ID},u,1\n{ID},u,2\n", "2 ids, 1 of them different"),
        ("clean", "train_clean.csv", f"landmark_id,images\n\n3,{ID} 4\n", "line 3: not an id"),
        ("clean", "train_clean.csv", "landmark_id,images\n", "is not a list of images"),
        ("rgldv2_clean", "train_clean.csv", f"landmark_id,images\n47378,{ID}\n", "is not a list of images"),
        ("retrieval", "index.csv", "id\nxyz\n", "line 2: not an id"),
        (
            "retrieval",
            "retrieval_solution_v2.1.csv",
            f"id,images,Usage\n{ID},{ID},Private\n",
            "line 2: an image is not",
        ),
        ("retrieval", "retrieval_solution_v2.1.csv", f"id,images,Usage\n{ID},None,Secret\n", "line 2: unknown usage"),
        ("retrieval", "retrieval_solution_v2.1.csv", None, "cannot be read"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(folder: Path, which: str, file: str, text: str | None, problem: str):
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text)
    with pytest.raises(ManifestError, match=problem) as caught:
        sets.build("gldv2", which=which).load(folder)
    assert str(folder / file) in caught.value.problem
    assert caught.value.expected and caught.value.fix


def test_a_table_that_is_not_text_is_refused(tmp_path: Path):
    (tmp_path / "train_clean.csv").write_bytes(b"landmark_id,images\n\xff\xfe\n")
    with pytest.raises(ManifestError, match="cannot be read"):
        sets.build("gldv2").load(tmp_path)
