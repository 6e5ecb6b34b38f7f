"""One-to-one matching: weights of pairs in, the matching of largest total weight out."""

from collections.abc import Mapping

import numpy as np


def match_one_to_one(weights: Mapping[tuple[str, str], float]) -> dict[str, str]:
    """The matching left → right of largest total weight, without pairs of weight 0 or less.

    Maximum-weight bipartite matching on a sparse graph: every left also has its own dummy right, for no match.
    """
    from scipy.sparse import coo_matrix  # only a one-to-one match needs scipy
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    useful = {pair: weight for pair, weight in weights.items() if weight > 0}
    if not useful:
        return {}
    lefts = {left: number for number, left in enumerate(dict.fromkeys(left for left, _ in useful))}
    rights = {right: number for number, right in enumerate(dict.fromkeys(right for _, right in useful))}
    alone = np.arange(len(lefts))
    rows = np.concatenate([[lefts[left] for left, _ in useful], alone])
    columns = np.concatenate([[rights[right] for _, right in useful], len(rights) + alone])
    gains = np.concatenate([list(useful.values()), np.zeros(len(lefts))])
    costs = coo_matrix((gains.max() + 1 - gains, (rows, columns)), (len(lefts), len(rights) + len(lefts)))
    found, partners = min_weight_full_bipartite_matching(costs.tocsr())
    names = list(rights)
    by_left = dict(zip(found.tolist(), partners.tolist(), strict=True))
    return {left: names[by_left[number]] for left, number in lefts.items() if by_left[number] < len(names)}
