"""Points → batches of bounded size."""

from collections.abc import Iterator
from itertools import islice

from resight.index.points.place import Point

UPLOAD_FLOATS = 1 << 20  # of points that go at a time


def batch_points(points: Iterator[Point]) -> Iterator[list[Point]]:
    """As many at a time as make a request of a few megabytes."""
    while first := next(points, None):
        floats = max(sum(rows.size for rows in first.vectors.values()), 1)
        yield [first, *islice(points, max(UPLOAD_FLOATS // floats - 1, 0))]
