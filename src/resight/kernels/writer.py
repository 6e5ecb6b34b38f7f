"""Write a pack chunk by chunk, in any order, byte for byte as `pack(...).save(folder)` writes it.

    writer = PackWriter(folder, offsets, d, "int8", "none", draw)
    for rows, tokens in …:
        writer.write(rows, tokens)         # numbers [n] and float32 [n, d]
    writer.finish()

With keep="none" the writer makes no float32 copy. It writes codes to disk as tokens arrive, so that it needs a few
hundred megabytes of memory however many tokens there are. `draw` returns the tokens of given numbers: the sample that a
kind learns from before it codes the first token.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from resight import plugins
from resight.kernels import fp16
from resight.kernels.allocation import in_folder, release_pages
from resight.kernels.codec import CHUNK, Draw, Filler, Plan, find_kind
from resight.kernels.pack_files import save
from resight.kernels.validation import reject_degenerate, validate_matrix
from resight.types import FloatArray

RELEASE_BYTES = 1 << 27  # of float32 tokens, after which the writer releases its pages


class PackWriter:
    def __init__(
        self,
        folder: Path,
        offsets: NDArray[np.int64],
        d: int,
        kind: str,
        keep: Literal["fp32", "fp16", "none"],
        draw: Draw,
        **settings: Any,
    ) -> None:
        self._folder = folder
        self._scratch = folder.with_name(folder.name + ".scratch")
        self._scratch.mkdir(parents=True)
        self._mapped: list[NDArray[Any]] = []
        self._waiting = 0
        module = find_kind(kind)
        config = plugins.configure(module.Config, settings, f"kernels {kind!r}")
        self._reference: Filler | None = None
        self._round: Callable[[FloatArray], FloatArray] = lambda tokens: tokens
        if keep not in ("none", kind) and kind != "fp32":
            kept = find_kind(keep)
            self._reference = kept.begin(Plan(offsets, d, draw, self._allocate), kept.Config())
            # Error bounds are relative to the tokens that exact answers use.
            self._round = round_to_fp16 if keep == "fp16" else self._round
        plan = Plan(offsets, d, lambda rows: self._round(draw(rows)), self._allocate)
        self._codes: Filler = module.begin(plan, config)

    def write(self, rows: NDArray[np.int64], tokens: NDArray[Any]) -> None:
        """Code tokens [n, d] with numbers `rows` [n]; each number may come only once."""
        reject_degenerate(validate_matrix(tokens, "tokens"), "tokens")
        for start in range(0, len(tokens), CHUNK):
            part = slice(start, start + CHUNK)
            values = np.asarray(tokens[part], np.float32)
            if self._reference is not None:
                self._reference.fill(rows[part], values)
            self._codes.fill(rows[part], self._round(values))
            self._waiting += values.nbytes
            if self._waiting >= RELEASE_BYTES:
                self._release()

    def finish(self) -> None:
        codes = self._codes.finish()
        reference = None if self._reference is None else self._reference.finish()
        self._release()
        save(codes, reference, self._folder, self._scratch)
        self._mapped.clear()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _allocate(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        array = in_folder(self._scratch)(name, shape, dtype)
        self._mapped.append(array)
        return array

    def _release(self) -> None:
        for array in self._mapped:
            release_pages(array)
        self._waiting = 0


def round_to_fp16(tokens: FloatArray) -> FloatArray:
    return fp16.to_fp16(tokens, slice(0, len(tokens))).astype(np.float32)
