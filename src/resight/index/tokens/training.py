"""Which images train product quantisation: a sample of those whose id matches a pattern."""

from fnmatch import fnmatchcase

import numpy as np

from resight.errors import RecipeError
from resight.index.tokens.gather import Contents


def choose_training(contents: Contents, pattern: str, most: int, seed: int) -> tuple[int, ...]:
    """Rows of at most so many images that match and have tokens, in their order."""
    matched = [row for row, name in enumerate(contents.ids) if fnmatchcase(name, pattern)]
    usable = np.array([row for row in matched if contents.offsets[row] < contents.offsets[row + 1]], np.int64)
    if len(usable) == 0:
        raise RecipeError(
            "there is no image to train product quantisation with",
            expected=f"ids that match train_on = {pattern!r}, of images with tokens",
            actual=f"{len(matched):,} of {len(contents.ids):,} match"
            + (", none of them with tokens" if matched else f"; ids are like {', '.join(map(repr, contents.ids[:3]))}"),
            fix="correct the pattern (* stands for any text, ? for any letter), or leave it out",
        )
    chosen = np.random.default_rng(seed).permutation(len(usable))[:most]
    return tuple(np.sort(usable[chosen]).tolist())
