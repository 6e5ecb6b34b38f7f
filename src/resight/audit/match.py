"""One-to-one: each left at most one right and each right at most one left, so that the weights add up to the most.

The Hungarian method on a sparse graph, by augmenting paths. Lefts come one after the other; each looks for the chain
"take a right, and whoever had it takes another or is left alone" that gains most. To be alone weighs 0, so that a pair
of weight 0 or less is never made. In: weights of possible pairs. Out: the pairs chosen, the best of all choices.

The same things in two collections: each image of the first, its best match in the second, with box and probability.

Each stored image of A is searched in B. Left as they are, several of A may have the same match; `one_to_one` gives each
image of B to one of A at most, so that the log-odds of all pairs together are the largest. What has no match at least
as likely as asked for is listed, too, and so is what could not be read.
"""

import csv
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from resight.audit.dedup.branches import require_same_spaces
from resight.collection import Collection, View
from resight.data.image_files import reason
from resight.errors import BoxError, CollectionError, ImageError, InputError, SpaceMismatch
from resight.files.atomic import write_atomic
from resight.search.request import SearchRequest, StoredImage
from resight.store import ImageRecord
from resight.types import Box, Hit, Query, Skipped

TINY = 1e-12  # what rounding may gain, which would be looked for without end
Left = TypeVar("Left", bound=Hashable)
Right = TypeVar("Right", bound=Hashable)


def assign(weights: Mapping[tuple[Left, Right], float]) -> dict[Left, Right]:
    """Ties are broken by the order in which pairs come."""
    edges: dict[Left, dict[Right, float]] = {}
    for (left, right), weight in weights.items():
        edges.setdefault(left, {})[right] = weight
    matching = _Matching(edges)
    for left in edges:
        matching.place(left)
    return matching.taken


class _Matching(Generic[Left, Right]):
    def __init__(self, edges: Mapping[Left, Mapping[Right, float]]) -> None:
        self.taken: dict[Left, Right] = {}
        self._edges = edges
        self._owner: dict[Right, Left] = {}

    def place(self, start: Left) -> None:
        gains = {start: 0.0}  # of leaving this left without a right, everything before it on its chain being changed
        came: dict[Left, tuple[Left, Right]] = {}  # who takes the right of this left
        best: tuple[float, Left, Right | None] = (0.0, start, None)
        queue = deque([start])
        while queue:
            left = queue.popleft()
            for right, weight in self._edges[left].items():
                holder, gain = self._owner.get(right), gains[left] + weight
                if holder is None:
                    best = max(best, (gain, left, right), key=lambda end: end[0])
                elif holder != left and gain - self._edges[holder][right] > gains.get(holder, -float("inf")) + TINY:
                    gains[holder], came[holder] = gain - self._edges[holder][right], (left, right)
                    best = max(best, (gains[holder], holder, None), key=lambda end: end[0])
                    queue.append(holder)
        self._change(best[1], best[2], start, came)

    def _change(self, left: Left, right: Right | None, start: Left, came: Mapping[Left, tuple[Left, Right]]) -> None:
        """From the end of the chain back to its start."""
        self._give(left, right)
        while left != start:
            left, right = came[left]
            self._give(left, right)

    def _give(self, left: Left, right: Right | None) -> None:
        if right is None:
            self.taken.pop(left, None)
        else:
            self.taken[left] = right
            self._owner[right] = left


COLUMNS = ("a", "b", "probability", "x0", "y0", "x1", "y1", "inliers")
SUREST = 1 - 1e-9  # log-odds stay finite

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Matched:
    """`b` is empty where nothing was found; then the other fields are 0 and None."""

    a: str
    b: str = ""
    probability: float = 0.0
    box: Box | None = None  # in b
    inliers: int = 0
    skipped: Skipped | None = None  # why it was not looked for


def match_collections(
    a: Collection,
    b: Collection,
    *,
    one_to_one: bool = False,
    least: float = 0.5,
    candidates: int = 5,
    progress: Progress | None = None,
) -> list[Matched]:
    """One for each image of `a`, in its order."""
    require_same_spaces(a, b)
    found = dict(list_candidates(a, b, candidates, progress))
    alone = {name: next((one for one in some if one.skipped), Matched(name)) for name, some in found.items()}
    likely = {name: [one for one in some if one.b and one.probability >= least] for name, some in found.items()}
    if not one_to_one:
        return [next(iter(some), alone[name]) for name, some in likely.items()]
    known = {(one.a, one.b): one for some in likely.values() for one in some}
    # Log-odds are below 0 for what is less likely than not, and would then never be chosen: counted from `least` on.
    chosen = assign({pair: _log_odds(one.probability) - _log_odds(least) + 1e-6 for pair, one in known.items()})
    return [known[name, chosen[name]] if name in chosen else alone[name] for name in likely]


def list_candidates(
    a: Collection, b: Collection, candidates: int, progress: Progress | None = None
) -> Iterator[tuple[str, list[Matched]]]:
    """For each image of `a` the likeliest of `b`, best first; where it cannot be read, one without b that says why."""
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


def write_matches(matches: Sequence[Matched], path: Path) -> None:
    """The columns COLUMNS, the box in b; from b on they are empty where nothing was found."""
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for one in matches:
            box = ["", "", "", ""] if one.box is None else [f"{side:.1f}" for side in one.box]
            table.writerow([one.a, one.b, f"{one.probability:.6f}", *box, one.inliers] if one.b else [one.a, *[""] * 7])


def _read_query(source: View, record: ImageRecord) -> Query | Skipped:
    """Where its file is needed and cannot be read, or shows something else by now, the reason."""
    try:
        return source.encode_query(SearchRequest(StoredImage(record.id)))
    except SpaceMismatch:  # of all images: there is nothing to go on with
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
