import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.builders import global_rows, word_rows

from resight import index
from resight.errors import RecipeError
from resight.index import Searcher
from resight.types import Descriptors

BYTES = 2
Image = Mapping[int, Sequence[int]]  # word → code


def draw_images(rng: np.random.Generator, count: int, code_bytes: int = BYTES) -> dict[str, Image]:
    """Images with 0 to 8 words each, out of 12, so that they share many."""
    return {
        f"image {number:02}": {
            int(word): rng.integers(0, 256, code_bytes).tolist()
            for word in rng.choice(12, size=rng.integers(0, 9), replace=False)
        }
        for number in range(count)
    }


def score_by_hand(
    query: Image, image: Image, images: Mapping[str, Image], alpha: float, threshold: float, idf: bool
) -> float:
    """The formula of the module's docstring, word by word and bit by bit."""

    def signs(code: Sequence[int]) -> list[int]:
        return [1 if byte >> bit & 1 else -1 for byte in code for bit in range(8)]

    total = 0.0
    for word in query.keys() & image.keys():
        ours, theirs = signs(query[word]), signs(image[word])
        similarity = sum(a * b for a, b in zip(ours, theirs, strict=True)) / len(ours)
        holders = sum(word in other for other in images.values())
        weight = math.log(len(images) / holders) ** 2 if idf else 1.0
        total += weight * similarity**alpha if similarity > threshold else 0.0
    return total / (math.sqrt(max(len(query), 1)) * math.sqrt(max(len(image), 1)))


def build(
    folder: Path, images: Mapping[str, Image], chunk: int = 100, code_bytes: int = BYTES, **settings: object
) -> Searcher:
    names = list(images)
    parts = [names[start : start + chunk] for start in range(0, len(names), chunk)]
    chunks = [word_rows({name: images[name] for name in part}, code_bytes) for part in parts]
    return index.build("asmk_inverted", **settings).create(lambda: iter(chunks), folder)


def ask(query: Image, code_bytes: int = BYTES) -> Descriptors:
    return word_rows({"q": query}, code_bytes)


def test_one_shared_word_by_hand(tmp_path: Path):
    # 4 of 16 bits differ: u = 1 - 8/16 = 0.5, u³ = 0.125; the query has 1 word, the image 4: divided by √1 · √4
    image = {3: [0b11110000, 0], 5: [0, 0], 7: [0, 0], 9: [0, 0]}
    ranking = build(tmp_path, {"a": image}).search(ask({3: [0, 0]}), 1)
    assert ranking.ids == ("a",)
    assert ranking.scores.tolist() == [0.0625]


def test_the_same_image_scores_one_and_another_without_shared_words_zero(tmp_path: Path):
    images = {"a": {1: [170, 3], 2: [7, 255]}, "b": {4: [170, 3]}}
    ranking = build(tmp_path, images).search(ask(images["a"]), 2)
    assert ranking.ids == ("a", "b")
    np.testing.assert_allclose(ranking.scores, [1, 0], rtol=1e-6)


@pytest.mark.parametrize("chunk", [1, 4, 100])
@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 3.0, "threshold": 0.0, "idf": False},
        {"alpha": 1.0, "threshold": 0.0, "idf": True},
        {"alpha": 2.0, "threshold": 0.25, "idf": False},
        {"alpha": 3.0, "threshold": -1.0, "idf": True},
    ],
    ids=["default", "idf", "threshold", "everything counts"],
)
@pytest.mark.parametrize("code_bytes", [2, 16])
def test_scores_follow_the_formula(tmp_path: Path, code_bytes: int, settings: dict, chunk: int):
    rng = np.random.default_rng(5)
    images, queries = draw_images(rng, 20, code_bytes), draw_images(rng, 6, code_bytes)
    searcher = build(tmp_path, images, chunk, code_bytes, **settings)
    for query in queries.values():
        expected = {name: score_by_hand(query, image, images, **settings) for name, image in images.items()}
        ranking = searcher.search(ask(query, code_bytes), 20)
        assert len(ranking.ids) == 20
        for name, score in zip(ranking.ids, ranking.scores.tolist(), strict=True):
            assert score == pytest.approx(expected[name], abs=1e-6)
        assert np.all(np.diff(ranking.scores) <= 0)


def test_without_the_compiled_kernel_the_answer_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(7)
    searcher = build(tmp_path, draw_images(rng, 20))
    queries = [ask(query) for query in draw_images(rng, 6).values()]
    compiled = [searcher.search(query, 20) for query in queries]
    monkeypatch.setenv("RESIGHT_KERNELS", "numpy")
    for query, expected in zip(queries, compiled, strict=True):
        ranking = searcher.search(query, 20)
        assert ranking.ids == expected.ids
        np.testing.assert_allclose(ranking.scores, expected.scores, rtol=1e-6)


def test_a_similarity_at_the_threshold_does_not_count(tmp_path: Path):
    searcher = build(tmp_path, {"a": {0: [0b11110000, 0]}, "b": {0: [0b11100000, 0]}}, threshold=0.5, alpha=1.0)
    ranking = searcher.search(ask({0: [0, 0]}), 2)
    assert ranking.ids == ("b", "a")
    assert ranking.scores.tolist() == [0.625, 0]


def test_a_filter_hides_images_and_changes_no_score(tmp_path: Path):
    rng = np.random.default_rng(6)
    images = draw_images(rng, 20)
    searcher = build(tmp_path, images, idf=True)
    query = ask(next(iter(draw_images(rng, 1).values())) or {0: [1, 1]})
    whole = searcher.search(query, 20)
    allowed = frozenset([*list(images)[::3], "not in here"])
    some = searcher.search(query, 20, allowed)
    kept = [(name, score) for name, score in zip(whole.ids, whole.scores.tolist(), strict=True) if name in allowed]
    assert list(zip(some.ids, some.scores.tolist(), strict=True)) == kept


def test_words_that_no_image_has_add_nothing_but_length(tmp_path: Path):
    images = {"a": {3: [0, 0]}}
    ranking = build(tmp_path, images).search(ask({0: [0, 0], 3: [0, 0], 4: [0, 0], 99999: [0, 0]}), 1)
    assert ranking.scores.tolist() == [0.5]


def test_a_later_chunk_may_have_larger_words_or_none(tmp_path: Path):
    images = {"a": {1: [0, 0]}, "b": {}, "c": {70: [0, 0]}, "d": {}}
    searcher = build(tmp_path, images, chunk=1)
    assert searcher.search(ask({70: [0, 0]}), 1).ids == ("c",)
    assert searcher.search(ask({1: [0, 0]}), 4).ids == ("a", "b", "c", "d")


def test_a_query_without_words_ranks_by_id(tmp_path: Path):
    ranking = build(tmp_path, {"b": {1: [0, 0]}, "a": {}}).search(ask({}), 2)
    assert ranking.ids == ("a", "b")
    assert ranking.scores.tolist() == [0, 0]


def test_a_tie_at_the_cut_is_decided_by_the_id(tmp_path: Path):
    images = {name: {1: [0, 0]} for name in "dbca"}
    assert build(tmp_path, images).search(ask({1: [0, 0]}), 2).ids == ("a", "b")


def test_an_empty_collection_answers_nothing(tmp_path: Path):
    assert build(tmp_path, {}).search(ask({1: [0, 0]}), 3).ids == ()


def test_images_that_have_no_word_at_all_can_be_indexed(tmp_path: Path):
    searcher = build(tmp_path, {"a": {}, "b": {}})
    assert searcher.search(ask({1: [0, 0]}), 3).ids == ("a", "b")


def test_rows_without_words_are_refused(tmp_path: Path):
    with pytest.raises(RecipeError, match="needs visual words"):
        index.build("asmk_inverted").create(lambda: iter([global_rows("a", [[1, 0]])]), tmp_path)


def test_an_index_without_images_finds_nothing(tmp_path: Path):
    ranking = build(tmp_path, {}).search(ask({0: [0, 0], 3: [1, 2]}), 5)
    assert ranking.ids == ()


def test_images_without_words_score_nothing(tmp_path: Path):
    ranking = build(tmp_path, {"a": {}, "b": {}}).search(ask({0: [0, 0]}), 5)
    assert (ranking.ids, ranking.scores.tolist()) == (("a", "b"), [0, 0])
