"""Every patch of a part of an image, encoded when it is asked for: what a collection does not keep.

A closer look at an answer shows where the thing is, and why it was found. The patches are those of the first branch of
tokens, or else of the first that pools the patches of regions.
"""

from collections.abc import Sequence
from dataclasses import replace

from resight.collection.adding import encode_region
from resight.data import images
from resight.encode.encoder import Encoder
from resight.errors import ImageError
from resight.store import ImageRecord
from resight.types import Box, Branch, Choice, Descriptors

TOKENS = ("tokens", "aggregated")


def find_patch_branch(branches: Sequence[Branch]) -> int | None:
    tokens = (number for number, branch in enumerate(branches) if branch.descriptor.name in TOKENS)
    pools = (number for number, branch in enumerate(branches) if branch.regions and branch.descriptor.name == "pooled")
    return next(tokens, next(pools, None))


def keep_all_patches(branch: Branch) -> Branch:
    """The branch with every patch of the whole image as a token of its own; what was learnt for pooled rows is not."""
    transforms = branch.transforms if branch.descriptor.name in TOKENS else ()
    return replace(branch, descriptor=Choice("tokens"), transforms=transforms, regions=None, query_regions=None)


def look_at(record: ImageRecord, region: Box | None, encoder: Encoder) -> Descriptors | None:
    """The patches of a region, or of the whole image; None where its file is gone or has changed."""
    box = region or record.ref.box
    try:
        picture = images.read(record.ref, max_side=None if box else encoder.max_side)
    except ImageError:
        return None
    return encode_region(picture, box, encoder, "database")[0] if picture.sha256 == record.sha256 else None
