"""Why two stored images are a pair: their key points, matched and verified again from what the collections hold.

In: two collections and an id of each. Out: a Match from the first to the second, or None where no believable model
explains the key points, where a recipe has none, or where they are of two kinds. Nothing is decoded or encoded.
"""

from dataclasses import replace

import numpy as np

from resight.audit.branches import choose_branches, read_local
from resight.audit.mirror import mirror_features
from resight.audit.side import outline_of
from resight.collection import Collection
from resight.search.verification import Settings, verify
from resight.types import Box, Match


def match_stored(one: Collection, a: str, two: Collection, b: str) -> Match | None:
    """Where the pictures do not match as they are, one of them may be mirrored."""
    first, second = choose_branches(one.recipe), choose_branches(two.recipe)
    if first.local is None or second.local is None:
        return None
    if one.description.spaces[first.local] != two.description.spaces[second.local]:
        return None
    (record,) = one.records([a])
    outline = outline_of(record)
    features, others = read_local(one, first.local, [a])[a], read_local(two, second.local, [b])[b]
    match = verify(features, others, outline, Settings())
    if match is None and first.mirrors:
        mirrored = verify(mirror_features(features, outline), others, outline, Settings())
        match = _undo_mirror(mirrored, outline) if mirrored else None
    return match


def _undo_mirror(match: Match, outline: Box) -> Match:
    """The match in the coordinates of the first image as it is."""
    across = outline[0] + outline[2]
    mirror = np.array([[-1.0, 0.0, across], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    points = match.points.copy()
    points[:, 0] = across - points[:, 0]
    return replace(match, transform=match.transform @ mirror, points=points)
