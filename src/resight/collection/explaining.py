"""Why an image was found by its tokens: which matched which, and maps of support over both images.

The pairs are those of the stored tokens, which the answer was scored by. The maps are taken from all patches of both
images, encoded again for the hit that is shown: a collection keeps a few dozen tokens an image, and a map of so few is
coarse. Where a file is gone or has changed since, the tokens themselves have to do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from resight.collection.adding import encode_region
from resight.data import images
from resight.encode.encoder import Encoder
from resight.errors import ImageError
from resight.search.token_support import heat_image, heat_query, match_tokens, split
from resight.store import ImageRecord, Reader
from resight.types import Branch, Choice, Descriptors, Evidence, Picture, Query


@dataclass(frozen=True)
class TokenExplainer:
    """Explains the answers to one query. Its patches are encoded once, and not before an answer is explained."""

    query: Query
    branch: int
    store: Reader
    encoder: Callable[[], Encoder]  # gives every patch as a token of its own
    read_query: Callable[[int | None], Picture]

    def explain(self, evidence: Evidence) -> Evidence:
        """The evidence with pairs and maps; as it was where one of the images has no tokens."""
        (record,) = self.store.metadata([evidence.image_id])
        (stored,) = split(self.store.descriptors(self.branch, [record.id]))
        own = self.query.descriptors[self.branch]
        tokens = match_tokens(own, stored)
        closer = match_tokens(self._query_patches or own, self._look_at(record) or stored)
        if tokens is None or closer is None:
            return evidence
        heat, query_heat = heat_image(closer, record.size), heat_query(closer, self.query.size)
        return replace(evidence, tokens=tokens, heat=heat, query_heat=query_heat)

    @cached_property
    def _query_patches(self) -> Descriptors | None:
        width, height = self.query.size
        box = None if self.query.outline == (0, 0, width, height) else self.query.outline
        encoder = self.encoder()
        try:
            picture = self.read_query(None if box else encoder.max_side)
        except ImageError:
            return None
        return encode_region(picture, box, encoder, "query")[0]

    def _look_at(self, record: ImageRecord) -> Descriptors | None:
        box = record.ref.box
        encoder = self.encoder()
        try:
            picture = images.read(record.ref, max_side=None if box else encoder.max_side)
        except ImageError:
            return None
        return encode_region(picture, box, encoder, "database")[0] if picture.sha256 == record.sha256 else None


def keep_all_patches(branch: Branch) -> Branch:
    """The branch with every patch of the whole image as a token of its own."""
    return replace(branch, descriptor=Choice("tokens"), regions=None, query_regions=None)
