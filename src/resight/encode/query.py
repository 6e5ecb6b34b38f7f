"""Query encoding: a picture and a box in, a Query out.

`Encoders` builds what the branches of one recipe need, each on first use and once, whichever thread comes first: an
encoder of rows to store, one of queries and one of patches. Afterwards many threads may use them at the same time.

A query also carries every patch of its box, for branches whose answers are explained patch by patch: the first branch
of tokens, or else the first that pools the patches of regions. The patches come from the same pass of the network.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resight.boxes import clip
from resight.encode.backbones import Backbone
from resight.encode.encoder import Encoder, encode_box, encode_boxes, name_input
from resight.errors import BoxError, SpaceMismatch
from resight.types import Box, Branch, Choice, Descriptors, Features, ImageRef, Picture, Query
from resight.vectors import l2_normalise

if TYPE_CHECKING:
    from resight.encode.feature_cache import FeatureCache

TOKEN_DESCRIPTORS = ("tokens", "aggregated")
LOCAL = "local"  # the descriptor that stores key points
GIVEN = "precomputed"  # the encoder whose rows a program gives
Made = TypeVar("Made")


class Encoders:
    def __init__(
        self,
        branches: Sequence[Branch],
        spaces: Sequence[str],
        cache: "FeatureCache | None",
        owner: str,
        networks: Mapping[str, Backbone] | None = None,
    ) -> None:
        """`spaces` are those that the rows must have; `owner` names in an error what was encoded with them.

        `networks` are the loaded networks of another encoder, used instead of loading them again.
        """
        self.branches = tuple(branches)
        self.patch_branch = find_patch_branch(branches)
        self._spaces = tuple(spaces)
        self._cache = cache
        self._owner = owner
        self._networks = networks
        self._lock = threading.RLock()

    @property
    def encoder(self) -> Encoder:
        """Encodes rows to store."""
        return self._once(lambda: self._encoder)

    @property
    def query_side(self) -> int | None:
        """The side to which a decoder may reduce the picture of a query that has no box."""
        return self._once(lambda: self._query_encoder).query_side

    @property
    def patch_side(self) -> int | None:
        """The side to which a decoder may reduce a picture whose patches are wanted without a box."""
        encoder = self._once(lambda: self._patch_encoder)
        return None if encoder is None else encoder.max_side

    @property
    def stored_rows_are_queries(self) -> bool:
        """Whether the stored rows of an image equal those of a query with the same image.

        They do not where a query has other regions, another description, or needs its patches as well.
        """
        return self._once(lambda: self._stored_rows_are_queries)

    def encode_query(self, picture: Picture, box: Box | None = None) -> Query:
        """The query for `box` (pixels of the original), for the picture's own box, or for the whole picture."""
        return Encoders.encode_queries(self, [picture], box)[0]

    def encode_queries(self, pictures: Sequence[Picture], box: Box | None = None) -> list[Query]:
        """`encode_query` for several pictures, which go through the networks together."""
        encoder = self._once(lambda: self._query_encoder)
        boxes = [box or picture.ref.box for picture in pictures]
        outlines = [_outline(picture, own) for picture, own in zip(pictures, boxes, strict=True)]
        count = len(self.branches)
        return [
            Query(
                picture.ref.id,
                picture.size,
                outline,
                rows[:count],
                picture.ref.attributes,
                next(iter(rows[count:]), None),
            )
            for picture, outline, rows in zip(
                pictures, outlines, encode_boxes(pictures, boxes, encoder, "query"), strict=True
            )
        ]

    def derive_query_rows(self, stored: Sequence[Descriptors]) -> tuple[Descriptors, ...] | None:
        """The rows of a query for a stored image, from its stored rows alone: no file, no network.

        A branch that describes a query like a database image gives its stored rows. Any other branch describes the key
        points that a branch `local` stores of the same encoder, which may be fewer than the encoder detects. None where
        a branch has neither, or has regions.
        """
        sources = self._once(lambda: self._row_sources)
        if sources is None:
            return None
        return tuple(
            rows if source == branch else self._describe_key_points(branch, stored[source])
            for branch, (rows, source) in enumerate(zip(stored, sources, strict=True))
        )

    def encode_patches(self, picture: Picture, box: Box | None) -> Descriptors | None:
        """Every patch of a database picture, or of the part inside a box; None where no branch has patches."""
        encoder = self._once(lambda: self._patch_encoder)
        return None if encoder is None else encode_box(picture, box, encoder, "database")[0]

    def _once(self, make: Callable[[], Made]) -> Made:
        with self._lock:
            return make()

    @cached_property
    def _encoder(self) -> Encoder:
        encoder = Encoder(self.branches, self._cache, self._networks)
        if encoder.spaces != self._spaces:
            raise SpaceMismatch(
                f"{self._owner} was encoded in a way that is not available here",
                expected=" | ".join(self._spaces),
                actual=" | ".join(encoder.spaces),
                fix="restore the code book or the weights that it was made with, or index the images again",
            )
        return encoder

    @cached_property
    def _query_encoder(self) -> Encoder:
        return self._build_with_patches([*self.branches, *self._list_patch_branches()])

    @cached_property
    def _patch_encoder(self) -> Encoder | None:
        patches = self._list_patch_branches()
        return self._build_with_patches(patches) if patches else None

    def _build_with_patches(self, branches: Sequence[Branch]) -> Encoder:
        """Patches go through the transforms of their branch, which were learnt on its tokens: they work row by row."""
        return Encoder(branches, self._cache, self._encoder.networks, check_transforms=False)

    @cached_property
    def _stored_rows_are_queries(self) -> bool:
        if self.patch_branch is not None or any(branch.regions or branch.query_regions for branch in self.branches):
            return False
        encoder = self._encoder
        return encoder.max_side == encoder.query_side and all(compare_roles(encoder))

    @cached_property
    def _row_sources(self) -> tuple[int, ...] | None:
        """For each branch the branch whose stored rows give its query rows."""
        if any(branch.regions or branch.query_regions for branch in self.branches):
            return None
        local = {name_input(branch): at for at, branch in enumerate(self.branches) if branch.descriptor.name == LOCAL}
        sources: list[int] = []
        for at, (branch, alike) in enumerate(zip(self.branches, compare_roles(self._encoder), strict=True)):
            source = at if alike else local.get(name_input(branch))
            if source is None:
                return None
            sources.append(source)
        return tuple(sources)

    def _describe_key_points(self, branch: int, rows: Descriptors) -> Descriptors:
        assert rows.points is not None
        vectors = l2_normalise(rows.vectors.astype(np.float32))
        features = Features(rows.ids, vectors[None], np.zeros((1, 2), np.int32), points=rows.points[None])
        return self._encoder.describe(branch, features, "query")

    def _list_patch_branches(self) -> list[Branch]:
        """One, or none."""
        return [] if self.patch_branch is None else [keep_all_patches(self.branches[self.patch_branch])]


def _outline(picture: Picture, box: Box | None) -> Box:
    if box is None:
        return 0.0, 0.0, float(picture.size[0]), float(picture.size[1])
    if len(box) != 4:
        raise BoxError("not a box", expected="x0, y0, x1, y1", actual=f"{len(box)} numbers", fix="give four")
    return clip(box, picture.size, picture.ref.id)


def find_patch_branch(branches: Sequence[Branch]) -> int | None:
    """The number of the branch whose patches explain an answer."""
    encoded = [(number, branch) for number, branch in enumerate(branches) if branch.encoder.name != GIVEN]
    tokens = (number for number, branch in encoded if branch.descriptor.name in TOKEN_DESCRIPTORS)
    pools = (number for number, branch in enumerate(branches) if branch.regions and branch.descriptor.name == "pooled")
    return next(tokens, next(pools, None))


def keep_all_patches(branch: Branch) -> Branch:
    """The branch with every patch of the whole image as a token; transforms learnt for pooled rows are left out."""
    transforms = branch.transforms if branch.descriptor.name in TOKEN_DESCRIPTORS else ()
    return replace(branch, descriptor=Choice("tokens"), transforms=transforms, regions=None, query_regions=None)


def compare_roles(encoder: Encoder) -> list[bool]:
    """Whether each branch describes a picture of noise in the same way as a database image and as a query."""
    pixels = np.random.default_rng(0).integers(0, 256, (128, 128, 3), np.uint8)
    picture = Picture(ImageRef("noise", Path("noise")), pixels, (128, 128))
    (stored,), (asked,) = encoder.encode([picture], "database"), encoder.encode([picture], "query")
    return [
        np.array_equal(one.vectors, other.vectors) and _are_equal(one.words, other.words)
        for one, other in zip(stored, asked, strict=True)
    ]


def _are_equal(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
