"""Settings of the index `late`: each takes effect, on disk too, and those that contradict each other are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from token_rows import make_tokens

from resight import index, kernels
from resight.errors import RecipeError
from resight.index.maxsim import LateSearcher
from resight.types import Descriptors

QUERY = make_tokens([5], seed=100)


def create(folder: Path, images: Descriptors, **settings: Any) -> LateSearcher:
    """The index, opened from disk as a later process would."""
    folder.mkdir(exist_ok=True)
    plugin = index.build("late", **settings)
    plugin.create(lambda: iter([images]), folder)
    searcher = plugin.open(folder)
    assert isinstance(searcher, LateSearcher)
    return searcher


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"exact": True, "cascade": True}, "a cascade cannot be exact"),
        ({"exact": True, "keep": "none"}, "an exact answer needs tokens that are kept"),
        ({"exact": True, "keep": "none", "kind": "pq"}, "an exact answer needs tokens that are kept"),
        ({"cascade": True, "cascade_books": 3, "cascade_dims": 8}, "the first pass of the cascade is given twice"),
        ({"m": 4}, "m would change nothing"),
        ({"kind": "fp16", "bits": 8, "train_on": "a*"}, "bits, train_on would change nothing"),
        ({"cascade": True, "cascade_keep": [10]}, "cascade_keep does not fit"),
        ({"cascade": True, "cascade_keep": [10, 20]}, "cascade_keep does not fit"),
        ({"cascade": True, "cascade_keep": [10, 0]}, "cascade_keep = 0 is out of range"),
        ({"kind": "pq", "bits": 5}, "bits does not fit"),
        ({"kind": "pq", "train_images": 0}, "train_images = 0 is out of range"),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], problem: str):
    with pytest.raises(RecipeError, match=problem):
        index.build("late", **settings)


@pytest.mark.parametrize(
    ("settings", "proven"),
    [
        ({}, True),
        ({"kind": "pq"}, True),
        ({"kind": "fp32", "keep": "none"}, True),
        ({"kind": "fp32", "exact": False}, True),  # tokens as they are need no proof
        ({"kind": "fp16", "keep": "none"}, True),
        ({"kind": "fp16", "exact": False}, False),
        ({"keep": "none"}, False),
        ({"exact": False}, False),
        ({"cascade": True, "cascade_dims": 8}, False),
        ({"cascade": True, "cascade_dims": 8, "exact": False}, False),
    ],
    ids=str,
)
def test_an_answer_says_whether_it_is_proven(tmp_path: Path, settings: dict[str, Any], proven: bool):
    searcher = create(tmp_path, make_tokens([4] * 100), **settings)
    for allowed in (None, frozenset({"003", "050"})):
        proof = searcher.search(QUERY, 5, allowed).proof
        assert proof
        assert proof.startswith("Not proven") != proven
        assert ("resight identity" in proof) != proven


def test_the_proof_of_a_filtered_answer_is_about_the_images_that_passed(tmp_path: Path):
    found = create(tmp_path, make_tokens([4] * 100)).search(QUERY, 5, frozenset({"003", "050", "unknown"}))
    assert found.proof == "All 2 images that were allowed were scored in fp32."


def test_a_cascade_that_keeps_all_images_gives_the_exact_answer_and_one_that_keeps_few_does_not(tmp_path: Path):
    images = make_tokens([1 + number % 7 for number in range(300)])
    exact = create(tmp_path / "exact", images)
    wide = create(tmp_path / "wide", images, cascade=True, cascade_dims=4, cascade_keep=[300, 300])
    narrow = create(tmp_path / "narrow", images, cascade=True, cascade_dims=4, cascade_keep=[12, 10])
    queries = [make_tokens([5], seed=200 + seed) for seed in range(10)]
    answers = [[part.search(query, 10).ids for query in queries] for part in (exact, wide, narrow)]
    assert answers[1] == answers[0]
    assert answers[2] != answers[0]
    ranking = narrow.search(queries[0], 10)
    truth = exact.search(queries[0], 300)
    scores = dict(zip(truth.ids, truth.scores.tolist(), strict=True))
    assert ranking.scores == pytest.approx([scores[name] for name in ranking.ids])  # by the kept tokens


def test_a_cascade_can_still_prove_and_obeys_a_filter(tmp_path: Path):
    images = make_tokens([3] * 50)
    searcher = create(tmp_path, images, cascade=True, cascade_dims=4, cascade_keep=[5, 2])
    ranking, certificate = searcher.prove(QUERY, 3)
    assert certificate is not None and certificate.images == 50
    assert ranking.proof == certificate.reason
    assert set(searcher.search(QUERY, 5, frozenset({"007", "031"})).ids) == {"007", "031"}


def test_residual_codes_can_be_the_first_pass_and_8_bits_the_last_word(tmp_path: Path):
    images = make_tokens([3] * 300)
    settings = {"cascade": True, "cascade_books": 2, "keep": "none"}
    wide = create(tmp_path / "wide", images, cascade_keep=[300, 300], **settings)
    codes = create(tmp_path / "codes", images, keep="none")
    assert wide.search(QUERY, 20).ids == codes.search(QUERY, 20).ids
    assert wide.bytes_an_image == pytest.approx(codes.bytes_an_image + 3 * 2 + 8 + 8, abs=0.1)
    assert "a cascade" in wide.search(QUERY, 20).proof
    assert not wide.can_prove
    narrow = create(tmp_path / "narrow", images, cascade_keep=[10, 10], **settings)
    assert narrow.search(QUERY, 10).ids != codes.search(QUERY, 10).ids
    assert set(narrow.search(QUERY, 5, frozenset({"007", "031"})).ids) == {"007", "031"}


def test_a_first_pass_of_too_many_dimensions_is_refused(tmp_path: Path):
    with pytest.raises(RecipeError, match="at most 16"):
        create(tmp_path, make_tokens([3] * 20), cascade=True)


@pytest.mark.parametrize(("m", "bits", "bytes_a_token"), [(0, 8, 4), (8, 8, 8), (8, 4, 4), (16, 8, 16)])
def test_parts_and_bits_decide_how_large_the_codes_are(tmp_path: Path, m: int, bits: int, bytes_a_token: int):
    searcher = create(tmp_path, make_tokens([32] * 20), kind="pq", m=m, bits=bits)
    bounds = 4 * 8  # offsets, those of the codes, and two floats; a little more for the last offset
    assert searcher.bytes_an_image == pytest.approx(32 * bytes_a_token + bounds, abs=10)


def read_centroids(folder: Path) -> np.ndarray:
    return kernels.open(folder / "pack").codes.arrays()["centroids"]


def test_only_the_images_that_are_named_train_the_codes(tmp_path: Path):
    images = make_tokens([20] * 30)
    create(tmp_path / "some", images, kind="pq", m=4, train_on="01*", seed=3)
    other = np.repeat([not name.startswith("01") for name in images.ids], 20)
    changed = Descriptors(images.ids, np.where(other[:, None], -images.vectors, images.vectors), images.owners)
    create(tmp_path / "same", changed, kind="pq", m=4, train_on="01*", seed=3)
    create(tmp_path / "all", changed, kind="pq", m=4, seed=3)
    assert np.array_equal(read_centroids(tmp_path / "some"), read_centroids(tmp_path / "same"))
    assert not np.array_equal(read_centroids(tmp_path / "some"), read_centroids(tmp_path / "all"))


def test_a_sample_of_images_trains_the_codes_by_its_seed(tmp_path: Path):
    images = make_tokens([20] * 30)
    for name, settings in {
        "few": {"train_images": 2, "seed": 1},
        "again": {"train_images": 2, "seed": 1},
        "others": {"train_images": 2, "seed": 2},
    }.items():
        create(tmp_path / name, images, kind="pq", m=4, **settings)
    assert np.array_equal(read_centroids(tmp_path / "few"), read_centroids(tmp_path / "again"))
    assert not np.array_equal(read_centroids(tmp_path / "few"), read_centroids(tmp_path / "others"))


def test_a_pattern_that_matches_nothing_is_refused_with_ids_as_they_are(tmp_path: Path):
    with pytest.raises(RecipeError, match="0 of 30 match; ids are like '000', '001', '002'"):
        create(tmp_path, make_tokens([20] * 30), kind="pq", m=4, train_on="night/*")
    with pytest.raises(RecipeError, match="1 of 3 match, none of them with tokens"):
        create(tmp_path / "bare", make_tokens([20, 0, 20]), kind="pq", m=4, train_on="001")


def test_an_empty_collection_can_have_any_settings(tmp_path: Path):
    for number, settings in enumerate(({"kind": "pq"}, {"cascade": True}, {"keep": "none"})):
        (tmp_path / str(number)).mkdir()
        plugin = index.build("late", **settings)
        plugin.create(lambda: iter(()), tmp_path / str(number))
        assert plugin.open(tmp_path / str(number)).search(QUERY, 5).ids == ()
