from pathlib import Path

import numpy as np
import pytest
from support.samples import oxford_paris as sample

from resight.data import sets
from resight.data.check import check_source
from resight.data.sets.oxford_paris import DAMAGED
from resight.errors import ManifestError
from resight.types import Judgement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def test_good_and_ok_are_positives_and_junk_is_ignored(folder: Path):
    dataset = sets.build("oxford_paris").load(folder)
    names = [f"all_souls_{number:06d}" for number in range(6)]
    assert [ref.id for ref in dataset.database] == names
    assert dataset.judgements == {
        "all_souls_1": Judgement({names[0]: 1, names[1]: 1, names[3]: 1}, frozenset({names[4]}))
    }


def test_the_box_of_a_query_is_that_of_its_file_whose_prefix_is_no_part_of_the_name(folder: Path):
    (query,) = sets.build("oxford_paris").load(folder / "oxford5k").queries
    assert (query.id, query.path.name, query.box) == ("all_souls_1", "all_souls_000000.jpg", (4.5, 2.0, 60.0, 40.5))


def test_images_of_paris_that_came_damaged_are_neither_in_the_database_nor_in_the_truth(folder: Path):
    source = sets.build("oxford_paris", which="paris6k")
    dataset = source.load(folder)
    assert len(DAMAGED) == 20
    assert (folder / "paris6k" / "jpg" / "louvre" / "paris_louvre_000136.jpg").exists()
    assert len(dataset.database) == 6
    assert set(dataset.judgements["louvre_1"].grades) == {f"paris_louvre_00000{number}" for number in (0, 1, 3)}
    assert not check_source(source, folder).unreadable


def test_the_images_that_were_left_out_are_in_neither_list_of_the_revisited_paris(real_data: Path):
    if not (real_data / "revisited" / "gnd_rparis6k.pkl").is_file():
        pytest.skip("the real ground truth is not there")
    revisited = sets.build("revisited", which="rparis6k").load(real_data / "revisited")
    names = {ref.id for ref in (*revisited.database, *revisited.queries)}
    assert len(names) == sets.build("oxford_paris", which="paris6k").published.counts["database"]
    assert not names & DAMAGED


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("all_souls_1_query.txt", "", "not a query"),
        ("all_souls_1_query.txt", "oxc1_all_souls_000009 0 0 9 9", "line 1: the query's image is missing"),
        ("all_souls_1_query.txt", "oxc1_all_souls_000000 0 0 9", "line 1: not a box"),
        ("all_souls_1_good.txt", "all_souls_000000\n\nradcliffe_000000\n", "good.txt, line 3: an image is missing"),
        ("all_souls_1_junk.txt", None, "junk.txt cannot be read"),
        ("more/keble_1_query.txt", "oxc1_all_souls_000000 0 0 9 9", None),  # two folders deep: not looked at
        ("../gt2/keble_1_query.txt", "oxc1_all_souls_000000 0 0 9 9", "has no ground truth"),
    ],
)
def test_truth_that_does_not_fit_is_refused_with_its_line(
    folder: Path, file: str, text: str | None, problem: str | None
):
    path = folder / "oxford5k" / "gt" / file
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if problem is None:
        assert len(sets.build("oxford_paris").load(folder).queries) == 1
    else:
        with pytest.raises(ManifestError, match=problem):
            sets.build("oxford_paris").load(folder)


def test_a_name_that_two_folders_have_is_refused(folder: Path):
    jpg = folder / "oxford5k" / "jpg"
    (jpg / "more").mkdir()
    (jpg / "more" / "all_souls_000000.jpg").write_bytes((jpg / "all_souls_000000.jpg").read_bytes())
    with pytest.raises(ManifestError, match="'all_souls_000000' twice"):
        sets.build("oxford_paris").load(folder)
