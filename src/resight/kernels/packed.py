"""Tokens of many images, packed for search: scores, the best k, proven if wanted, and files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight import plugins
from resight.errors import InputError
from resight.kernels.admit import admit_query, admit_rows, admit_tokens
from resight.kernels.certificate import Certificate, certify_all, prove
from resight.kernels.filling import fill_from
from resight.kernels.fp32 import keep_as_given
from resight.kernels.kinds import Codes, find_kind
from resight.kernels.room import in_folder, in_memory
from resight.kernels.select import best_rows
from resight.types import FloatArray

Top = tuple[NDArray[np.int64], FloatArray, Certificate | None]
SHARED = ("centroids", "centre", "basis", "reach")  # once a pack, however many images


def pack(
    tokens: ArrayLike,
    offsets: ArrayLike,
    kind: str = "int8",
    keep: Literal["fp32", "fp16", "none"] = "fp32",
    scratch: str | Path | None = None,
    **settings: Any,
) -> "Packed":
    """tokens [n, d] of images offsets[i]:offsets[i + 1], as fp32, fp16, int8, pq or rq.

    `keep` says what exact answers are taken from: the tokens as given (a reference, not a copy), a copy in half
    precision, or nothing. `scratch` is a folder for the large arrays, where memory is not to hold them. `settings` are
    those of the kind's `Config`.
    """
    module = find_kind(kind)
    if keep not in ("fp32", "fp16", "none"):
        raise InputError("keep cannot be that", expected="fp32, fp16 or none", actual=repr(keep), fix="choose one")
    config = plugins.configure(module.Config, settings, f"kernels {kind!r}")
    rows, bounds = admit_tokens(tokens, offsets)
    allocate = in_memory if scratch is None else in_folder(Path(scratch))
    if kind == "fp32":
        return Packed(keep_as_given(rows, bounds), None)
    reference: Codes | None = None
    if keep != "none" and kind != keep:
        kept = find_kind(keep)
        given = keep == "fp32"
        reference = keep_as_given(rows, bounds) if given else fill_from(kept, rows, bounds, kept.Config(), allocate)
        rows = reference.arrays()["tokens"]  # error bounds are about what the exact answer is taken from
    return Packed(fill_from(module, rows, bounds, config, allocate), reference)


@dataclass(frozen=True)
class Packed:
    codes: Codes
    reference: Codes | None  # fp32 or fp16 tokens, where the codes are something else

    @property
    def kind(self) -> str:
        return self.codes.kind

    @property
    def bytes_an_image(self) -> float:
        """Of the codes and their bounds; without the kept tokens and what all images share."""
        own = sum(array.nbytes for name, array in self.codes.arrays().items() if name not in SHARED)
        return (own + self.codes.offsets.nbytes) / max(len(self), 1)

    def __len__(self) -> int:
        return len(self.codes.offsets) - 1

    def scores(self, query: ArrayLike, rows: ArrayLike | None = None, threads: int | None = None) -> FloatArray:
        """[N] float32, or one a row: the mean over query tokens [Kq, d] of the best dot product.

        An image without tokens scores minus infinity. threads: at most so many (None: all cores); small work takes one.
        """
        return self.codes.scores(admit_query(query, self.codes.d), admit_rows(rows, len(self)), threads)

    def errors(self, query: ArrayLike) -> FloatArray:
        """[N]: how far `scores` can be from those of the kept tokens."""
        return self.codes.radius(admit_query(query, self.codes.d))

    def exact_scores(self, query: ArrayLike, rows: ArrayLike | None = None, threads: int | None = None) -> FloatArray:
        """The same as `scores`, by the kept tokens."""
        wanted = admit_rows(rows, len(self))
        return self.exact_codes().scores(admit_query(query, self.codes.d), wanted, threads)

    def top(self, query: ArrayLike, k: int, exact: bool = True, threads: int | None = None) -> Top:
        """Rows and scores of the best k, equal scores by row, fewer when fewer images have tokens.

        exact: the answer that the kept tokens give, with its certificate. Otherwise that of the codes, without one.
        """
        tokens = admit_query(query, self.codes.d)
        if k < 0:
            raise InputError("k cannot be negative", expected="0 or more", actual=str(k), fix="ask for at least one")
        if exact and self.exact_codes() is not self.codes:
            return prove(self.codes, self.exact_codes(), tokens, k, threads)
        scores = self.codes.scores(tokens, None, threads)
        rows = best_rows(scores, k)
        return rows, scores[rows], certify_all(scores, k, self.kind) if exact else None

    def save(self, folder: str | Path, scratch: str | Path | None = None) -> None:
        """Write to a folder that `kernels.open` maps again. Arrays in files of `scratch` are moved out of it."""
        from resight.kernels.files import save  # it restores packs, and so needs this module

        save(self, Path(folder), None if scratch is None else Path(scratch))

    @property
    def can_prove(self) -> bool:
        """Whether there are tokens that an exact answer can be taken from."""
        return self.reference is not None or self.kind in ("fp32", "fp16")

    def exact_codes(self) -> Codes:
        if self.reference is not None:
            return self.reference
        if self.kind in ("fp32", "fp16"):
            return self.codes
        raise InputError(
            "this pack has nothing to prove an exact answer with",
            expected="the tokens that it was made from",
            actual=f"a pack of kind {self.kind} made with keep='none'",
            fix="pack with keep='fp32' or keep='fp16', or ask with exact=False",
        )
