"""The same things in two collections: each image of the first, its best match in the second, with box and probability.

Each stored image of A is searched in B. Left as they are, several of A may have the same match; `one_to_one` gives each
image of B to one of A at most, so that the log-odds of all pairs together are the largest. What has no match at least
as likely as asked for is listed, too, and so is what could not be read.
"""

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from resight.audit.assignment import assign
from resight.audit.branches import require_same_spaces
from resight.collection import Collection, View
from resight.data.images import reason
from resight.errors import BoxError, CollectionError, ImageError, InputError, SpaceMismatch
from resight.store import ImageRecord
from resight.types import Box, Hit, Query, Skipped
from resight.whole_files import write_whole

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
            hits = target.ask(query, candidates).hits if query else ()
            yield record.id, sorted((_read(record.id, hit) for hit in hits), key=lambda one: -one.probability)
        if progress:
            progress(done, len(source))


def write_matches(matches: Sequence[Matched], path: Path) -> None:
    """The columns COLUMNS, the box in b; from b on they are empty where nothing was found."""
    with write_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for one in matches:
            box = ["", "", "", ""] if one.box is None else [f"{side:.1f}" for side in one.box]
            table.writerow([one.a, one.b, f"{one.probability:.6f}", *box, one.inliers] if one.b else [one.a, *[""] * 7])


def _read_query(source: View, record: ImageRecord) -> Query | Skipped:
    """Where its file is needed and cannot be read, or shows something else by now, the reason."""
    try:
        return source.stored_query(record.id)
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
