"""Positions of the database images improve a ranking, for a query without a position; `oracle` shows what its own adds.

`geo_kmeans` clusters the positions into `k` centroids; a centroid's vector c is the mean of its members' vectors.

    a         the members of the centroid that is most like the query come first, then the others, each in their order
    b         s(x) = alpha · sim(q, centroid of x's own cluster) + (1 - alpha) · ⟨q, x⟩
    oracle    only images within `radius` metres of the query's own position stay

    centroid = "cosine"    sim(q, c) = ⟨q, c⟩ / |c|, the cosine that the study of MSLS London names
    centroid = "mean"      sim(q, c) = ⟨q, c⟩, with the plain mean

⟨q, c⟩ is the mean over the members of ⟨q, x⟩, so it is computed from the members' scores. This holds for every kind of
score: one vector, tokens by late interaction, visual words, several encoders fused. Only one vector per image and one
branch give a vector c and its length; all others have the mean score under either setting. The scores are those of the
ranking that comes in, which is as deep as `candidates`; a member outside it counts with the lowest score in it. Up to
`candidates` images the mean is exact.

The clusters depend on where k-means starts, and images at their edges on luck: b takes the mean of `draws` clusterings
(1 is the formula as it stands); a takes the first.

Images without a position keep their own score under b, come last under a, and are left out by oracle. With `heading`,
images whose camera looked more than so many degrees away from the query's come last (a, b) or are left out (oracle), if
both directions are known.

The scores of the branches among the signals change in the same way, and their robust z-scores are computed again, so
that verification and probability build on them. No signal is added.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.geodesy import Positions, find_number, find_position, metres_between, turn_between
from resight.plugins import check_range
from resight.search.fusions.robust_zscore import robust_zscore
from resight.search.gallery import Gallery
from resight.search.geo_kmeans import cluster_positions
from resight.search.locate_boxes import split
from resight.types import FloatArray, IntArray, Query, Ranking

UNKNOWN = -1  # the cluster of an image without a position
MEMBERS = 2  # images per cluster, if k is 0
GAP = 1e-3  # between the scores of two groups of images
SHORTEST = 1e-12  # of a centroid: one of length 0 is like no query
Centroid = Literal["cosine", "mean"]


@dataclass(frozen=True)
class Config:
    variant: Literal["a", "b", "oracle"] = "b"  # a: best cluster first; b: blend in cluster scores; oracle: by distance
    k: int = 0  # number of clusters of positions; 0: one per two images
    alpha: float = 0.6  # b: weight of the cluster's score, 0 to 1; the image's own has the rest
    centroid: Centroid = "cosine"  # a, b: compare with the cluster's mean vector scaled to length 1, or as it is (mean)
    radius: float = 100.0  # oracle: metres from the query within which images stay
    heading: float | None = None  # largest difference between camera directions in degrees, 0 to 180; None: any
    candidates: int = 10_000  # first images to score again; in collections up to this size, cluster scores are exact
    draws: int = 5  # b: number of clusterings to average
    seed: int = 0  # random seed of the clusterings

    def __post_init__(self) -> None:
        check_range("k", self.k, 0, 1_000_000)
        check_range("alpha", self.alpha, 0, 1)
        check_range("radius", self.radius, 0)
        check_range("candidates", self.candidates, 1, 10_000_000)
        check_range("draws", self.draws, 1, 1000)
        check_range("seed", self.seed, 0)
        if self.heading is not None:
            check_range("heading", self.heading, 0, 180)


def build(config: Config) -> "Gps":
    return Gps(config)


def blend(
    query: FloatArray, vectors: FloatArray, cluster: IntArray, alpha: float = 0.6, centroid: Centroid = "cosine"
) -> FloatArray:
    """Variant b for query [D] and vectors [n, D] → scores [n]; cluster [n], below 0 without a position."""
    numbers = np.asarray(cluster, np.int64)
    scores = np.asarray(vectors @ np.ravel(query), np.float32)
    lengths = None if centroid == "mean" else measure_centroids(vectors, numbers)
    return blend_scores(scores, numbers, alpha, lengths=lengths)


def measure_centroids(vectors: FloatArray, cluster: IntArray) -> NDArray[np.float64]:
    """Vectors [n, D] and cluster [n] → the length [k] of each cluster's mean vector; 1 if it has no members."""
    lengths = np.ones(int(cluster.max(initial=-1)) + 1)
    for number in np.unique(cluster[cluster >= 0]):
        lengths[number] = np.linalg.norm(vectors[cluster == number].mean(axis=0, dtype=np.float64))
    return lengths


class Gps:
    def __init__(self, config: Config) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = ()
        self._config = config
        self._clusterings: tuple[Positions, tuple[Clustering, ...]] | None = None

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        if not ranking.ids:
            return ranking
        positions = gallery.positions()
        if not len(positions):
            raise _refuse_unknown("no image of the collection has a position", "lat and lon of the images")
        away = self._look_away(query, ranking, positions)
        if self._config.variant == "oracle":
            near = self._find_near(query, positions)
            kept = [row for row, name in enumerate(ranking.ids) if name in near and not away[row]]
            return replace(ranking, ids=tuple(ranking.ids[row] for row in kept), scores=ranking.scores[kept])
        vectors = gallery if self._config.centroid == "cosine" and has_one_vector(query) else None
        draws = [clustering.of(ranking, vectors) for clustering in self._cluster(positions)]
        return self._rescore(ranking, draws, away)

    def _rescore(self, ranking: Ranking, draws: Sequence["Clusters"], away: NDArray[np.bool_]) -> Ranking:
        first = draws[0]
        best = int(np.argmax(average(ranking.scores, first.cluster, first.sizes, first.lengths)))  # for variant a

        def change(scores: FloatArray) -> FloatArray:
            if self._config.variant == "b":
                alpha = self._config.alpha
                blended = [blend_scores(scores, draw.cluster, alpha, draw.sizes, draw.lengths) for draw in draws]
                return put_behind(np.mean(blended, axis=0, dtype=np.float32), away)
            cluster = first.cluster
            return put_behind(put_behind(put_behind(scores, cluster == UNKNOWN), cluster != best), away)

        scores = change(ranking.scores)
        order = np.argsort(-scores, kind="stable")
        signals = {name: dict(ranking.signals.get(name, {})) for name in ranking.ids}
        for part, standout in list_parts(signals[ranking.ids[0]]).items():
            values = change(np.array([signals[name].get(part, 0.0) for name in ranking.ids], np.float32))
            for name, value, zscore in zip(ranking.ids, values.tolist(), robust_zscore(values).tolist(), strict=True):
                signals[name] |= {part: value, standout: zscore}
        return replace(ranking, ids=tuple(ranking.ids[row] for row in order), scores=scores[order], signals=signals)

    def _cluster(self, positions: Positions) -> tuple["Clustering", ...]:
        """One clustering per draw, computed once for the positions of a collection."""
        if self._clusterings is None or self._clusterings[0] is not positions:
            k = self._config.k or math.ceil(len(positions) / MEMBERS)
            rng = np.random.default_rng(self._config.seed)
            draws = self._config.draws if self._config.variant == "b" else 1
            found = [Clustering(positions.ids, cluster_positions(positions, k, rng)) for _ in range(draws)]
            self._clusterings = positions, tuple(found)
        return self._clusterings[1]

    def _find_near(self, query: Query, positions: Positions) -> frozenset[str]:
        position = find_position(query.attributes)
        if position is None:
            raise _refuse_unknown(
                f"the query {query.id!r} has no position", 'lat and lon of the query, or variant = "b"'
            )
        near = metres_between(*position, positions.lats, positions.lons) <= self._config.radius
        return frozenset(positions.ids[row] for row in np.flatnonzero(near))

    def _look_away(self, query: Query, ranking: Ranking, positions: Positions) -> NDArray[np.bool_]:
        """Which images of the ranking [n] look another way than the query."""
        if self._config.heading is None:
            return np.zeros(len(ranking.ids), bool)
        heading = find_number(query.attributes, "heading")
        turns = turn_between(math.nan if heading is None else heading, positions.headings)
        away = {name for name, turn in zip(positions.ids, turns, strict=True) if turn > self._config.heading}
        return np.array([name in away for name in ranking.ids], bool)


class Clustering:
    """One draw: the cluster of each image with a position, and the length of each centroid as far as it was needed."""

    def __init__(self, ids: Sequence[str], numbers: IntArray) -> None:
        self._ids, self._numbers = ids, numbers
        self._cluster_of_id = dict(zip(ids, numbers.tolist(), strict=True))
        self._sizes = np.bincount(numbers)
        self._lengths = np.full(len(self._sizes), np.nan)

    def of(self, ranking: Ranking, vectors: Gallery | None) -> "Clusters":
        """The clusters of a ranking's images; `vectors` holds those of the members, None: centroids have no length."""
        cluster = np.array([self._cluster_of_id.get(name, UNKNOWN) for name in ranking.ids], np.int64)
        if vectors is None:
            return Clusters(cluster, self._sizes, np.ones(len(self._sizes)))
        needed = np.unique(cluster[cluster >= 0])
        self._measure(needed[np.isnan(self._lengths[needed])], vectors)
        return Clusters(cluster, self._sizes, np.nan_to_num(self._lengths, nan=1.0))

    def _measure(self, needed: IntArray, vectors: Gallery) -> None:
        """Measure centroids one after another, so that memory holds the members of one."""
        rows = np.flatnonzero(np.isin(self._numbers, needed))
        ids = [self._ids[row] for row in rows[np.argsort(self._numbers[rows], kind="stable")]]
        if not ids:
            return
        images = split(vectors.descriptors(0, ids))
        for number, members in itertools.groupby(images, lambda image: self._cluster_of_id[image.ids[0]]):
            kept = np.concatenate([image.vectors for image in members])
            if len(kept) != self._sizes[number]:  # images with regions: there is no one vector per image
                self._lengths[:] = 1
                return
            self._lengths[number] = np.linalg.norm(kept.mean(axis=0, dtype=np.float64))


@dataclass(frozen=True)
class Clusters:
    """One clustering, for the images of a ranking."""

    cluster: IntArray  # [n] of each image in the ranking
    sizes: IntArray  # [k] members, in the ranking or not
    lengths: NDArray[np.float64]  # [k] of the centroids; 1 if the mean score stands for the similarity


def has_one_vector(query: Query) -> bool:
    """Whether a single branch describes the query by a single vector."""
    return len(query.descriptors) == 1 and len(query.descriptors[0]) == 1 and query.descriptors[0].words is None


def blend_scores(
    scores: FloatArray,
    cluster: IntArray,
    alpha: float,
    sizes: IntArray | None = None,
    lengths: NDArray[np.float64] | None = None,
) -> FloatArray:
    """alpha · sim(q, x's centroid) + (1 - alpha) · x's own score, [n]; its own alone if the cluster is below 0."""
    means = average(scores, cluster, sizes, lengths)
    own = np.asarray(scores, np.float64)
    centroid = np.where(cluster >= 0, means[cluster] if len(means) else 0, own)
    return np.asarray(alpha * centroid + (1 - alpha) * own, np.float32)


def average(
    scores: FloatArray,
    cluster: IntArray,
    sizes: IntArray | None = None,
    lengths: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Mean score of each cluster [k], divided by its centroid's length [k].

    Of `sizes` [k] members, those that are missing have the lowest score.
    """
    known = cluster >= 0
    here = np.bincount(cluster[known], minlength=0 if sizes is None else len(sizes))
    sums = np.bincount(cluster[known], np.asarray(scores, np.float64)[known], len(here))
    total = here if sizes is None else sizes
    lowest = float(scores.min()) if len(scores) else 0.0
    means = (sums + (total - here) * lowest) / np.maximum(total, 1)
    return np.asarray(means if lengths is None else means / np.maximum(lengths, SHORTEST))


def put_behind(scores: FloatArray, behind: NDArray[np.bool_]) -> FloatArray:
    """The marked scores [n] moved below the lowest of the others, with their distances kept."""
    if not behind.any() or behind.all():
        return scores
    gap = max(float(scores[behind].max() - scores[~behind].min()) + GAP, 0.0)
    return np.asarray(np.where(behind, scores - gap, scores), np.float32)


def list_parts(signals: Mapping[str, float]) -> dict[str, str]:
    """The scores of branches among the signals of an image, each with the name of its robust z-score."""
    names = list(signals)
    if "standout" in names:  # a single branch: its score is written just before
        row = names.index("standout")
        return {names[row - 1]: "standout"} if row else {}
    return {name: f"{name}_standout" for name in names if f"{name}_standout" in signals}


def _refuse_unknown(problem: str, expected: str) -> InputError:
    return InputError(
        f"GPS cannot help: {problem}",
        expected=expected,
        actual="no lat and lon in EXIF or manifest",
        fix='add a manifest with columns lat and lon, or remove the reranker "gps" from the recipe',
    )
