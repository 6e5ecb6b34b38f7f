import pickle
from pathlib import Path

import pytest
from support.samples import sfm120k as sample

from resight.data import sets
from resight.data.sets.sfm120k import read_matching_pairs
from resight.errors import ManifestError
from resight.types import Judgement


def write_truth(folder: Path, part: str = "val", **changes: object) -> Path:
    truth = sample.make_truth()
    truth[part] = {**truth[part], **changes}
    (folder / "retrieval-SfM-120k.pkl").write_bytes(pickle.dumps(truth))
    return folder


def test_train_has_labels_by_cluster_and_no_queries(tmp_path: Path):
    dataset = sets.build("sfm120k").load(write_truth(tmp_path))
    assert [ref.attributes["label"] for ref in dataset.database] == ["3", "3", "3", "8", "8"]
    assert dataset.queries == ()
    assert dataset.database[4].path == tmp_path / "ims" / "ff" / "ee" / "dd" / "04aabbccddeeff"


def test_both_parts_together_number_their_clusters_apart(tmp_path: Path):
    """Clusters 3 and 8 of train and 1 and 5 of val; a cluster 3 of val would be another one."""
    dataset = sets.build("sfm120k", split="all").load(write_truth(tmp_path, cluster=[3, 3, 3, 3, 5, 5]))
    assert {str(ref.attributes["label"]) for ref in dataset.database} == {"train/3", "train/8", "val/3", "val/5"}
    assert len(dataset.database) == 11 and dataset.queries == ()
    assert sets.build("sfm120k", split="all").published.counts == {"database": 98_045, "labels": 713}


def test_an_image_in_both_parts_is_refused(tmp_path: Path):
    cids = sample.make_truth()["train"]["cids"]
    truth = write_truth(tmp_path, cids=[*cids, "ffeeddccbbaa00"])
    with pytest.raises(ManifestError, match="share images"):
        sets.build("sfm120k", split="all").load(truth)


def test_matching_pairs_of_all_parts(tmp_path: Path):
    train, val = (sample.make_truth()[part]["cids"] for part in ("train", "val"))
    assert read_matching_pairs(write_truth(tmp_path)) == [
        (train[0], train[1]),
        (train[3], train[4]),
        (val[0], val[1]),
        (val[4], val[5]),
        (val[0], val[2]),
    ]


def test_a_query_of_val_has_its_pairs_as_positives_and_ignores_the_rest_of_its_cluster(tmp_path: Path):
    dataset = sets.build("sfm120k", split="val").load(write_truth(tmp_path))
    ids = [ref.id for ref in dataset.database]
    assert dataset.queries == (dataset.database[0], dataset.database[4])
    assert dataset.judgements == {
        ids[0]: Judgement({ids[1]: 1, ids[2]: 1}, frozenset({ids[0], ids[3]})),
        ids[4]: Judgement({ids[5]: 1}, frozenset({ids[4]})),
    }


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cluster": [1, 1]}, "do not match"),
        ({"cids": []}, "do not match"),
        ({"cids": ["ffeeddccbbaa00"] * 6}, "do not match"),
        ({"cids": [f"../../secret{number}" for number in range(6)]}, "not the name of an image"),
        ({"cids": [f"a{number}" for number in range(6)]}, "not the name of an image"),
        ({"qidxs": [0]}, "not pairs"),
        ({"qidxs": [0, 4, 6]}, "'qidxs'"),
        ({"pidxs": None}, "'pidxs'"),
    ],
)
def test_lists_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, object], problem: str):
    with pytest.raises(ManifestError, match=problem) as caught:
        sets.build("sfm120k", split="val").load(write_truth(tmp_path, **changes))
    assert caught.value.expected and caught.value.fix


def test_a_pickle_without_the_split_is_refused(tmp_path: Path):
    (tmp_path / "retrieval-SfM-120k.pkl").write_bytes(pickle.dumps({"train": {}}))
    with pytest.raises(ManifestError, match="no part 'val'"):
        sets.build("sfm120k", split="val").load(tmp_path)
