"""Why two stored images are a pair: match and verify their stored key points again.

In: two collections and an id of each. Out: a Match from the first to the second; None if no plausible model explains
the key points, if a recipe has none, or if they come from different encoders. Nothing is decoded or encoded.
"""

from dataclasses import replace

import numpy as np

from resight.audit.dedup.branches import choose_branches, read_local
from resight.audit.dedup.dct_signature import mirror_features
from resight.audit.dedup.grey_thumbnails import outline_of
from resight.collection import Collection
from resight.search.verification import Settings, verify
from resight.types import Box, Match


def match_stored(one: Collection, a: str, two: Collection, b: str) -> Match | None:
    """If the images do not match, try one of them mirrored."""
    first, second = choose_branches(one.recipe), choose_branches(two.recipe)
    if first.local is None or second.local is None:
        return None
    if one.metadata.spaces[first.local] != two.metadata.spaces[second.local]:
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
    """The match in coordinates of the unmirrored first image."""
    across = outline[0] + outline[2]
    mirror = np.array([[-1.0, 0.0, across], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    points = match.points.copy()
    points[:, 0] = across - points[:, 0]
    return replace(match, transform=match.transform @ mirror, points=points)
