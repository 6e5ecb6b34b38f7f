"""A stored image as a query: what else shows the same thing as this one?

In: the id of an image. Out: a Query, from the rows that are stored where they are all that a query has, and else from
the file, encoded anew. Where the file is gone or has changed, an error says so.
"""

from resight.collection.encoding import Encoding
from resight.data import images
from resight.errors import CollectionError
from resight.store import ImageRecord, Reader
from resight.types import Query


def make_stored_query(reader: Reader, name: str, encoding: Encoding) -> Query:
    (record,) = reader.metadata([name])
    if encoding.stores_queries:
        return _take_stored(record, reader)
    ref = record.ref
    picture = images.read(ref, max_side=None if ref.box else encoding.query_side)
    if picture.sha256 != record.sha256:
        raise CollectionError(
            f"the file of {name!r} has changed since it was indexed",
            expected="the picture that the collection knows",
            actual=str(record.path),
            fix="add it again, and then search for it",
        )
    return encoding.encode_query(picture)


def _take_stored(record: ImageRecord, reader: Reader) -> Query:
    width, height = record.size
    rows = tuple(next(reader.descriptors(branch, [record.id])) for branch in range(len(reader.layout)))
    outline = record.ref.box or (0.0, 0.0, float(width), float(height))
    return Query(record.id, record.size, outline, rows, record.attributes)
