"""Embeddings: what `ImageEncoder.encode` returns, and how two of them compare.

similarity   ⟨a, b⟩ of the pooled vectors: the cosine
maxsim       (1/Ka) Σ_i max_j ⟨a_i, b_j⟩ of the tokens, by the kernels that searches use
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resight import kernels
from resight.errors import InputError, SpaceMismatch
from resight.types import Descriptors, FloatArray, IntArray, Skipped
from resight.vectors import l2_normalise


@dataclass(frozen=True)
class Rows:
    """Several vectors per image, such as tokens; `rows[i]` are those of image i.

    Attributes:
        vectors: [N, D] of all images, one after the other.
        offsets: [n + 1]: image i has the rows offsets[i]:offsets[i + 1].
        boxes: [N, 4] where each lies in its image; None: not known.

    Examples:
        >>> import resight
        >>> tokens = resight.load_encoder("tokens").encode(["query.jpg", "photos/castle.png"]).tokens
        >>> len(tokens), tokens[0].shape, tokens.boxes.shape
        (2, (32, 208), (64, 4))
    """

    vectors: FloatArray
    offsets: IntArray
    boxes: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, image: int) -> FloatArray:
        count = len(self)
        if not -count <= image < count:
            raise IndexError(f"image {image} of {count}")
        image %= count
        return self.vectors[self.offsets[image] : self.offsets[image + 1]]

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[image] for image in range(len(self)))


@dataclass(frozen=True)
class Embeddings:
    """The vectors of images, and what they are of.

    Attributes:
        ids: One per image.
        sizes: [n, 2] width and height of the originals.
        pooled: [n, D] one vector of unit length per image; None if the encoder has none.
        tokens: The tokens of each image, for `maxsim`; None if the encoder has none.
        regions: The vectors of each image's regions, if the recipe splits images; `boxes` says where.
        encoder: The name of the encoder or recipe.
        spaces: The fingerprints of the encoding: only vectors of equal ones can be compared.
        skipped: Images that could not be read, with the reasons; they have no rows.

    Examples:
        >>> import resight
        >>> found = resight.load_encoder("tokens").encode("photos/castle.png")
        >>> found.ids, found.sizes.tolist(), found.pooled.shape
        (('castle.png',), [[480, 360]], (1, 208))
    """

    ids: tuple[str, ...]
    sizes: IntArray
    pooled: FloatArray | None
    tokens: Rows | None
    regions: Rows | None
    encoder: str
    spaces: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


def compare_pooled(a: Embeddings, b: Embeddings) -> FloatArray:
    """Cosines [len(a), len(b)]."""
    _check_same(a, b)
    if a.pooled is None or b.pooled is None:
        raise _refuse(a, "vector per image", "use maxsim, or another encoder")
    if not (len(a) and len(b)):  # their dimensions are not known
        return np.zeros((len(a), len(b)), np.float32)
    return np.asarray(a.pooled @ b.pooled.T, np.float32)


def compare_tokens(a: Embeddings, b: Embeddings) -> FloatArray:
    """Late interaction [len(a), len(b)]; 0 where one of the two images has no tokens."""
    _check_same(a, b)
    if a.tokens is None or b.tokens is None:
        raise _refuse(a, "tokens", "use similarity, or an encoder of tokens")
    scores = np.zeros((len(a), len(b)), np.float32)
    if not len(b.tokens.vectors):
        return scores
    packed = kernels.pack(b.tokens.vectors, b.tokens.offsets, kind="fp32")
    for row, tokens in enumerate(a.tokens):
        if len(tokens):
            found = packed.scores(tokens)
            scores[row] = np.where(np.isfinite(found), found, 0)
    return scores


def join_rows(parts: Sequence[Descriptors]) -> Rows:
    """The rows of one branch, one part per image."""
    boxes = [part.boxes for part in parts if part.boxes is not None]
    vectors = [np.asarray(part.vectors, np.float32) for part in parts]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Rows(
        np.concatenate(vectors) if vectors else np.zeros((0, 0), np.float32),
        offsets,
        np.concatenate(boxes) if boxes and len(boxes) == len(parts) else None,
    )


def pool(rows: Rows) -> FloatArray:
    """The mean row of each image, of unit length; zeros for an image without rows."""
    means = [one.mean(axis=0) if len(one) else np.zeros(one.shape[1], np.float32) for one in rows]
    return l2_normalise(np.stack(means)) if means else np.zeros((0, rows.vectors.shape[1]), np.float32)


def _check_same(a: Embeddings, b: Embeddings) -> None:
    if a.spaces != b.spaces:
        raise SpaceMismatch(
            "the vectors come from two encoders",
            expected=" | ".join(a.spaces),
            actual=" | ".join(b.spaces),
            fix="encode both with one encoder",
        )


def _refuse(found: Embeddings, missing: str, fix: str) -> InputError:
    return InputError(
        f"the encoder {found.encoder!r} gives no {missing}",
        expected=f"an encoder with a {missing}".replace("a tokens", "tokens"),
        actual=" | ".join(found.spaces),
        fix=fix,
    )
