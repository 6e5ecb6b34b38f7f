"""Score crops of craters for a query crop: tokens must agree, and both craters must lie in the middle. Names and scores
out, best first.

A search finds a crater's neighbour too: its crop shows the same ground, shifted. The reranker `layout` looks for that
shift. Here the query is laid over a candidate with the two craters on each other alone, at nearly the same size, which
a neighbour does not survive. Crops of unlike `view` are scaled by their ratio.

    without candidates    the first SHORTLIST images of the search's shortlist are scored
    with candidates       (priors) exactly these, without a search unless they are more than SHORTLIST
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from resight.collection.view import View
from resight.kernels.numpy_reference import Overlay
from resight.search.locate_boxes import require_token_branch
from resight.search.pipeline import search_in_stages
from resight.search.rerankers.layout import LEAST_INSIDE, place_candidates, score_layout
from resight.types import Query

SHORTLIST = 100
SCALES, SHIFTS, TOLERANCE = (0.9, 1.0, 1.1), (-0.03, 0.0, 0.03), 0.1  # chosen on tuning craters


def rank_centred(
    query: Query, side: float, target: View, sides: Mapping[str, float], names: Sequence[str] | None
) -> list[tuple[str, float]]:
    """`side` of the query and `sides` of the target's crops in diameters; 0: unknown, taken as equal."""
    if names is None or len(names) > SHORTLIST:
        allowed = None if names is None else frozenset(names)
        names = next(search_in_stages(query, target.pipeline, SHORTLIST, allowed)).ids
    branch = require_token_branch(query)
    found: list[tuple[str, float]] = []

    def ratio(name: str) -> float:
        other = sides.get(name, 0.0)
        return round(side / other, 3) if side and other else 1.0

    for scale, some in groupby(sorted(names, key=lambda name: (ratio(name), name)), key=ratio):
        overlay = Overlay(tuple(scale * one for one in SCALES), SHIFTS, TOLERANCE, LEAST_INSIDE)
        candidates = place_candidates(target.descriptors(branch, list(some)))
        scores = score_layout(query.descriptors[branch], candidates, overlay)
        found += zip(candidates.ids, scores.tolist(), strict=True)
    return sorted(found, key=lambda one: (-one[1], one[0]))
