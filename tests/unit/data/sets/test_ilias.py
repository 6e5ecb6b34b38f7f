import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.samples import ilias as sample

from resight.data import sets
from resight.errors import InputError, ManifestError
from resight.types import Dataset

FIRST = "bold_bimp_000/query/Q000_00.jpg"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("ilias", **settings).load(root)


def test_positives_are_those_of_the_instance_with_the_box_around_all_boxes(root):
    judgement = load(root).judgements[FIRST]
    assert judgement.grades == {"bold_bimp_000/pos/P000_00.jpg": 1, "bold_bimp_000/pos/P000_01.jpg": 1}
    assert judgement.boxes == {
        "bold_bimp_000/pos/P000_00.jpg": (2, 3, 42, 38),  # 2 3 10 20 and 30 8 12 30
        "bold_bimp_000/pos/P000_01.jpg": (5, 5, 35, 35),
    }


def test_the_lists_say_what_counts_and_what_is_known_of_it(root):
    (root / "image_ids" / "positive_ids.txt").write_text(
        "zippy_zoot_001/pos/P001_01.jpg,0.5,3\nbold_bimp_000/pos/P000_00.jpg,0.25,7\n"
    )
    database = load(root).database
    assert [ref.id for ref in database] == ["zippy_zoot_001/pos/P001_01.jpg", "bold_bimp_000/pos/P000_00.jpg"]
    assert database[0].attributes == {"label": "zippy_zoot_001", "scale": 0.5, "clutter": 3}
    assert load(root).judgements[FIRST].grades == {"bold_bimp_000/pos/P000_00.jpg": 1}


def test_without_lists_every_image_counts(root):
    listed = load(root)
    shutil.rmtree(root / "image_ids")
    walked = load(root)
    assert walked.judgements == listed.judgements
    assert [ref.id for ref in walked.database] == sorted(ref.id for ref in listed.database)
    assert walked.database[0].attributes == {"label": "bold_bimp_000"}


def test_a_query_is_cut_to_its_box_only_where_asked_for(root):
    assert load(root).queries[0].box is None
    assert load(root, query_box=True).queries[0].box == (4, 4, 54, 44)


def test_distractors_come_from_a_folder_or_a_list_which_may_be_compressed(root):
    ids = [f"distractors/{name}" for name in sample.DISTRACTORS]
    assert [ref.id for ref in load(root, distractors="yfcc100m").database[4:]] == ids
    assert [ref.id for ref in load(root, distractors="yfcc100m/mini.txt").database[4:]] == ids[1:]
    path = root / "yfcc100m" / "mini.txt.gz"
    path.write_bytes(gzip.compress(b"00001/c.jpg\n"))
    (ref,) = load(root, distractors="yfcc100m/mini.txt.gz").database[4:]
    assert ref.path.is_file()
    assert not any(id.startswith("distractors/") for id in load(root, distractors="yfcc100m").judgements[FIRST].grades)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\n\n"])
def test_an_empty_or_broken_list_of_distractors_is_refused(root, content):
    (root / "list.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"list\.txt"):
        load(root, distractors="list.txt")


@pytest.mark.parametrize(
    "line", ["P000_00.jpg", "a/pos/b/c.jpg", "../pos/b.jpg", "a/query/Q.jpg", "a/pos/b.jpg,x,1", "a/pos/b.jpg,1"]
)
def test_a_broken_line_is_refused_with_its_number(root, line):
    path = root / "image_ids" / "positive_ids.txt"
    path.write_text(f"\n{path.read_text()}{line}\n")
    with pytest.raises(ManifestError, match=r"positive_ids\.txt, line 6"):
        load(root)


def test_an_id_twice_is_refused(root):
    path = root / "image_ids" / "image_query_ids.txt"
    path.write_text(path.read_text() * 2)
    with pytest.raises(ManifestError, match=r"image_query_ids\.txt, line 4"):
        load(root)


def test_a_query_whose_instance_has_no_positives_is_refused(root):
    (root / "image_ids" / "image_query_ids.txt").write_text("nobody_002/query/Q002_00.jpg\n")
    with pytest.raises(ManifestError, match="nobody_002"):
        load(root)


def test_a_broken_box_is_refused_with_its_line(root):
    (root / "ilias_core/bold_bimp_000/pos/P000_01_bbox.txt").write_text("1 2 3 4\n1 2 3\n")
    with pytest.raises(ManifestError, match=r"P000_01_bbox\.txt, line 2"):
        load(root)
