"""Settings of the index `late`: each takes effect, on disk too, and those that contradict each other are refused.

The index `late`: exact answers, what it refuses, and what it takes of memory and disk.
"""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.token_rows import make_tokens, score_by_hand

from resight import index, kernels
from resight.errors import CollectionError, InputError, RecipeError, SpaceMismatch
from resight.index.maxsim import MaxSimSearcher
from resight.kernels import dispatch, pack_files
from resight.types import Descriptors

QUERY = make_tokens([5], seed=100)


def create(folder: Path, images: Descriptors, **settings: Any) -> MaxSimSearcher:
    """The index, opened from disk as a later process would."""
    folder.mkdir(exist_ok=True)
    plugin = index.build("maxsim", **settings)
    plugin.create(lambda: iter([images]), folder)
    searcher = plugin.open(folder)
    assert isinstance(searcher, MaxSimSearcher)
    return searcher


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"exact": True, "cascade": True}, "a cascade cannot be exact"),
        ({"exact": True, "keep": "none"}, "an exact answer needs stored tokens"),
        ({"exact": True, "keep": "none", "kind": "pq"}, "an exact answer needs stored tokens"),
        ({"cascade": True, "cascade_books": 3, "cascade_dims": 8}, "the first pass of the cascade is given twice"),
        ({"m": 4}, "m would have no effect"),
        ({"kind": "fp16", "bits": 8, "train_on": "a*"}, "bits, train_on would have no effect"),
        ({"kind": "fp32", "plain": True}, "plain would have no effect"),
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
        index.build("maxsim", **settings)


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
def test_an_answer_states_whether_it_is_proven(tmp_path: Path, settings: dict[str, Any], proven: bool):
    searcher = create(tmp_path, make_tokens([4] * 100), **settings)
    for allowed in (None, frozenset({"003", "050"})):
        proof = searcher.search(QUERY, 5, allowed).proof
        assert proof
        assert proof.startswith("Not proven") != proven
        assert ("resight exactness" in proof) != proven


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
    assert wide.bytes_per_image == pytest.approx(codes.bytes_per_image + 3 * 2 + 8 + 8, abs=0.1)
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
    assert searcher.bytes_per_image == pytest.approx(32 * bytes_a_token + bounds, abs=10)


def test_plain_codes_take_four_bytes_less_per_token_and_prove_the_same_answer(tmp_path: Path):
    images = make_tokens([32] * 20)
    centred, plain = (create(tmp_path / str(value), images, plain=value) for value in (False, True))
    assert centred.bytes_per_image - plain.bytes_per_image == 4 * 32
    first, second = (searcher.search(QUERY, 20) for searcher in (centred, plain))
    assert (first.ids, first.scores.tolist()) == (second.ids, second.scores.tolist())
    codes = create(tmp_path / "codes", images, plain=True, exact=False).search(QUERY, 20)
    truth = score_by_hand(QUERY, images)
    assert codes.scores == pytest.approx([truth[name] for name in codes.ids], abs=0.01)
    assert codes.scores.tolist() != [truth[name] for name in codes.ids]


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
        plugin = index.build("maxsim", **settings)
        plugin.create(lambda: iter(()), tmp_path / str(number))
        assert plugin.open(tmp_path / str(number)).search(QUERY, 5).ids == ()


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_exact_answers_are_those_of_the_formula_in_every_kind(tmp_path: Path, kind: str):
    images = make_tokens([1 + number % 7 for number in range(300)])
    searcher = index.build("maxsim", kind=kind, keep="fp32").create(lambda: iter([images]), tmp_path)
    for seed in range(5):
        query = make_tokens([5], seed=100 + seed)
        truth = score_by_hand(query, images)
        found = searcher.search(query, 10)
        assert list(found.ids) == sorted(truth, key=lambda name: (-truth[name], name))[:10]
        assert found.scores == pytest.approx([truth[name] for name in found.ids], abs=1e-5)


def test_an_image_without_tokens_scores_0_and_is_listed(tmp_path: Path):
    images = make_tokens([3, 0, 2])
    searcher = index.build("maxsim").create(lambda: iter([images]), tmp_path)
    found = searcher.search(make_tokens([2], seed=9), 3)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True))["001"] == 0


@pytest.mark.parametrize("settings", [{}, {"exact": False}, {"cascade": True, "cascade_dims": 2}])
def test_an_image_without_tokens_comes_before_those_that_score_less_than_0(tmp_path: Path, settings: dict):
    axes = np.eye(4, dtype=np.float32)
    rows = Descriptors(("a", "b", "c"), np.stack([-axes[0], axes[0]]), np.array([0, 2], np.int32))
    searcher = index.build("maxsim", **settings).create(lambda: iter([rows]), tmp_path)
    query = Descriptors(("q",), axes[:1], np.zeros(1, np.int32))
    assert searcher.search(query, 2).ids == ("c", "b")
    assert searcher.search(query, 3, frozenset("ab")).ids == ("b", "a")


def test_a_query_without_tokens_finds_everything_equally_good(tmp_path: Path):
    searcher = index.build("maxsim").create(lambda: iter([make_tokens([3, 2, 1])]), tmp_path)
    found = searcher.search(make_tokens([0], seed=1), 2)
    assert (found.ids, found.scores.tolist(), found.proof) == (("000", "001"), [0, 0], "")


def test_only_what_is_allowed_is_found(tmp_path: Path):
    images = make_tokens([4] * 20)
    searcher = index.build("maxsim").create(lambda: iter([images]), tmp_path)
    found = searcher.search(make_tokens([4], seed=3), 5, frozenset({"004", "011"}))
    assert set(found.ids) == {"004", "011"}


def test_of_equal_scores_at_the_cut_the_first_ids_come_in_however_they_were_stored(tmp_path: Path):
    token = np.ones((1, 4), np.float32) / 2
    ids = [f"{number:02}" for number in np.random.default_rng(0).permutation(60)]
    chunks = [Descriptors((name,), token, np.zeros(1, np.int32)) for name in ids]
    searcher = index.build("maxsim").create(lambda: iter(chunks), tmp_path)
    assert searcher.search(replace(chunks[0], ids=("q",)), 3).ids == ("00", "01", "02")


def test_visual_words_are_refused(tmp_path: Path):
    rows = Descriptors(("a",), np.zeros((1, 2), np.uint8), np.zeros(1, np.int32), words=np.zeros(1, np.int32))
    with pytest.raises(RecipeError, match="needs tokens"):
        index.build("maxsim").create(lambda: iter([rows]), tmp_path)


@pytest.mark.parametrize("other", [make_tokens([2], dimensions=8, space="a"), make_tokens([2], space="b")])
def test_rows_of_two_kinds_are_refused_with_both(tmp_path: Path, other: Descriptors):
    chunks = [make_tokens([2, 2], space="a"), replace(other, ids=("other",))]
    with pytest.raises(SpaceMismatch, match="16 dimensions, space 'a'"):
        index.build("maxsim").create(lambda: iter(chunks), tmp_path)


def test_a_query_of_another_space_or_of_other_dimensions_is_refused_with_both(tmp_path: Path):
    plugin = index.build("maxsim")
    plugin.create(lambda: iter([make_tokens([2, 2], space="tokens #1")]), tmp_path)
    searcher = plugin.open(tmp_path)
    with pytest.raises(SpaceMismatch) as refusal:
        searcher.search(make_tokens([2], space="tokens #2"), 1)
    assert (refusal.value.expected, refusal.value.actual) == ("tokens #1", "tokens #2")
    with pytest.raises(InputError, match="of 8 dimensions") as mismatch:
        searcher.search(make_tokens([2], dimensions=8, space="tokens #1"), 1)
    assert "16 dimensions" in mismatch.value.expected


def test_ids_and_pack_that_do_not_belong_together_are_refused(tmp_path: Path):
    plugin = index.build("maxsim")
    plugin.create(lambda: iter([make_tokens([2, 2])]), tmp_path)
    (tmp_path / "images.json").write_text('{"space": "", "ids": ["a"]}')
    with pytest.raises(CollectionError, match="2 ids"):
        plugin.open(tmp_path)


@pytest.mark.parametrize(
    "settings", [{"kind": "fp32"}, {"kind": "pq", "m": 8, "keep": "fp16"}, {"cascade": True, "cascade_dims": 8}]
)
def test_tokens_are_written_once_and_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict
):
    """Twice as many images take twice the disk and little more memory: samples are of one size."""
    part = make_tokens([64] * 64, dimensions=32)  # half a MiB; 17 of them are more than any sample
    written: list[int] = []
    monkeypatch.setattr(np, "save", lambda path, array, save=np.save: (written.append(array.nbytes), save(path, array)))
    monkeypatch.setattr(pack_files, "SMALL_BYTES", 0)  # small arrays would be read at the end

    def measure(parts: int, folder: Path) -> int:
        folder.mkdir()

        def chunks() -> Iterator[Descriptors]:
            return (replace(part, ids=tuple(f"{number}/{name}" for name in part.ids)) for number in range(parts))

        tracemalloc.start()
        index.build("maxsim", **settings).create(chunks, folder)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert measure(34, tmp_path / "two") - measure(17, tmp_path / "one") < 3 << 20  # of 8.5 MiB more
    assert max(written) < 1 << 20
    assert {path.name for path in (tmp_path / "two").iterdir()} <= {"pack", "small", "images.json"}


@pytest.mark.skipif(kernels.implementation() == "numpy", reason="the kernels are not compiled")
@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_a_list_of_images_is_read_from_a_map_whose_pages_are_asked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setattr(pack_files, "SMALL_BYTES", 0)  # small arrays would be read
    searcher = index.build("maxsim", kind=kind, keep="none").create(lambda: iter([make_tokens([4] * 20)]), tmp_path)
    asked: list[tuple[bool, list[int] | None]] = []

    def note(_module, tokens, _offsets, rows):
        asked.append((isinstance(tokens, np.memmap), None if rows is None else rows.tolist()))

    monkeypatch.setattr(dispatch, "prefetch_pages", note)
    searcher.search(make_tokens([4], seed=1), 3, frozenset({"011", "004", "015"}))
    assert asked == [(True, [4, 11, 15])] * (3 if kind == "int8" else 1)  # codes, their steps and what to add
