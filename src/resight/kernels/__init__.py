"""Fast exact late interaction: pack the tokens of images, score them, prove the best k.

    packed = kernels.pack(tokens, offsets, kind="int8")    # fp32 | fp16 | int8 | pq | rq
    packed.scores(query)                                   # [N]: mean over query tokens of the best dot product
    packed.top(query, 10)                                  # rows, scores and a certificate: the fp32 answer, proven

The inner loops are C with AVX2, or numpy if the C extension is missing; `implementation()` returns "avx2" or "numpy".
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resight.kernels.dispatch import implementation
    from resight.kernels.exact_topk import Certificate
    from resight.kernels.packed import Cascade, Packed, cascade, exactness_rate, pack
    from resight.kernels.packed import open_pack as open
    from resight.kernels.writer import PackWriter

__all__ = [
    "Cascade",
    "Certificate",
    "PackWriter",
    "Packed",
    "cascade",
    "exactness_rate",
    "implementation",
    "open",
    "pack",
]

_HOMES = {  # name → module and attribute there: each is imported when it is first used
    "Cascade": ("packed", "Cascade"),
    "Certificate": ("exact_topk", "Certificate"),
    "PackWriter": ("writer", "PackWriter"),
    "Packed": ("packed", "Packed"),
    "cascade": ("packed", "cascade"),
    "exactness_rate": ("packed", "exactness_rate"),
    "implementation": ("dispatch", "implementation"),
    "open": ("packed", "open_pack"),
    "pack": ("packed", "pack"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'resight.kernels' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(f"resight.kernels.{module}"), attribute)
