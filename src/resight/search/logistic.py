"""Penalised logistic regression by Newton's method: the one fit behind calibrations and corrections by votes.

    minimise  Σ_i log(1 + e^{x_i·w}) − t_i x_i·w  +  ½ Σ_j penalty_j (w_j − centre_j)²

Targets t may lie anywhere in 0..1. The loss is convex, and the pull towards `centre` keeps it bounded where the data
could be separated, so the minimum is unique.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUNDS = 200
SMALLEST_STEP = 1e-10


def fit_logistic(inputs: Floats, targets: Floats, centre: Floats, penalty: Floats) -> Floats:
    """Weights [d] for inputs [n, d] and targets [n]; `centre` and `penalty` are [d]."""
    weights = centre.copy()

    def loss(at: Floats) -> float:
        odds = inputs @ at
        return float((np.logaddexp(0, odds) - targets * odds).sum() + (penalty * (at - centre) ** 2).sum() / 2)

    for _ in range(ROUNDS):
        predicted = sigmoid(inputs @ weights)
        gradient = inputs.T @ (predicted - targets) + penalty * (weights - centre)
        curvature = (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        size, before = 1.0, loss(weights)
        while loss(weights - size * step) > before and size > 1e-6:
            size /= 2
        weights = weights - size * step
        if np.abs(size * step).max() < SMALLEST_STEP:
            break
    return weights


def sigmoid(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))
