"""Geometric verification of the best candidates.

Adds the signals `inliers` (0 without a plausible model) and `significance` (how unlikely the model is by chance), and
the match itself. Verified images come first: score = shortlist score + log(1 + significance). With `within = "region"`,
only key points in and around the region that won are matched: a small object in clutter has few of the image's key
points, and the others mislead. `within = "both"` tries the region and the whole image, and keeps the more significant
model.

A recipe may have it several times, for several kinds of key points (`branch`, `prefix`): SIFT stands any turn, learnt
key points stand other light and viewpoints. An image keeps its most significant match, and only that counts in its
score. `joined` makes its significance the only signal of the later one: two kinds of key points see the same things, so
that the sum of both would count twice. Learnt ones mistake products of one shape for each other, so that they are asked
only where the first convince for no candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from resight.boxes import contains, grow
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.search import matchers
from resight.search.gallery import Gallery
from resight.search.matchers import LocalFeatures
from resight.search.matchers.ratio import Ratio
from resight.search.verification import Model, Settings, verify
from resight.types import Box, Choice, Descriptors, Match, Query, Ranking

Within = Literal["image", "region", "both"]
AROUND = 0.5  # of the sides of a region, on each side
CONVINCING = 20.0  # significance of a match from which further key points, joined with the first, are not asked


@dataclass(frozen=True)
class Config:
    candidates: int = 30  # first images of the ranking to verify
    model: Model = "best"  # best: the more significant of homography (flat objects) and similarity (scenes with depth)
    ratio: float = 0.9  # keep a match if its distance is below this share of the second-best's (Lowe's ratio test)
    mutual: bool = True  # keep a match only if each key point is the other's nearest
    matcher: Choice | None = None  # plug-in that pairs key points; None: ratio, with the two settings above
    branch: int | None = None  # number of the branch with the local features, from 0; None: the first that has some
    prefix: str = ""  # of its signals, where a recipe has several of them: "xfeat_" gives xfeat_inliers
    joined: bool = False  # instead, one signal: the best significance of this and earlier key points, if those fail
    tolerance: float = 6.0  # pixels by which an inlier may miss the model in the database image (fundamental: half)
    iterations: int = 2000  # most iterations of the robust estimation (MAGSAC); fundamental takes twice as many
    within: Within = "image"  # match key points of the whole image, of its best region, or of either
    instances: int = 1  # of the query in one image, at most; each gets a box

    def __post_init__(self) -> None:
        check_range("candidates", self.candidates, 0, 1_000_000)
        check_range("ratio", self.ratio, 0.01, 1)
        check_range("tolerance", self.tolerance, 0.01, 10000)
        check_range("iterations", self.iterations, 1, 10_000_000)
        check_range("instances", self.instances, 1, 1000)
        if self.matcher is not None and (self.ratio, self.mutual) != (0.9, True):
            raise RecipeError(
                "geometry has a matcher, and ratio or mutual beside it",
                expected="the settings inside the matcher",
                actual=f"matcher {self.matcher.name}, ratio {self.ratio:g}, mutual {self.mutual}",
                fix='e.g. matcher = { name = "ratio", ratio = 0.8 }',
            )


def build(config: Config) -> "Geometry":
    return Geometry(config)


class Geometry:
    def __init__(self, config: Config) -> None:
        self.candidates = config.candidates
        self.signals: tuple[str, ...] = (
            (f"{config.prefix}significance",)
            if config.joined
            else (f"{config.prefix}inliers", f"{config.prefix}significance")
        )
        self._joined, self._within, self._branch = config.joined, config.within, config.branch
        choice = config.matcher
        matcher = (
            Ratio(config.ratio, config.mutual) if choice is None else matchers.build(choice.name, **choice.settings)
        )
        self._settings = Settings(config.model, matcher, config.tolerance, config.iterations, config.instances)

    def rerank(self, query: Query, ranking: Ranking, gallery: Gallery) -> Ranking:
        branch = _find_local_branch(query, self._branch)
        local_query = next(_split(query.descriptors[branch]))
        looked_at = ranking.ids[: self.candidates]
        if not looked_at:
            return ranking
        matches: dict[str, Match] = {}
        if self._joined and _is_convincing(ranking):
            return self._reorder(ranking, looked_at, matches)
        for chunk in gallery.descriptors(branch, looked_at):
            for image in _split(chunk):
                parts = self._choose_parts(image, ranking.regions.get(image.id))
                found = (verify(local_query, part, query.outline, self._settings) for part in parts)
                best = max(filter(None, found), key=lambda match: match.significance, default=None)
                if best is not None:
                    matches[image.id] = best
        return self._reorder(ranking, looked_at, matches)

    def _reorder(self, ranking: Ranking, looked_at: tuple[str, ...], matches: dict[str, Match]) -> Ranking:
        before = {name: _significance(ranking, name) for name in matches}
        better = {name: match for name, match in matches.items() if match.significance > before[name]}
        kept = {**matches, **ranking.matches, **better}
        gains = {name: np.log1p(match.significance) - np.log1p(before[name]) for name, match in better.items()}
        scores = ranking.scores + np.array([gains.get(name, 0.0) for name in ranking.ids], np.float32)
        order = np.argsort(-scores, kind="stable")
        signals = {name: dict(ranking.signals.get(name, {})) for name in ranking.ids}
        for name in {*looked_at, *kept} if self._joined else looked_at:
            match = (kept if self._joined else matches).get(name)
            values = (float(match.inliers), match.significance) if match else (0.0, 0.0)
            signals[name] |= zip(self.signals, values[-len(self.signals) :], strict=True)
        ids = tuple(ranking.ids[row] for row in order)
        return replace(ranking, ids=ids, scores=scores[order], signals=signals, matches=kept)

    def _choose_parts(self, image: LocalFeatures, region: Box | None) -> list[LocalFeatures]:
        """What to match of an image: all of it, the surroundings of its best region, or both."""
        if region is None or self._within == "image":
            return [image]
        inside = _keep_inside(image, grow(region, AROUND))
        return [inside] if self._within == "region" else [image, inside]


def _is_convincing(ranking: Ranking) -> bool:
    return any(match.significance >= CONVINCING for match in ranking.matches.values())


def _significance(ranking: Ranking, name: str) -> float:
    """Of the match that a reranker before this one has found."""
    return ranking.matches[name].significance if name in ranking.matches else 0.0


def _keep_inside(image: LocalFeatures, box: Box) -> LocalFeatures:
    inside = contains(box, image.points[:, :2])
    return replace(image, rows=image.rows[inside], points=image.points[inside])


def _find_local_branch(query: Query, wanted: int | None) -> int:
    """The branch `wanted`, or else the first with key points."""
    with_points = [number for number, rows in enumerate(query.descriptors) if rows.points is not None]
    found = with_points if wanted is None else [number for number in with_points if number == wanted]
    if found:
        return found[0]
    raise RecipeError(
        "geometric verification needs local features",
        expected='a branch with the descriptor "local"',
        actual=f"{len(query.descriptors)} branches, none with key points" if wanted is None else f"branch {wanted}",
        fix='add [[branches]] encoder = "sift", descriptor = "local", weight = 0; or remove the reranker "geometry"',
    )


def _split(rows: Descriptors) -> Iterator[LocalFeatures]:
    """One LocalFeatures per image."""
    assert rows.points is not None
    limits = np.searchsorted(rows.owners, np.arange(len(rows.ids) + 1))
    for image, name in enumerate(rows.ids):
        part = slice(limits[image], limits[image + 1])
        yield LocalFeatures(name, rows.vectors[part], rows.points[part])
