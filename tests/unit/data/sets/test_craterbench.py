import json
from pathlib import Path

import numpy as np
import pytest
from support.samples import craterbench as sample

from resight.data import sets
from resight.errors import ManifestError
from resight.types import Dataset

FIRST, SECOND, THIRD = sample.CRATERS
BOTH = {f"{crater}_{view}": 1 for crater in (SECOND, THIRD) for view in ("2x", "3x")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("craterbench", **settings).load(root)


def change(root: Path, **parts: object) -> None:
    path = root / "splits" / "test.json"
    sample.write_json(path, {**json.loads(path.read_text()), **parts})


def test_positives_are_all_views_of_every_relevant_crater(root):
    dataset = load(root)
    assert dataset.judgements["02-1-000001_q0"].grades == {f"{FIRST}_2x": 1, f"{FIRST}_3x": 1}
    assert dataset.judgements["02-1-000003_q1"].grades == BOTH
    assert dataset.database[1].attributes == {"label": FIRST, "view": "3x"}
    assert dataset.database[1].path == root / "images" / "gallery" / f"{FIRST}_3x.jpg"


def test_the_training_split_has_a_gallery_and_no_queries(root):
    dataset = load(root, split="train")
    assert ([ref.id for ref in dataset.database], dataset.queries) == ([f"{FIRST}_2x", f"{FIRST}_3x"], ())


def test_the_folder_that_holds_several_data_sets_will_do(tmp_path):
    sample.write(tmp_path / "CraterBench-R", np.random.default_rng(0))
    assert len(load(tmp_path).database) == 6


@pytest.mark.parametrize(
    "relevance",
    [
        {"02-1-000003_q1": [THIRD, SECOND]},
        {THIRD: {"raw_ids": [THIRD, "x"], "gallery_filtered": [THIRD, SECOND]}},
        [{"query_id": "02-1-000003_q1", "relevant_ids": [THIRD, SECOND]}],
        {"version": 1, "queries": [{"crater_id": THIRD, "relevant": [THIRD, SECOND]}]},
        {"relevance": {"02-1-000003_q1": [THIRD, SECOND]}},
    ],
)
def test_relevance_is_read_in_the_shapes_that_the_docstring_names(root, relevance):
    sample.write_json(root / "metadata" / "query_relevance.json", relevance)
    assert load(root).judgements["02-1-000003_q1"].grades == BOTH


def test_relevance_in_the_split_itself_wins(root):
    (root / "metadata" / "query_relevance.json").unlink()
    change(root, ground_truth={"02-1-000003_q1": [THIRD, SECOND]})
    assert load(root).judgements["02-1-000003_q1"].grades == BOTH
    items = [{"id": "q", "file": "images/query/q.jpg", "crater_id": THIRD, "relevant_crater_ids": [SECOND]}]
    change(root, query_images=items)
    assert load(root).judgements == {"q": load(root).judgements["q"]}
    assert set(load(root).judgements["q"].grades) == {f"{SECOND}_2x", f"{SECOND}_3x"}


def test_keys_of_another_name_are_listed(root):
    change(root, query_images=[{"photo": "a.jpg", "crater_id": FIRST}])
    with pytest.raises(ManifestError) as caught:
        load(root)
    assert "image_path" in caught.value.expected and "photo, crater_id" in caught.value.actual


@pytest.mark.parametrize(
    ("relevance", "actual"),
    [
        ({THIRD: {"raw_ids": [THIRD]}}, "raw_ids"),
        ({THIRD: [THIRD, "77"]}, "'77'"),
        ({"another": [THIRD]}, "another"),
        ("text", "text"),
        ([{"relevant": []}], "relevant"),
    ],
)
def test_relevance_that_says_nothing_or_names_what_is_not_there_is_refused(root, relevance, actual):
    sample.write_json(root / "metadata" / "query_relevance.json", relevance)
    with pytest.raises(ManifestError) as caught:
        load(root)
    assert actual in caught.value.actual


@pytest.mark.parametrize(
    "parts",
    [
        {"gallery_images": []},
        {"gallery_images": None},
        {"gallery_images": [{"image_id": "a", "path": "../a.jpg", "crater_id": FIRST}]},
        {"gallery_images": [{"image_id": "a", "path": "a.jpg", "crater_id": FIRST}] * 2},
        {"query_images": [3]},
    ],
)
def test_broken_splits_are_refused(root, parts):
    change(root, **parts)
    with pytest.raises(ManifestError, match=r"test\.json"):
        load(root)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff"])
def test_a_split_that_is_missing_or_no_json_is_refused(root, content):
    path = root / "splits" / "test.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ManifestError, match=r"test\.json"):
        load(root)
