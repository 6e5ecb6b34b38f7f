"""A search whose shortlist comes from an export in Qdrant; all other stages are those of every search.

    query → `global` → the S best by it, by a graph (prefetch) → `tokens` → the best by MaxSim → ordinary pipeline

In: a SearchRequest, and a collection with its export. Out: an Answer, made of what the export knows. `ExportSearcher`
searches like an index: it hands filters to Qdrant as conditions, and gives resight's scores (the mean over the query's
tokens of the best dot product, or ⟨q, x⟩ without tokens). Boxes come from the tokens that the collection stores, for
answers that it still holds. The probability is that of the collection's calibration for this score alone, if there is
one; after two stages there is none.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from resight.collection import CALIBRATION, Collection
from resight.collection.answer import Answer, make_answer
from resight.collection.qdrant.connect import name_export, open_engine
from resight.collection.qdrant.export_plan import GLOBAL, TOKENS, Plan, check_spaces, make_plan, require_complete
from resight.collection.qdrant.payload_filters import translate
from resight.collection.qdrant.sync import read_record
from resight.index.qdrant_backend.backend import Backend, VectorQuery
from resight.search import calibration as calibrations
from resight.search import fusions
from resight.search.pipeline import Pipeline, search
from resight.search.request import SearchRequest
from resight.search.shortlist import Shortlister
from resight.store import ImageRecord
from resight.types import Descriptors, FloatArray, Query, Ranking


def ask_engine(collection: Collection, engine: str, request: SearchRequest) -> Answer:
    """`Collection.ask`, with the export that an engine such as "qdrant://127.0.0.1:6333/photos" names."""
    backend = open_engine(engine, name_export(collection.path))
    try:
        return ask_export(collection, backend, request)
    finally:
        backend.close()


def ask_export(collection: Collection, backend: Backend, request: SearchRequest) -> Answer:
    """`ask_engine`, with an export that stays open."""
    plan = require_complete(backend)
    check_spaces(plan, make_plan(collection), backend)
    condition = translate(request.filters, plan.kinds)
    view = collection.view()
    query = view.encode_query(request)
    searcher = ExportSearcher(backend, plan, query, condition, request.k)
    name, branch, calibration = _describe_score(collection, plan)
    pipeline = Pipeline((Shortlister(name, branch, 1.0, searcher),), fusions.build("score"), (), calibration, view)
    return make_answer(query, search(query, pipeline, request.k), searcher.read)


class ExportSearcher:
    """An export as the index of one search."""

    def __init__(self, backend: Backend, plan: Plan, query: Query, condition: Any, k: int) -> None:
        """`condition` is a `qdrant_client.models.Filter` or None; `k` answers are asked for."""
        self._backend = backend
        self._plan = plan
        self._condition = condition
        self._global = _make_global(plan, query)
        self._k = k
        self._records: dict[str, ImageRecord] = {}

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:
        """Best first, equal scores by id; nothing if the query has nothing to compare."""
        assert allowed is None, "the condition filters"
        if self._global is None or not len(query):
            return Ranking(query.ids[0], (), np.zeros(0, np.float32))
        ask = VectorQuery(GLOBAL, self._global, k, exact=False)
        share = 1.0
        if self._plan.tokens_branch is not None:
            # Of two stages, the second orders no more images than the recipe allows, or than k.
            depth = max(self._plan.shortlist, self._k if self._plan.two_stages else k)
            ask = VectorQuery(TOKENS, np.asarray(query.vectors, np.float32), k, first=replace(ask, limit=depth))
            share = 1 / len(query)
        found = self._backend.query(ask, self._condition, payload=True)
        self._records = {point.payload["id"]: read_record(point.payload) for point in found}
        best = sorted((-point.score * share, str(point.payload["id"])) for point in found)
        return Ranking(
            query.ids[0], tuple(name for _, name in best), np.array([-score for score, _ in best], np.float32)
        )

    def read(self, ids: Sequence[str]) -> list[ImageRecord]:
        """What the export knows of images that the search has found."""
        return [self._records[name] for name in ids]


def _make_global(plan: Plan, query: Query) -> FloatArray | None:
    branches = (plan.global_branch, plan.tokens_branch)
    own, tokens = (None if branch is None else query.descriptors[branch] for branch in branches)
    return plan.make_global((own, tokens))


def _describe_score(collection: Collection, plan: Plan) -> tuple[str, int, calibrations.Calibration | None]:
    """What the shortlist's score is called in resight's own search, the branch it compares, and its calibration."""
    if plan.two_stages:
        assert plan.tokens_branch is not None
        return "late", plan.tokens_branch, None
    branch = plan.tokens_branch if plan.global_branch is None else plan.global_branch
    assert branch is not None, "a plan has a branch"
    name = collection.recipe.branches[branch].descriptor.name
    space = plan.spaces[TOKENS if plan.global_branch is None else GLOBAL]
    return name, branch, calibrations.choose(["standout"], collection.local_folder / CALIBRATION, {name: space})
