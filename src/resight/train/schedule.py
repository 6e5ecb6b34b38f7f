"""The learning rate of every step: a linear warm-up, then half a cosine down to zero.

    step < warm:   (step + 1) / warm              (Goyal et al., Accurate, Large Minibatch SGD, 2017)
    afterwards:    (1 + cos(π · (step − warm) / (total − warm))) / 2

It depends on the number of the step alone, so that there is nothing to store for a run that is resumed.
"""

import math


def find_rate(step: int, total: int, warm: int) -> float:
    """The share of the full rate at a step, counted from 0."""
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm) / max(total - warm, 1))) / 2
