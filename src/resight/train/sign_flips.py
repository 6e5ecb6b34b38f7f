"""How probable a gain is by chance alone: one difference a thing in, the share of sign patterns that gain as much out.

Fisher's randomisation test, one-sided. Where nothing is gained, a difference is as often below 0 as above; with few
things all signs can fall alike by chance, which a bootstrap does not see. With n things no share is below 1 / 2^n.
"""

import numpy as np
from numpy.typing import NDArray

ALL = 13  # things: up to so many, every pattern is tried
DRAWN = 10_000  # patterns, with more things
ROUNDING = 1e-12  # the same values summed in another order differ by less


def find_chance(differences: NDArray[np.float64], generator: np.random.Generator) -> float:
    """`differences` [n], one a thing. 1 where there are none."""
    count = len(differences)
    if count <= ALL:
        signs = 2.0 * (np.arange(2**count)[:, None] >> np.arange(count) & 1) - 1
    else:
        signs = 2.0 * generator.integers(2, size=(DRAWN, count), dtype=np.int8) - 1
    as_much = int((signs @ differences >= differences.sum() - ROUNDING * np.abs(differences).sum()).sum())
    return as_much / len(signs) if count <= ALL else (1 + as_much) / (1 + DRAWN)
