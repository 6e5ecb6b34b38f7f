import pickle
from pathlib import Path

import numpy as np
import pytest
from support.samples import revisited as sample

from resight.data import sets
from resight.data.check import check_source
from resight.errors import InputError, ManifestError
from resight.types import Judgement

NAMES = [f"keble_{number:06d}" for number in range(8)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def write_truth(folder: Path, **changes: object) -> Path:
    """The truth alone, with some of its parts changed."""
    (folder / "gnd_roxford5k.pkl").write_bytes(pickle.dumps({**sample.make_truth(NAMES), **changes}))
    return folder


def change_query(**changes: object) -> list[object]:
    first, second = sample.make_truth(NAMES)["gnd"]
    return [{**first, **changes}, second]


def test_easy_is_grade_2_hard_is_grade_1_and_junk_is_ignored(folder: Path):
    dataset = sets.build("revisited").load(folder)
    assert dataset.judgements == {
        "keble_000006": Judgement(
            {"keble_000000": 2, "keble_000002": 2, "keble_000003": 1}, frozenset({"keble_000005"})
        ),
        "keble_000007": Judgement({"keble_000001": 1, "keble_000004": 1}),
    }
    assert [query.box for query in dataset.queries] == [(4.5, 2.0, 60.25, 40.0), (0.0, 0.0, 64.0, 48.0)]
    assert [ref.id for ref in dataset.database] == NAMES[:6]
    assert dataset.queries[0].path == folder / "roxford5k" / "jpg" / "keble_000006.jpg"


def test_the_truth_alone_is_enough_to_load_and_missing_images_are_reported(tmp_path: Path):
    write_truth(tmp_path)
    source = sets.build("revisited")
    assert len(source.load(tmp_path).database) == 6
    found = check_source(source, tmp_path)
    assert len(found.missing) == 8
    assert not found.ok


@pytest.mark.parametrize("given", ["../revisitop1m", "../revisitop1m/jpg", "../revisitop1m/revisitop1m.txt"])
def test_distractors_come_after_the_database_and_are_in_no_truth(folder: Path, given: str):
    plain = sets.build("revisited").load(folder)
    more = sets.build("revisited", distractors=given).load(folder)
    assert more.database[:6] == plain.database
    assert len(more.database) == 6 + len(sample.DISTRACTORS)
    assert all(ref.id.startswith("distractors/") and ref.path.is_file() for ref in more.database[6:])
    assert more.judgements == plain.judgements


def test_distractors_may_be_given_by_an_absolute_path(folder: Path):
    dataset = sets.build("revisited", distractors=str(folder / "revisitop1m" / "jpg")).load(folder / "roxford5k")
    assert [ref.id for ref in dataset.database[6:]] == [f"distractors/{name}" for name in sample.DISTRACTORS]


def test_distractors_that_are_not_there_are_refused(folder: Path):
    (folder / "none").mkdir()
    (folder / "empty.txt").touch()
    (folder / "twice.txt").write_text("0a1/0a1b.jpg\n0a1/0a1b.jpg\n")
    (folder / "binary.txt").write_bytes(b"\xff\xfe")
    for given in ("../none", "../empty.txt", "../nowhere", "../twice.txt", "../binary.txt"):
        with pytest.raises(InputError):
            sets.build("revisited", distractors=given).load(folder)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"imlist": NAMES[:3]}, "'hard'"),  # place 3 is not in a list of three
        ({"imlist": 3}, "'imlist'"),
        ({"imlist": [NAMES[0]] * 6}, "'imlist' is not a list of images"),
        ({"qimlist": NAMES[7:]}, "'gnd' does not match 'qimlist'"),
        ({"gnd": None}, "'gnd' does not match 'qimlist'"),
        ({"gnd": [3, 4]}, "'easy'"),
        ({"gnd": change_query(junk=[0])}, "judged twice"),
        ({"gnd": change_query(bbx=[1, 2, 3])}, "has no box"),
        ({"gnd": change_query(bbx=[9, 2, 3, 4])}, "inside out"),
        ({"gnd": change_query(bbx=[1, 2, float("nan"), 4])}, "inside out"),
    ],
)
def test_a_truth_that_contradicts_itself_is_refused(tmp_path: Path, changes: dict[str, object], problem: str):
    with pytest.raises(ManifestError, match=problem) as caught:
        sets.build("revisited").load(write_truth(tmp_path, **changes))
    assert "gnd_roxford5k.pkl" in caught.value.problem
    assert caught.value.expected and caught.value.fix


def test_a_truth_that_is_no_table_is_refused(tmp_path: Path):
    (tmp_path / "gnd_roxford5k.pkl").write_bytes(pickle.dumps([1]))
    with pytest.raises(ManifestError, match="'imlist'"):
        sets.build("revisited").load(tmp_path)


@pytest.mark.parametrize(
    ("which", "images", "easy", "hard", "junk"),
    [("roxford5k", 4993, 3029, 2497, 1356), ("rparis6k", 6322, 6874, 10350, 7153)],
)
def test_the_real_truth_is_as_published(which: str, images: int, easy: int, hard: int, junk: int, real_data: Path):
    root = real_data / "revisited"
    if not (root / f"gnd_{which}.pkl").is_file():
        pytest.skip("the real ground truth is not there")
    source = sets.build("revisited", which=which)
    dataset = source.load(root)
    grades = [grade for judgement in dataset.judgements.values() for grade in judgement.grades.values()]
    assert (len(dataset.database), len(dataset.queries)) == (images, 70)
    assert (grades.count(2), grades.count(1)) == (easy, hard)
    assert sum(len(judgement.ignored) for judgement in dataset.judgements.values()) == junk
    assert all(fact.ok for fact in check_source(source, root, decoding=False).facts)
