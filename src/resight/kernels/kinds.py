"""What a kind of pack can do.

Each kind is one module with `Config`, `begin(plan, config)`, which gives a Filler (filling.py), and `restore(arrays,
offsets)`.
"""

import importlib
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.types import FloatArray

KINDS = ("fp32", "fp16", "int8", "pq", "rq")


class Codes(Protocol):
    """Tokens of N images in some form; image i is offsets[i]:offsets[i + 1] of them."""

    kind: ClassVar[str]

    @property
    def d(self) -> int: ...

    @property
    def offsets(self) -> NDArray[np.int64]: ...

    def scores(self, query: FloatArray, rows: NDArray[np.int64] | None, threads: int | None) -> FloatArray:
        """[N], or one a row: the mean over query tokens [Kq, d] of the best dot product."""
        ...

    def radius(self, query: FloatArray) -> FloatArray:
        """[N]: how far these scores can be from those of the tokens that the codes were made from."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has to be kept to restore the codes, besides the offsets."""
        ...


def find_kind(kind: str) -> ModuleType:
    if kind not in KINDS:
        raise InputError(
            f"there is no kind of pack called {kind!r}",
            expected=f"one of {', '.join(KINDS)}",
            actual=repr(kind),
            fix="check the spelling",
        )
    return importlib.import_module(f"resight.kernels.{kind}")
