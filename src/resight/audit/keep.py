"""Which image of a group to keep: the one with most pixels, then the largest file (the least compressed), then the
oldest, then the first by id."""

from resight.store import ImageRecord


def rank(record: ImageRecord) -> tuple[float, float, float, str]:
    """A smaller one is kept rather."""
    width, height = record.size
    if record.ref.box is not None:
        x0, y0, x1, y1 = record.ref.box
        width, height = round(x1 - x0), round(y1 - y0)
    return -width * height, -record.bytes, record.modified_ns, record.id
