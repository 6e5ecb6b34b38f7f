"""How often the fast search of the index `maxsim` matches the exact one, measured on your own images.

In: a collection, and queries or a sample of its own images. Out: an ExactnessReport: the share of queries whose first
r answers are the exact ones in the exact order, for r = 1 … k, and the cost of the proof. An image of the collection
that serves as a query is left out of both answers.
"""

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from resight.collection import Collection
from resight.collection.add import Progress
from resight.collection.image_list import ImageList, list_images
from resight.data import image_files
from resight.errors import BoxError, ImageError, InputError, RecipeError
from resight.index._segments import JoinedSearcher
from resight.index.maxsim import MaxSimSearcher
from resight.search.locate_boxes import split
from resight.search.pipeline import choose_depth
from resight.search.shortlist import Shortlister
from resight.types import Descriptors, ImageRef, Skipped

EncodedQuery = tuple[Descriptors, str | None]  # rows, and the id of the image if the collection has it
DEVIATIONS = 1.959963984540054  # standard deviations around the mean that hold 95 % of a normal distribution


@dataclass(frozen=True)
class Share:
    """The queries whose answer is exact down to `rank`."""

    rank: int
    same: int
    rate: float
    low: float  # 95 % interval
    high: float


@dataclass(frozen=True)
class ExactnessReport:
    branch: str  # name of its score
    way: str  # of the fast search
    images: int
    queries: int
    depth: int  # of the timed shortlists
    ranks: tuple[Share, ...]  # 1 … k; the last one is that of the whole answer
    proven_seconds: float  # median of a shortlist
    unproven_seconds: float
    rescored: float  # median number of images that a proof scored in full precision
    most_rescored: int
    skipped: tuple[Skipped, ...]  # queries that cannot be read


@dataclass(frozen=True)
class SearchPair:
    """One query, searched exactly and fast."""

    agreed: int  # leading ranks with the same image
    rescored: int
    proven_seconds: float
    unproven_seconds: float


def measure_exactness(
    collection: Collection,
    queries: Sequence[str | Path] = (),
    k: int = 10,
    *,
    sample: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
) -> ExactnessReport:
    """queries: images, folders or manifests; default: `sample` images of the collection."""
    part, searcher = find_maxsim(collection)
    depth = choose_depth(collection.view().pipeline, k)
    k = min(k, len(collection) - (0 if queries else 1))
    if k < 1 or sample < 1:
        raise InputError(
            "nothing to compare",
            expected="k and sample of 1 or more, and at least two images",
            actual=f"{len(collection)} images, k = {k}, sample = {sample}",
        )
    lists = list_images(queries) if queries else []
    total = sum(map(len, lists)) or min(sample, len(collection))
    found: list[SearchPair] = []
    skipped: list[Skipped] = []
    for done, query in enumerate(list_queries(collection, part.branch, lists, sample, seed), start=1):
        if isinstance(query, Skipped):
            skipped.append(query)
        else:
            found.append(_compare(searcher, *query, depth, k, proof_first=done % 2 == 0))
        if progress:
            progress(done, total)
    if not found:
        raise InputError(
            "no query to measure with",
            expected="at least one image that has tokens",
            actual=f"{len(skipped)} that cannot be read" if skipped else "none",
            fix="give others",
        )
    return ExactnessReport(
        branch=part.name,
        way=searcher.approximation,
        images=len(collection),
        queries=len(found),
        depth=depth,
        ranks=tuple(share(rank, sum(one.agreed >= rank for one in found), len(found)) for rank in range(1, k + 1)),
        proven_seconds=statistics.median(one.proven_seconds for one in found),
        unproven_seconds=statistics.median(one.unproven_seconds for one in found),
        rescored=statistics.median(one.rescored for one in found),
        most_rescored=max(one.rescored for one in found),
        skipped=tuple(skipped),
    )


def list_queries(
    collection: Collection, branch: int, queries: Sequence[ImageList], sample: int, seed: int
) -> Iterator[EncodedQuery | Skipped]:
    """Encoded `queries`; default: `sample` images of the collection that have rows, each with its own id."""
    if queries:
        refs = (ref for images in queries for ref in images)
        return (ref if isinstance(ref, Skipped) else _encode(collection, branch, ref, None) for ref in refs)
    ids = sorted(record.id for record in collection.records())
    chosen = [ids[row] for row in np.random.default_rng(seed).permutation(len(ids))[:sample]]
    if collection.recipe.branches[branch].regions is None:
        stored = split(collection.descriptors(branch, chosen))
        return ((image, image.ids[0]) for image in stored if len(image))
    # the collection stores rows of regions, while a query is the whole image
    return (_encode(collection, branch, record.ref, record.id) for record in collection.records(chosen))


def share(rank: int, same: int, total: int) -> Share:
    """With the interval of E. B. Wilson (1927), which is valid for 0 and for all, too."""
    rate, spread = same / total, DEVIATIONS**2 / total
    middle = (rate + spread / 2) / (1 + spread)
    half = DEVIATIONS / (1 + spread) * math.sqrt(rate * (1 - rate) / total + spread / (4 * total))
    return Share(rank, same, rate, max(middle - half, 0.0), min(middle + half, 1.0))


def find_maxsim(collection: Collection) -> tuple[Shortlister, MaxSimSearcher]:
    """The first branch whose index can search exactly and fast."""
    parts = collection.view().pipeline.shortlisters
    for part in parts:
        searcher = part.searcher
        if isinstance(searcher, JoinedSearcher):
            searcher = collection.view().searcher(part.branch, whole=True)
        if isinstance(searcher, MaxSimSearcher):
            own = collection.recipe.branches[part.branch].index is not None
            _check(searcher, f"branches.{part.branch}.index" if own else "index")
            return part, searcher
    names = [(branch.index or collection.recipe.index).name for branch in collection.recipe.branches if branch.weight]
    raise RecipeError(
        f"{collection.path} has no index that can prove its answers",
        expected='a branch of tokens whose index is "maxsim"',
        actual=", ".join(f"{part.name} by {name}" for part, name in zip(parts, names, strict=True)),
        fix="index the images with such a recipe, e.g. --preset gardens_point_tokens; if a branch already has "
        "tokens, add --set index=maxsim",
    )


def _encode(collection: Collection, branch: int, ref: ImageRef, own: str | None) -> EncodedQuery | Skipped:
    try:
        return collection.encode_query(ref).descriptors[branch], own
    except (ImageError, BoxError) as error:
        return Skipped(str(ref.path), image_files.reason(error, ref.path))


def _check(searcher: MaxSimSearcher, setting: str) -> None:
    if not searcher.can_prove:
        raise RecipeError(
            "the index keeps no tokens to prove answers with",
            expected='keep = "fp32" or keep = "fp16"',
            actual='keep = "none"',
            fix=f"add --set {setting}.keep=fp32",
        )
    if not searcher.is_compressed:
        raise RecipeError(
            "nothing to measure: the index compares full tokens, so every answer is exact",
            expected="codes or a cascade",
            actual=searcher.approximation,
            fix=f"add --set {setting}.kind=int8, --set {setting}.kind=pq or --set {setting}.cascade=true",
        )


def _compare(
    searcher: MaxSimSearcher, query: Descriptors, own: str | None, depth: int, k: int, *, proof_first: bool
) -> SearchPair:
    """own: an image that both answers leave out. The second search finds warm caches, so the two take turns."""
    depth += own is not None
    times: dict[bool, float] = {}
    answers: dict[bool, list[str]] = {}
    rescored = 0
    for proven in (proof_first, not proof_first):
        started = time.perf_counter()
        if proven:
            ranking, certificate = searcher.prove(query, depth)
            rescored = certificate.rescored if certificate else 0
        else:
            ranking = searcher.approximate(query, depth)
        times[proven] = time.perf_counter() - started
        answers[proven] = [name for name in ranking.ids if name != own][:k]
    pairs = zip_longest(answers[True], answers[False])
    agreed = next((rank for rank, (exact, rough) in enumerate(pairs) if exact != rough), k)
    return SearchPair(agreed, rescored, times[True], times[False])
