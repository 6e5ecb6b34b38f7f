"""Exact late interaction at the machine's own speed: tokens of images → packs → scores, the best k, and their proof.

    packed = kernels.pack(tokens, offsets, kind="int8")    # fp32 | fp16 | int8 | pq | rq
    packed.scores(query)                                   # [N]: mean over query tokens of the best dot product
    packed.top(query, 10)                                  # rows, scores and a certificate: the fp32 answer, proven

The inner loops are C with AVX2 (`implementation()` says "avx2") or numpy where that is not to be had ("numpy").
"""

from resight.kernels.dispatch import implementation
from resight.kernels.pack_files import open_pack as open
from resight.kernels.packed import Cascade, Certificate, Packed, cascade, identity_rate, pack
from resight.kernels.writer import PackWriter

__all__ = [
    "Cascade",
    "Certificate",
    "PackWriter",
    "Packed",
    "cascade",
    "identity_rate",
    "implementation",
    "open",
    "pack",
]
