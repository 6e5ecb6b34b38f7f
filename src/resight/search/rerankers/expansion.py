"""Query expansion: search the index again, with the query and its nearest neighbours as one vector.

    q' = (q + Σ_n w_n x_n) / ‖ · ‖      w_n = max(0, ⟨q, x_n⟩)^power; power = 0 is AQE, the plain mean, more is αQE

x_n is the row of a neighbour nearest to the query: its vector, or that of its winning region. If the query has several
regions, each is expanded. Images that only the expanded query finds enter the ranking. The new score is that of the
expanded query, plus log(1 + inliers) for images that were verified before, so that verified images stay first.

One wrong neighbour pulls the query away (drift). So a neighbour counts only if it is verified (`inliers`), or close: at
least `share` of the best similarity, and a robust z-score of at least `standout`. The expanded answer is dropped if
fewer than `fewest` neighbours count, or if less than `keep` of the first `neighbours` answers remain. Signals:
`expansion`, the new similarity, and `neighbour`, 1 for images that expanded the query; both are 0 for all if the answer
was dropped.
O. Chum et al., Total recall, 2007; F. Radenović et al., Fine-tuning CNN image retrieval with no human annotation, 2019.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight.plugins import check_range
from resight.search.fusions.robust_zscore import USUAL, robust_zscore
from resight.search.gallery import Gallery
from resight.search.rescoring import read_vectors, require_vector_branch
from resight.search.shortlist import complete
from resight.types import Descriptors, FloatArray, Query, Ranking
from resight.vectors import l2_normalise


@dataclass(frozen=True)
class Config:
    candidates: int = 100  # fewest images that the expanded query retrieves; 0: no expansion
    neighbours: int = 5  # first images of the ranking that may expand the query
    power: float = 3.0  # exponent of a neighbour's weight, its similarity: 0 is AQE (plain mean), more is αQE
    inliers: int = 15  # a neighbour with this many inliers counts, whatever its similarity
    share: float = 0.9  # a neighbour without these inliers needs this share of the best similarity, 0 to 1
    standout: float = 3.0  # a neighbour without these inliers also needs this robust z-score
    fewest: int = 1  # drop the expanded answer if fewer neighbours count
    keep: float = 0.5  # drop the expanded answer if less than this share of the first `neighbours` answers stays

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, 1_000_000)
        check_range("neighbours", self.neighbours, 1, 1000)
        check_range("power", self.power, 0, 100)
        check_range("inliers", self.inliers, 1)
        check_range("share", self.share, 0, 1)
        check_range("standout", self.standout, 0)
        check_range("fewest", self.fewest, 1, 1000)
        check_range("keep", self.keep, 0, 1)


def build(config: Config) -> "Expansion":
    return Expansion(config)


class Expansion:
    def __init__(self, config: Config) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = ("expansion", "neighbour")
        self._config = config

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = require_vector_branch(query, "query expansion")
        if not ranking.ids or self.candidates == 0:
            return ranking
        rows = query.descriptors[branch]
        near = self._choose_neighbours(rows, branch, ranking, gallery)
        if len(near) < self._config.fewest:
            return _note(ranking, {}, ())
        vectors = expand(rows.vectors, list(near.values()), self._config.power)
        expanded_rows, searcher = replace(rows, vectors=vectors), gallery.searcher(branch, None)
        found = searcher.search(expanded_rows, max(self.candidates, len(ranking.ids)))
        found = complete(found, searcher, expanded_rows, ranking.ids)
        expanded = _reorder(ranking, found, tuple(near))
        first = self._config.neighbours
        before, after = set(ranking.ids[:first]), set(expanded.ids[:first])
        return expanded if len(before & after) >= self._config.keep * len(before) else _note(ranking, {}, ())

    def _choose_neighbours(
        self, query: Descriptors, branch: int, ranking: Ranking, gallery: Gallery
    ) -> dict[str, FloatArray]:
        """The rows of the neighbours that count, by id."""
        config, first = self._config, ranking.ids[: max(self._config.neighbours, USUAL)]
        images = dict(zip(first, read_vectors(gallery, branch, first), strict=True))
        likeness = {name: _compare(query.vectors, rows) for name, rows in images.items()}
        above = dict(zip(first, robust_zscore(np.array(list(likeness.values()), np.float32)).tolist(), strict=True))
        best = max(likeness.values())
        return {
            name: images[name]
            for name in first[: config.neighbours]
            if len(images[name])
            and (
                ranking.signals.get(name, {}).get("inliers", 0) >= config.inliers
                or (likeness[name] >= config.share * best and above[name] >= config.standout)
            )
        }


def expand(query: FloatArray, neighbours: Sequence[FloatArray], power: float) -> FloatArray:
    """Query rows [Kq, D] and the rows [r, D] of each neighbour → expanded rows [Kq, D] of unit length."""
    total = query.astype(np.float64)
    lines = np.arange(len(query))
    for rows in neighbours:
        likeness = query @ rows.T
        nearest = likeness.argmax(axis=1)
        total = total + (np.maximum(likeness[lines, nearest], 0) ** power)[:, None] * rows[nearest]
    return l2_normalise(total)


def _compare(query: FloatArray, rows: FloatArray) -> float:
    return float((query @ rows.T).max()) if len(rows) else 0.0


def _reorder(ranking: Ranking, found: Ranking, near: Sequence[str]) -> Ranking:
    inliers = [ranking.signals.get(name, {}).get("inliers", 0.0) for name in found.ids]
    scores = np.asarray(found.scores + np.log1p(inliers), np.float32)
    order = np.argsort(-scores, kind="stable")
    noted = _note(ranking, dict(zip(found.ids, found.scores.tolist(), strict=True)), near)
    # The region that won for the query itself locates the instance; a new image has only the expanded query's region.
    boxes = {**found.boxes, **ranking.boxes}
    located_by = {**dict.fromkeys(found.boxes, "region"), **ranking.located_by}
    ids = tuple(found.ids[row] for row in order)
    return replace(noted, ids=ids, scores=scores[order], boxes=boxes, located_by=located_by)


def _note(ranking: Ranking, scores: Mapping[str, float], near: Sequence[str]) -> Ranking:
    names = dict.fromkeys((*ranking.ids, *scores))
    signals = {
        name: {
            **ranking.signals.get(name, {}),
            "expansion": scores.get(name, 0.0),
            "neighbour": float(name in near),
        }
        for name in names
    }
    return replace(ranking, signals=signals)
