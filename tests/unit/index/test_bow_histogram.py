import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.builders import count_rows, global_rows, word_rows

from resight import index
from resight.errors import RecipeError
from resight.index import Searcher

Bag = Mapping[int, float]
DISTANCES = ("cosine", "l2", "l1", "chi2")
NOTHING_SHARED = {"cosine": 0, "l2": -math.sqrt(2), "l1": -2, "chi2": -2}


def build(folder: Path, images: Mapping[str, Bag], chunk: int = 100, **settings: object) -> Searcher:
    names = list(images)
    parts = [names[start : start + chunk] for start in range(0, len(names), chunk)]
    chunks = [count_rows({name: images[name] for name in part}) for part in parts]
    return index.build("bow_histogram", **settings).create(lambda: iter(chunks), folder)


def ask(searcher: Searcher, query: Bag, k: int = 100) -> dict[str, float]:
    ranking = searcher.search(count_rows({"q": query}), k)
    return dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))


def score_by_hand(query: Bag, image: Bag, images: Mapping[str, Bag], distance: str, tf_idf: bool) -> float:
    """Whole histograms, weighed, normalised and compared one word after the other."""

    def weigh(bag: Bag) -> dict[int, float]:
        holders = {word: max(sum(word in other for other in images.values()), 1) for word in bag}
        weighed = {
            word: count * (math.log(len(images) / holders[word]) if tf_idf else 1) for word, count in bag.items()
        }
        power = 2 if distance in ("cosine", "l2") else 1
        length = sum(value**power for value in weighed.values()) ** (1 / power)
        return {word: value / length for word, value in weighed.items()} if length else {}

    ours, theirs = weigh(query), weigh(image)
    if not ours or not theirs:
        return NOTHING_SHARED[distance]
    pairs = [(ours.get(word, 0), theirs.get(word, 0)) for word in ours.keys() | theirs.keys()]
    if distance == "cosine":
        return sum(a * b for a, b in pairs)
    if distance == "l2":
        return -math.sqrt(sum((a - b) ** 2 for a, b in pairs))
    if distance == "l1":
        return -sum(abs(a - b) for a, b in pairs)
    return -sum((a - b) ** 2 / (a + b) for a, b in pairs if a + b)


def test_cosine_of_counts_by_hand(tmp_path: Path):
    # (3, 4) and (1, 0) at length 1: 3 / 5
    searcher = build(tmp_path, {"a": {0: 3, 1: 4}, "b": {2: 1}}, tf_idf=False)
    assert ask(searcher, {0: 2}) == pytest.approx({"a": 0.6, "b": 0})


def test_l2_by_hand(tmp_path: Path):
    # (0.6, 0.8) - (1, 0) is (-0.4, 0.8): √0.8
    searcher = build(tmp_path, {"a": {0: 3, 1: 4}, "b": {2: 1}}, tf_idf=False, distance="l2")
    assert ask(searcher, {0: 2}) == pytest.approx({"a": -math.sqrt(0.8), "b": -math.sqrt(2)})


def test_l1_and_chi2_by_hand(tmp_path: Path):
    # shares (1/4, 3/4) and (1/2, 1/2): l1 is 1/4 + 1/4; chi² is (1/16) / (3/4) + (1/16) / (5/4) = 1/12 + 1/20
    for distance, expected in (("l1", -0.5), ("chi2", -2 / 15)):
        (tmp_path / distance).mkdir()
        searcher = build(tmp_path / distance, {"a": {0: 1, 1: 3}, "b": {7: 1}}, tf_idf=False, distance=distance)
        assert ask(searcher, {0: 5, 1: 5}) == pytest.approx({"a": expected, "b": -2})


def test_tf_idf_by_hand(tmp_path: Path):
    # 4 images; word 0 in 2 of them weighs log 2, word 1 in 1 of them log 4 = 2 log 2, word 9 in all of them nothing
    images = {"a": {0: 2, 1: 1, 9: 5}, "b": {0: 1, 9: 1}, "c": {9: 3}, "d": {9: 1}}
    # a is (2, 2) log 2, the query (1, 2) log 2: 6 / (√8 √5); b is (1, 0): 1 / √5
    expected = {"a": 6 / math.sqrt(40), "b": 1 / math.sqrt(5), "c": 0, "d": 0}
    assert ask(build(tmp_path, images), {0: 1, 1: 1, 9: 7}) == pytest.approx(expected)


@pytest.mark.parametrize("tf_idf", [True, False])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_scores_are_those_of_whole_histograms(tmp_path: Path, distance: str, tf_idf: bool, chunk: int):
    rng = np.random.default_rng(0)

    def draw() -> dict[int, float]:
        return {int(word): float(rng.integers(1, 5)) / 2 for word in rng.choice(14, rng.integers(0, 9), replace=False)}

    images = {f"image {number:02}": draw() for number in range(25)}
    searcher = build(tmp_path, images, chunk, distance=distance, tf_idf=tf_idf)
    for query in [draw() for _ in range(6)] + [{3: 1.0, 99: 2.0}]:
        expected = {name: score_by_hand(query, image, images, distance, tf_idf) for name, image in images.items()}
        assert ask(searcher, query) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_same_image_has_the_best_score_that_there_is(tmp_path: Path, distance: str):
    images = {"a": {1: 2, 5: 1}, "b": {1: 1, 4: 3}, "c": {2: 1}}
    best = ask(build(tmp_path, images, distance=distance), images["a"], 1)
    assert best == pytest.approx({"a": 1 if distance == "cosine" else 0}, abs=1e-3)


@pytest.mark.parametrize("distance", DISTANCES)
def test_bare_images_and_bare_queries_share_nothing(tmp_path: Path, distance: str):
    searcher = build(tmp_path, {"bare": {}, "a": {1: 1}}, distance=distance)
    assert ask(searcher, {1: 1})["bare"] == pytest.approx(NOTHING_SHARED[distance])
    assert list(ask(searcher, {}).values()) == pytest.approx([NOTHING_SHARED[distance]] * 2)


def test_a_word_that_no_image_has_takes_its_share_of_the_query(tmp_path: Path):
    # half of the query is a word that no image has: |1/2 - 1| + 1/2
    searcher = build(tmp_path, {"a": {0: 1}, "b": {1: 1}}, distance="l1")
    assert ask(searcher, {0: 1, 77: 1})["a"] == pytest.approx(-1)


def test_how_images_are_weighed_is_kept_with_the_index(tmp_path: Path):
    images = {"a": {0: 2, 1: 1}, "b": {0: 1}, "c": {2: 1}}
    made = ask(build(tmp_path, images), {0: 1, 1: 1})
    assert ask(index.build("bow_histogram").open(tmp_path), {0: 1, 1: 1}) == made
    assert np.load(tmp_path / "idf.npy").tolist() == pytest.approx([math.log(1.5), math.log(3), math.log(3)])


def test_rows_without_words_and_rows_of_asmk_are_refused(tmp_path: Path):
    for rows in (global_rows("a", [[1, 0]]), word_rows({"a": {1: [7]}}, 1)):
        with pytest.raises(RecipeError, match=r"needs visual words[\s\S]*bow"):
            index.build("bow_histogram").create(lambda rows=rows: iter([rows]), tmp_path)


def test_bags_of_words_are_refused_by_the_index_of_asmk(tmp_path: Path):
    with pytest.raises(RecipeError, match=r"needs visual words[\s\S]*histogram"):
        index.build("asmk_inverted").create(lambda: iter([count_rows({"a": {1: 1}})]), tmp_path)
