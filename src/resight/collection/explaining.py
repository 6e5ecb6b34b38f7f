"""Why an image was found by its tokens or its regions: which part matched which, and maps of support over both images.

The pairs are those of the stored tokens, which the answer was scored by; regions have none. The maps are taken from all
patches of both images, encoded again for the hit that is shown: a collection keeps a few dozen tokens an image, and a
map of so few is coarse. Where images are cut, it is the region that won which is looked at, larger than the whole would
be. Where a file is gone or has changed since, stored tokens have to do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from resight.collection.adding import encode_region
from resight.data import images
from resight.encode.encoder import Encoder
from resight.errors import ImageError
from resight.search.token_support import find_token_branch, heat_image, heat_query, match_tokens, split
from resight.store import ImageRecord, Reader
from resight.types import Box, Branch, Choice, Descriptors, Evidence, Picture, Query


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
        own, stored = self._read_tokens(record)
        tokens = match_tokens(own, stored) if own is not None and stored is not None else None
        query, image = self._query_patches or own, self._look_at(record, evidence.region) or stored
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

    def _look_at(self, record: ImageRecord, region: Box | None) -> Descriptors | None:
        box = region or record.ref.box
        encoder = self.encoder()
        try:
            picture = images.read(record.ref, max_side=None if box else encoder.max_side)
        except ImageError:
            return None
        return encode_region(picture, box, encoder, "database")[0] if picture.sha256 == record.sha256 else None


def find_explained_branch(branches: Sequence[Branch], query: Query) -> int | None:
    """The branch whose patches can show why: one of tokens, or one that pools the patches of regions."""
    tokens = find_token_branch(query)
    pools = (number for number, branch in enumerate(branches) if branch.regions and branch.descriptor.name == "pooled")
    return next(pools, None) if tokens is None else tokens


def keep_all_patches(branch: Branch) -> Branch:
    """The branch with every patch of the whole image as a token of its own."""
    return replace(branch, descriptor=Choice("tokens"), regions=None, query_regions=None)
