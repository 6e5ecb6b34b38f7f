"""Match two collections: for each image of the first its best match in the second, with box and probability.

The command searches each stored image of A in B. Several images of A may have the same match; `one_to_one` gives each
image of B to at most one of A, such that the sum of the log-odds of all pairs is largest. The result also lists images
without a match of at least the probability `least`, and images that could not be read.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.audit.dedup.branches import require_same_spaces
from resight.collection import Collection
from resight.collection.view import View
from resight.data.image_files import reason
from resight.errors import BoxError, CollectionError, ImageError, InputError, SpaceMismatch
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.search.request import SearchRequest, StoredImage
from resight.store import ImageRecord
from resight.types import Box, Hit, Query, Skipped

COLUMNS = ("a", "b", "probability", "x0", "y0", "x1", "y1", "inliers")
SUREST = 1 - 1e-9  # keeps log-odds finite

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Matched:
    """`b` is empty if there is no match; the other fields are then 0 and None."""

    a: str
    b: str = ""
    probability: float = 0.0
    box: Box | None = None  # in b
    inliers: int = 0
    skipped: Skipped | None = None  # why it was not searched


def match_collections(
    a: Collection,
    b: Collection,
    *,
    one_to_one: bool = False,
    least: float = 0.5,
    candidates: int = 5,
    progress: Progress | None = None,
) -> list[Matched]:
    """One entry per image of `a`, in its order."""
    require_same_spaces(a, b)
    found = dict(list_candidates(a, b, candidates, progress))
    alone = {name: next((one for one in some if one.skipped), Matched(name)) for name, some in found.items()}
    likely = {name: [one for one in some if one.b and one.probability >= least] for name, some in found.items()}
    if not one_to_one:
        return [next(iter(some), alone[name]) for name, some in likely.items()]
    known = {(one.a, one.b): one for some in likely.values() for one in some}
    # Log-odds below 0 would never be chosen, so weights count from those of `least`.
    chosen = match_one_to_one(
        {pair: _log_odds(one.probability) - _log_odds(least) + 1e-6 for pair, one in known.items()}
    )
    return [known[name, chosen[name]] if name in chosen else alone[name] for name in likely]


def list_candidates(
    a: Collection, b: Collection, candidates: int, progress: Progress | None = None
) -> Iterator[tuple[str, list[Matched]]]:
    """For each image of `a` the most probable of `b`, best first; for an unreadable one, an entry with the reason."""
    source, target = a.view(), b.view()
    if len(target) and target.pipeline.calibration is None:
        raise InputError(
            "matches need probabilities, and this recipe has no calibration",
            expected="a preset such as sift_tokens, or a collection that was calibrated",
            actual=a.recipe.name,
            fix="resight calibrate COLLECTION --pairs FILE",
        )
    for done, record in enumerate(source.records(), start=1):
        query = _read_query(source, record) if len(target) else None
        if isinstance(query, Skipped):
            yield record.id, [Matched(record.id, skipped=query)]
        else:
            hits = target.ask(SearchRequest(query, candidates)).hits if query else ()
            yield record.id, sorted((_read(record.id, hit) for hit in hits), key=lambda one: -one.probability)
        if progress:
            progress(done, len(source))


def match_one_to_one(weights: Mapping[tuple[str, str], float]) -> dict[str, str]:
    """The matching left → right of largest total weight, without pairs of weight 0 or less.

    Maximum-weight bipartite matching on a sparse graph: every left also has its own dummy right, for no match.
    """
    from scipy.sparse import coo_matrix  # only a one-to-one match needs scipy
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    useful = {pair: weight for pair, weight in weights.items() if weight > 0}
    if not useful:
        return {}
    lefts = {left: number for number, left in enumerate(dict.fromkeys(left for left, _ in useful))}
    rights = {right: number for number, right in enumerate(dict.fromkeys(right for _, right in useful))}
    alone = np.arange(len(lefts))
    rows = np.concatenate([[lefts[left] for left, _ in useful], alone])
    columns = np.concatenate([[rights[right] for _, right in useful], len(rights) + alone])
    gains = np.concatenate([list(useful.values()), np.zeros(len(lefts))])
    costs = coo_matrix((gains.max() + 1 - gains, (rows, columns)), (len(lefts), len(rights) + len(lefts)))
    found, partners = min_weight_full_bipartite_matching(costs.tocsr())
    names = list(rights)
    by_left = dict(zip(found.tolist(), partners.tolist(), strict=True))
    return {left: names[by_left[number]] for left, number in lefts.items() if by_left[number] < len(names)}


def write_matches(matches: Sequence[Matched], path: Path) -> None:
    """Write a CSV file with COLUMNS; the box lies in b. Without a match, all columns but `a` are empty."""
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(COLUMNS)
        for one in matches:
            box = ["", "", "", ""] if one.box is None else [f"{side:.1f}" for side in one.box]
            table.writerow([one.a, one.b, f"{one.probability:.6f}", *box, one.inliers] if one.b else [one.a, *[""] * 7])


def _read_query(source: View, record: ImageRecord) -> Query | Skipped:
    """The query, or why it cannot be made: its file is unreadable or has changed."""
    try:
        return source.encode_query(SearchRequest(StoredImage(record.id)))
    except SpaceMismatch:  # concerns all images
        raise
    except (ImageError, BoxError) as error:
        return Skipped(str(record.path), reason(error, record.path))
    except CollectionError as error:
        return Skipped(str(record.path), error.problem)


def _read(name: str, hit: Hit) -> Matched:
    return Matched(name, hit.id, hit.probability or 0.0, hit.box, int(hit.stages.get("inliers", 0)))


def _log_odds(probability: float) -> float:
    chance = min(max(probability, 1 - SUREST), SUREST)
    return math.log(chance / (1 - chance))
