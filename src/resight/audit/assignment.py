"""One-to-one: each left at most one right and each right at most one left, so that the weights add up to the most.

The Hungarian method on a sparse graph, by augmenting paths. Lefts come one after the other; each looks for the chain
"take a right, and whoever had it takes another or is left alone" that gains most. To be alone weighs 0, so that a pair
of weight 0 or less is never made. In: weights of possible pairs. Out: the pairs chosen, the best of all choices.
"""

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

TINY = 1e-12  # what rounding may gain, which would be looked for without end
Left = TypeVar("Left", bound=Hashable)
Right = TypeVar("Right", bound=Hashable)


def assign(weights: Mapping[tuple[Left, Right], float]) -> dict[Left, Right]:
    """Ties are broken by the order in which pairs come."""
    edges: dict[Left, dict[Right, float]] = {}
    for (left, right), weight in weights.items():
        edges.setdefault(left, {})[right] = weight
    matching = _Matching(edges)
    for left in edges:
        matching.place(left)
    return matching.taken


class _Matching(Generic[Left, Right]):
    def __init__(self, edges: Mapping[Left, Mapping[Right, float]]) -> None:
        self.taken: dict[Left, Right] = {}
        self._edges = edges
        self._owner: dict[Right, Left] = {}

    def place(self, start: Left) -> None:
        gains = {start: 0.0}  # of leaving this left without a right, everything before it on its chain being changed
        came: dict[Left, tuple[Left, Right]] = {}  # who takes the right of this left
        best: tuple[float, Left, Right | None] = (0.0, start, None)
        queue = deque([start])
        while queue:
            left = queue.popleft()
            for right, weight in self._edges[left].items():
                holder, gain = self._owner.get(right), gains[left] + weight
                if holder is None:
                    best = max(best, (gain, left, right), key=lambda end: end[0])
                elif holder != left and gain - self._edges[holder][right] > gains.get(holder, -float("inf")) + TINY:
                    gains[holder], came[holder] = gain - self._edges[holder][right], (left, right)
                    best = max(best, (gains[holder], holder, None), key=lambda end: end[0])
                    queue.append(holder)
        self._change(best[1], best[2], start, came)

    def _change(self, left: Left, right: Right | None, start: Left, came: Mapping[Left, tuple[Left, Right]]) -> None:
        """From the end of the chain back to its start."""
        self._give(left, right)
        while left != start:
            left, right = came[left]
            self._give(left, right)

    def _give(self, left: Left, right: Right | None) -> None:
        if right is None:
            self.taken.pop(left, None)
        else:
            self.taken[left] = right
            self._owner[right] = left
