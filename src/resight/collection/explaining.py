"""Why an image was found by its tokens or its regions: which part matched which, and maps of support over both images.

The pairs are those of the stored tokens, which the answer was scored by; regions have none. The maps are taken from all
patches of both images, the answer's encoded again for the hit that is shown: a collection keeps a few dozen tokens an
image, and a map of so few is coarse. Where images are cut, it is the region that won which is looked at, larger than
the whole would be. Where a file is gone or has changed since, stored tokens have to do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from resight.search.token_support import heat_image, heat_query, match_tokens, split
from resight.store import ImageRecord, Reader
from resight.types import Box, Descriptors, Evidence, Query


@dataclass(frozen=True)
class TokenExplainer:
    """Explains the answers to one query."""

    query: Query
    branch: int  # of the patches
    store: Reader
    look: Callable[[str, Box | None], Descriptors | None]  # the patches of a part of an image

    def explain(self, evidence: Evidence) -> Evidence:
        """The evidence with pairs and maps; as it was where one of the images has no tokens."""
        (record,) = self.store.metadata([evidence.image_id])
        own, stored = self._read_tokens(record)
        tokens = match_tokens(own, stored) if own is not None and stored is not None else None
        query, image = self.query.patches or own, self.look(record.id, evidence.region) or stored
        closer = match_tokens(query, image) if query is not None and image is not None else None
        if closer is None or (own is not None and tokens is None):
            return evidence
        heat, query_heat = heat_image(closer, record.size), heat_query(closer, self.query.size)
        return replace(evidence, tokens=tokens, heat=heat, query_heat=query_heat)

    def _read_tokens(self, record: ImageRecord) -> tuple[Descriptors | None, Descriptors | None]:
        """The tokens of the query and the stored ones of an image; none where a branch has one vector a region."""
        own = self.query.descriptors[self.branch]
        if own.boxes is None:
            return None, None
        (stored,) = split(self.store.descriptors(self.branch, [record.id]))
        return own, stored
