"""Where images were taken: stored attributes → Positions, and frames of a video → an estimate or an image for each."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from resight.geodesy import find_number, find_position
from resight.search import sequences, tracking
from resight.store import ImageRecord
from resight.types import Attribute, PositionEstimate, Positions, Ranking

if TYPE_CHECKING:
    from resight.collection import Collection, Image

DEPTH = 1000  # images that a frame is looked for among, where only their order is known


def read_positions(records: Iterable[ImageRecord]) -> Positions:
    return gather_positions((record.id, record.attributes) for record in records)


def gather_positions(images: Iterable[tuple[str, Mapping[str, Attribute]]]) -> Positions:
    """Of the images whose lat and lon are numbers that lie on the Earth; heading where a number is known."""
    ids: list[str] = []
    places: list[list[float]] = []
    for name, attributes in images:
        if (position := find_position(attributes)) is not None:
            heading = find_number(attributes, "heading")
            ids.append(name)
            places.append([*position, np.nan if heading is None else heading])
    lats, lons, headings = np.array(places, np.float64).reshape(-1, 3).T
    return Positions(tuple(ids), lats, lons, headings)


def follow_positions(
    collection: "Collection", frames: Iterable["Image"], config: tracking.Config | None = None
) -> Iterator[PositionEstimate | None]:
    """Where each frame was taken, given those before it; None where nothing is known of its candidates."""
    rankings = (collection.ask(frame, 1).ranking for frame in frames)
    return tracking.track(rankings, collection.positions(), config)


def follow_order(
    collection: "Collection", frames: Iterable["Image"], config: sequences.Config | None = None
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
