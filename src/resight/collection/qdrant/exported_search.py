"""A search whose shortlist and order are Qdrant's: encoded here, answered there.

    query → `global` → the S best by it, by a graph (prefetch) → `tokens` → the k best by MaxSim → Answer

The answer is made of what the export knows. Boxes come from the tokens that the collection stores, for answers that are
still in it. Scores are those of resight: the mean over the query's tokens of the best dot product, or ⟨q, x⟩ where
there are no tokens. The probability is that of the collection's calibration for this score alone, where it has one;
after two stages there is none.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from resight.collection import CALIBRATION, Answer, Collection, Image, View
from resight.collection.answer import check_count, make_answer
from resight.collection.attributes import read_positions
from resight.collection.qdrant.connect import name_export, open_engine
from resight.collection.qdrant.export_plan import GLOBAL, TOKENS, Plan, check_spaces, make_plan, require_complete
from resight.collection.qdrant.payload_filters import translate
from resight.collection.qdrant.sync import read_record
from resight.collection.view import Near
from resight.index.qdrant_backend.backend import Ask, Found, Place
from resight.search import calibration as calibrations
from resight.search import filters
from resight.search.fusions.robust_zscore import USUAL, robust_zscore
from resight.search.locate_boxes import locate
from resight.search.position import estimate_position, list_best
from resight.types import Box, Query, Ranking


def ask_engine(
    collection: Collection,
    engine: str,
    image: Image | Query,
    k: int = 10,
    *,
    box: Box | None = None,
    where: Sequence[str] = (),
    near: Near | None = None,
) -> Answer:
    """`Collection.ask`, answered by the export that an engine such as "qdrant://127.0.0.1:6333/photos" names."""
    place = open_engine(engine, name_export(collection.path))
    try:
        return ask_export(collection, place, image, k, box=box, where=where, near=near)
    finally:
        place.close()


def ask_export(
    collection: Collection,
    place: Place,
    image: Image | Query,
    k: int = 10,
    *,
    box: Box | None = None,
    where: Sequence[str] = (),
    near: Near | None = None,
) -> Answer:
    """Like `ask_engine`, of a place that stays open."""
    check_count(k)
    plan = require_complete(place)
    check_spaces(plan, make_plan(collection), place)
    condition = translate(filters.parse(where, near), plan.kinds)
    query = image if isinstance(image, Query) else collection.encode_query(image, box)
    start = time.perf_counter()
    found = _find(place, plan, query, k if plan.two_stages else max(k, USUAL), condition)
    seconds = {"qdrant": time.perf_counter() - start}
    return _answer(collection, plan, query, found, k, seconds)


def _find(place: Place, plan: Plan, query: Query, limit: int, condition: object) -> list[Found]:
    """Best first, equal scores by id, scores as resight has them; nothing where the query has nothing to compare."""
    own = None if plan.global_branch is None else query.descriptors[plan.global_branch]
    tokens = None if plan.tokens_branch is None else query.descriptors[plan.tokens_branch]
    whole = plan.make_global((own, tokens))
    if whole is None:
        return []
    share = 1.0
    if tokens is None:
        ask = Ask(GLOBAL, whole, limit, exact=False)
    elif not len(tokens):
        return []
    else:
        first = Ask(GLOBAL, whole, max(plan.shortlist, limit), exact=False)
        ask = Ask(TOKENS, np.asarray(tokens.vectors, np.float32), limit, first=first)
        share = 1 / len(tokens)
    found = place.query(ask, condition, payload=True)
    found = [replace(point, score=point.score * share) for point in found]
    return sorted(found, key=lambda point: (-point.score, point.payload["id"]))


def _answer(
    collection: Collection, plan: Plan, query: Query, found: Sequence[Found], k: int, seconds: dict[str, float]
) -> Answer:
    view = collection.view()
    records = {record.id: record for record in (read_record(point.payload) for point in found)}
    ranking = replace(_rank(collection, plan, query, found), seconds=seconds)
    likely = list_best(ranking)
    position = estimate_position(ranking, read_positions(records[name] for name in likely))
    ranking = replace(ranking, ids=ranking.ids[:k], scores=ranking.scores[:k])
    return make_answer(query, _locate(query, ranking, view), records, position)


def _rank(collection: Collection, plan: Plan, query: Query, found: Sequence[Found]) -> Ranking:
    scores = np.array([point.score for point in found], np.float32)
    ids = tuple(str(point.payload["id"]) for point in found)
    ranking = Ranking(query.id, ids, scores)
    if plan.two_stages:
        return replace(
            ranking, signals={name: {"late": score} for name, score in zip(ids, scores.tolist(), strict=True)}
        )
    score_name, space = _name_score(collection, plan)
    signals = {
        name: {score_name: score, "standout": distance}
        for name, score, distance in zip(ids, scores.tolist(), robust_zscore(scores).tolist(), strict=True)
    }
    calibration = calibrations.choose(["standout"], collection.home / CALIBRATION, {score_name: space})
    return calibrations.apply(replace(ranking, signals=signals), calibration)


def _name_score(collection: Collection, plan: Plan) -> tuple[str, str]:
    """What the score of the one stage is called in resight's own search, and its space."""
    branch = plan.tokens_branch if plan.global_branch is None else plan.global_branch
    assert branch is not None, "a plan has a branch"
    name = collection.recipe.branches[branch].descriptor.name
    return name, plan.spaces[TOKENS if plan.global_branch is None else GLOBAL]


def _locate(query: Query, ranking: Ranking, view: View) -> Ranking:
    known = [place for place, name in enumerate(ranking.ids) if view.find(name) is not None]
    some = replace(ranking, ids=tuple(ranking.ids[place] for place in known), scores=ranking.scores[known])
    located = locate(query, some, view, view.sizes)
    return replace(ranking, boxes=located.boxes, located_by=located.located_by)
