from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from resight.errors import InputError, RecipeError
from resight.geodesy import Positions
from resight.index import Searcher
from resight.search import rerankers
from resight.search.fusions.robust_zscore import robust_zscore
from resight.search.geo_kmeans import cluster_positions
from resight.search.rerankers.gps import blend, list_parts, put_behind
from resight.types import Choice, Descriptors, Query, Ranking

# Two streets, 1 km apart: a, b in the one, c, d in the other; nobody knows where e was taken.
PLACES = {"a": (52.5, 13.0), "b": (52.5, 13.0001), "c": (52.51, 13.0), "d": (52.51, 13.0001)}
SCORES = {"a": 0.9, "c": 0.8, "d": 0.7, "e": 0.65, "b": 0.1}


class Map:
    """A gallery that knows positions alone."""

    def __init__(self, places: dict[str, tuple[float, float]], headings: dict[str, float] | None = None) -> None:
        lats, lons = (np.array([place[axis] for place in places.values()], np.float64) for axis in (0, 1))
        looks = np.array([(headings or {}).get(name, np.nan) for name in places], np.float64)
        self._positions = Positions(tuple(places), lats, lons, looks)

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        raise AssertionError(f"positions need no rows: {branch}, {ids}")

    def searcher(self, branch: int, choice: Choice | None) -> Searcher:
        raise AssertionError(f"the ranking holds all scores: {branch}, {choice}")

    def positions(self) -> Positions:
        return self._positions


def rank(scores: dict[str, float], **signals: dict[str, float]) -> Ranking:
    return Ranking("q", tuple(scores), np.array(list(scores.values()), np.float32), signals=signals)


def ask(
    scores: dict[str, float] = SCORES,
    places: dict[str, tuple[float, float]] = PLACES,
    headings: dict[str, float] | None = None,
    about: dict[str, float] | None = None,
    **settings: object,
) -> Ranking:
    query = Query("q", (9, 9), (0, 0, 9, 9), (), about or {})
    return rerankers.build("gps", **{"k": 2, **settings}).rerank(query, rank(scores), Map(places, headings))


def test_b_adds_the_similarity_of_an_images_own_centroid():
    # Clusters (a, b) and (c, d): means 0.5 and 0.75. With alpha 0.6: a = 0.3 + 0.36, b = 0.3 + 0.04,
    # c = 0.45 + 0.32, d = 0.45 + 0.28; e has no position and keeps its own 0.65.
    found = ask(alpha=0.6)
    assert found.ids == ("c", "d", "a", "e", "b")
    assert found.scores == pytest.approx([0.77, 0.73, 0.66, 0.65, 0.34])


def test_without_weight_for_the_centroid_nothing_changes():
    assert ask(alpha=0.0).scores == pytest.approx(list(SCORES.values()))


def test_a_has_the_members_of_the_best_centroid_first_and_unknown_places_last():
    found = ask(variant="a")
    assert found.ids == ("c", "d", "a", "b", "e")
    assert np.all(np.diff(found.scores) < 0)


def test_the_oracle_keeps_what_is_near_the_query():
    found = ask(variant="oracle", about={"lat": 52.5, "lon": 13.0})
    assert found.ids == ("a", "b")
    assert found.scores == pytest.approx([0.9, 0.1])
    assert ask(variant="oracle", radius=5, about={"lat": 52.5, "lon": 13.0}).ids == ("a",)
    assert ask(variant="oracle", about={"lat": 0.0, "lon": 0.0}).ids == ()


def test_scores_of_members_and_blended_vectors_are_the_same():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)).astype(np.float32)
    query = rng.normal(size=8).astype(np.float32)
    cluster = np.array([0, 1, 2, 3] * 10)
    places = {f"{row:02}": (float(cluster[row]), 10.0) for row in range(40)}
    likeness = dict(zip(places, (vectors @ query).tolist(), strict=True))
    found = ask(likeness, places, k=4, alpha=0.3)
    expected = dict(zip(places, blend(query, vectors, cluster, 0.3, "mean").tolist(), strict=True))
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-5)
    centroids = np.stack([vectors[cluster == number].mean(axis=0) for number in range(4)])
    by_hand = 0.3 * (centroids @ query)[cluster] + 0.7 * (vectors @ query)
    assert list(expected.values()) == pytest.approx(by_hand.tolist(), rel=1e-5)


def test_several_clusterings_are_averaged():
    # Ten images along a street, which three draws of k-means cut at different places.
    places = {str(number): (0.0, 0.001 * number) for number in range(10)}
    likeness = {name: 1 - 0.1 * number**0.5 for number, name in enumerate(places)}
    vectors = np.array(list(likeness.values()), np.float32)[:, None]
    rng, positions = np.random.default_rng(7), Map(places).positions()
    draws = [cluster_positions(positions, 3, rng) for _ in range(3)]
    assert len({tuple(draw) for draw in draws}) > 1
    expected = np.mean([blend(np.ones(1, np.float32), vectors, draw, 0.6, "mean") for draw in draws], axis=0)
    found = ask(likeness, places, k=3, draws=3, seed=7)
    assert [found.scores[found.ids.index(name)] for name in places] == pytest.approx(expected.tolist(), rel=1e-5)


def test_blending_keeps_the_own_score_of_rows_without_a_cluster():
    # One cluster of rows 0 and 1, mean (1 + 0) / 2; row 2 has none.
    vectors = np.array([[1, 0], [0, 1], [0.2, 0]], np.float32)
    scores = blend(np.array([1, 0], np.float32), vectors, np.array([0, 0, -1]), centroid="mean")
    assert scores == pytest.approx([0.6 * 0.5 + 0.4, 0.6 * 0.5, 0.2])


def test_a_centroid_is_scaled_to_unit_length_by_default():
    # The mean of rows 0 and 1 is (0.5, 0.5), of length 0.7071: its cosine with the query is 0.7071, not 0.5.
    vectors = np.array([[1, 0], [0, 1], [0.2, 0]], np.float32)
    scores = blend(np.array([1, 0], np.float32), vectors, np.array([0, 0, -1]))
    assert scores == pytest.approx([0.6 * 0.5**0.5 + 0.4, 0.6 * 0.5**0.5, 0.2])


class Vectors(Map):
    """A gallery with rows of vectors, which counts how many it has read."""

    def __init__(self, places: dict[str, tuple[float, float]], rows: dict[str, list[list[float]]]) -> None:
        super().__init__(places)
        self.rows, self.read = rows, 0

    def descriptors(self, branch: int, ids: Sequence[str]) -> Iterator[Descriptors]:
        assert branch == 0
        self.read += len(ids)
        for start in range(0, len(ids), 3):
            some = tuple(ids[start : start + 3])
            counts = [len(self.rows[name]) for name in some]
            vectors = np.concatenate([np.array(self.rows[name], np.float32) for name in some])
            yield Descriptors(some, vectors, np.repeat(np.arange(len(some), dtype=np.int32), counts))


def point(degrees: float) -> list[float]:
    return [float(np.cos(np.radians(degrees))), float(np.sin(np.radians(degrees)))]


# Two streets; the query looks along 0 degrees. a and b: 0 and 60 degrees apart from it, c and d both at 40.
ANGLES = {"a": 0.0, "b": 60.0, "c": 40.0, "d": -40.0}


def ask_vectors(rows: dict[str, list[list[float]]], query_rows: int = 1, **settings: object) -> tuple[Ranking, Vectors]:
    gallery = Vectors(PLACES, rows)
    vectors = np.array([point(0)] * query_rows, np.float32)
    query = Query("q", (9, 9), (0, 0, 9, 9), (Descriptors(("q",), vectors, np.zeros(query_rows, np.int32)),))
    scores = {name: max(row[0] for row in rows[name]) for name in sorted(rows, key=lambda name: -rows[name][0][0])}
    reranker = rerankers.build("gps", k=2, **settings)
    first = reranker.rerank(query, rank(scores), gallery)
    again = reranker.rerank(query, rank(scores), gallery)
    assert (first.ids, first.scores.tolist()) == (again.ids, again.scores.tolist())
    return first, gallery


def test_one_vector_per_image_gives_centroids_of_unit_length_read_once():
    # c and d: mean (cos 40, 0), whose cosine with the query is 1. a and b: mean at 30 degrees, cosine 0.866.
    rows = {name: [point(angle)] for name, angle in ANGLES.items()}
    found, gallery = ask_vectors(rows, alpha=0.5, draws=1)
    cosines = {name: np.cos(np.radians(angle)) for name, angle in ANGLES.items()}
    centroid = {"a": np.cos(np.radians(30)), "b": np.cos(np.radians(30)), "c": 1.0, "d": 1.0}
    expected = {name: 0.5 * centroid[name] + 0.5 * cosines[name] for name in rows}
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-5)
    assert gallery.read == 4
    assert ask_vectors(rows, variant="a")[0].ids == ("c", "d", "a", "b")


def test_plain_means_choose_another_centroid():
    # Plain means: (1 + cos 60) / 2 = 0.75 against cos 40 = 0.766. With b at 55 degrees it is 0.787, and the first wins.
    rows = {name: [point(angle)] for name, angle in (ANGLES | {"b": 55.0}).items()}
    assert ask_vectors(rows, variant="a", centroid="mean")[0].ids[:2] == ("a", "b")
    assert ask_vectors(rows, variant="a", centroid="cosine")[0].ids[:2] == ("c", "d")


@pytest.mark.parametrize(("query_rows", "image_rows"), [(2, 1), (1, 2)])
def test_several_rows_have_no_centroid_and_count_by_their_mean_score(query_rows: int, image_rows: int):
    rows = {name: [point(angle)] * image_rows for name, angle in ANGLES.items()}
    by_default, _ = ask_vectors(rows, query_rows, alpha=0.5)
    by_mean, gallery = ask_vectors(rows, query_rows, alpha=0.5, centroid="mean")
    assert by_default.scores.tolist() == by_mean.scores.tolist()
    assert gallery.read == 0


def test_a_member_beyond_the_candidates_counts_with_the_lowest_score():
    # b is not in the ranking: the mean of (a, b) is (0.9 + 0.7) / 2.
    found = ask({"a": 0.9, "c": 0.8, "d": 0.7}, alpha=1.0)
    assert found.ids == ("a", "c", "d")
    assert found.scores == pytest.approx([0.8, 0.75, 0.75])


def test_how_far_each_branch_stands_out_is_found_anew():
    ids = [f"{number:02}" for number in range(12)]
    scores = np.linspace(1, 0, 12, dtype=np.float32)
    signals = {
        name: {"tokens": float(score), "standout": 9.0, "inliers": 3.0} for name, score in zip(ids, scores, strict=True)
    }
    query = Query("q", (9, 9), (0, 0, 9, 9), ())
    places = {name: (float(number // 6), 0.0) for number, name in enumerate(ids)}
    found = rerankers.build("gps", k=2, alpha=0.5).rerank(
        query, replace(rank({}), ids=tuple(ids), scores=scores, signals=signals), Map(places)
    )
    values = np.array([found.signals[name]["tokens"] for name in ids], np.float32)
    assert values[:6] == pytest.approx(0.5 * scores[:6].mean() + 0.5 * scores[:6])
    assert [found.signals[name]["standout"] for name in ids] == pytest.approx(robust_zscore(values).tolist())
    assert found.signals["00"]["inliers"] == 3


@pytest.mark.parametrize(
    ("signals", "parts"),
    [
        ({"asmk": 1.0, "standout": 2.0, "inliers": 3.0}, {"asmk": "standout"}),
        ({"a": 1.0, "a_standout": 2.0, "b": 1.0, "b_standout": 0.0}, {"a": "a_standout", "b": "b_standout"}),
        ({"asmk": 1.0}, {}),
        ({}, {}),
    ],
)
def test_the_branches_are_known_by_their_standout(signals: dict, parts: dict):
    assert list_parts(signals) == parts


def test_images_that_look_the_other_way_come_behind_or_leave():
    looks, about = {"a": 10.0, "b": 350.0, "c": 200.0}, {"heading": 0.0, "lat": 52.5, "lon": 13.0}
    assert ask(alpha=0.0, heading=90, headings=looks, about=about).ids == ("a", "d", "e", "b", "c")
    assert ask(alpha=0.0, heading=90, headings=looks).ids == tuple(SCORES)  # the query's own is not known
    looks = {"a": 170.0, "b": 80.0}
    assert ask(variant="oracle", heading=90, headings=looks, about=about).ids == ("b",)


def test_all_positions_equal_change_no_order():
    places = dict.fromkeys(SCORES, (52.5, 13.0))
    assert ask(places=places, k=5).ids == tuple(SCORES)
    assert ask(places=places, k=5, variant="a").ids == tuple(SCORES)


def test_a_street_over_the_antimeridian_is_one_place():
    places = {"a": (0.0, 179.9999), "b": (0.0, -179.9999), "c": (0.0, 0.0), "d": (0.0, 0.0001)}
    assert ask(places=places, alpha=0.6).scores == pytest.approx([0.77, 0.73, 0.66, 0.65, 0.34])


def test_without_any_position_the_first_search_says_so():
    with pytest.raises(InputError, match="no image of the collection has a position"):
        ask(places={})


def test_the_oracle_needs_the_querys_own_position():
    with pytest.raises(InputError, match="'q' has no position"):
        ask(variant="oracle")


def test_what_is_put_behind_keeps_its_distances():
    moved = put_behind(np.array([1, 0.5, 0.4], np.float32), np.array([True, False, True]))
    assert moved[1] == pytest.approx(0.5)
    assert moved[0] < 0.5 and moved[0] - moved[2] == pytest.approx(0.6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 1.1},
        {"alpha": -0.1},
        {"centroid": "sum"},
        {"k": -1},
        {"radius": -1},
        {"variant": "c"},
        {"heading": 181},
        {"draws": 0},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict):
    with pytest.raises(RecipeError):
        rerankers.build("gps", **wrong)
