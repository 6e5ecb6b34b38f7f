"""Frames of a video, followed through a collection: where each was taken, or which image each shows.

In: a collection and frames in their order. Out: one PositionEstimate per frame (search/tracking.py), or one Ranking per
frame (search/sequences.py), each from the frames so far.
"""

from collections.abc import Iterable, Iterator

from resight.collection import Collection
from resight.data.image_inputs import ImageInput
from resight.geodesy import PositionEstimate, find_number
from resight.search import sequences, tracking
from resight.store import ImageRecord
from resight.types import Ranking

DEPTH = 1000  # images that a frame is looked for among, if only their order is known


def follow_positions(
    collection: Collection, frames: Iterable[ImageInput], config: tracking.Config | None = None
) -> Iterator[PositionEstimate | None]:
    """Where each frame was taken, given those before it; None where nothing is known of its candidates."""
    rankings = (collection.ask(frame, 1).ranking for frame in frames)
    return tracking.track(rankings, collection.view().positions(), config)


def follow_order(
    collection: Collection, frames: Iterable[ImageInput], config: sequences.Config | None = None
) -> Iterator[Ranking]:
    """Which image each frame shows, given those before it and the order in which the images were taken.

    The order is that of the attributes `sequence` and `frame`, and of ids where these are not known.
    """
    order = [record.id for record in sorted(collection.records(), key=_sort_key)]
    depth = min(len(order), DEPTH) or 1
    return sequences.match_sequences((collection.ask(frame, depth).ranking for frame in frames), order, config)


def _sort_key(record: ImageRecord) -> tuple[str, float, str]:
    attributes = record.attributes
    return str(attributes.get("sequence", "")), find_number(attributes, "frame") or 0.0, record.id
