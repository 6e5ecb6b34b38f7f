"""A collection made ready for a look at its duplicates. In: the collection. Out: its images, exact copies set aside."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resight.audit.copies import collapse, join
from resight.audit.keep import rank
from resight.audit.side import Side, outline_of
from resight.audit.thumbnails import Count, make_thumbnails
from resight.collection import Collection
from resight.store import ImageRecord


@dataclass(frozen=True)
class Prepared:
    """A collection whose exact copies stand aside."""

    records: Mapping[str, ImageRecord]
    copies: Mapping[str, tuple[str, ...]]  # of those that are kept
    side: Side
    digests: Mapping[str, int]  # hash of a file or of its pixels → row
    blank: int

    @property
    def order(self) -> list[int]:
        """Rows, the one that is rather kept first."""
        return sorted(range(len(self.side)), key=lambda row: rank(self.records[self.side.ids[row]]))


def prepare(collection: Collection, file: Path, progress: Count | None) -> Prepared:
    """Exact copies aside, first of files and then of pixels; thumbnails of the rest, in `file`."""
    view = collection.view()  # what is written meanwhile does not take part
    records = list(view.records())
    files = collapse(records, lambda record: record.sha256)
    thumbnails = make_thumbnails(files.kept, file, progress)
    digests = dict(zip(thumbnails.ids, thumbnails.digests, strict=True))
    pixels = collapse(files.kept, lambda record: digests[record.id])
    kept = {record.id for record in pixels.kept}
    chosen = thumbnails.choose([row for row, name in enumerate(thumbnails.ids) if name in kept])
    side = Side(view, chosen.ids, tuple(map(outline_of, pixels.kept)), chosen)
    by_digest = {
        key: row
        for row, record in enumerate(pixels.kept)
        if record.ref.box is None
        for key in (record.sha256, digests[record.id])
        if key
    }
    copies = join(files.copies, pixels.copies)
    return Prepared({record.id: record for record in records}, copies, side, by_digest, int(thumbnails.flat.sum()))
