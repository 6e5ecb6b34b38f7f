from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from resight.audit.match.bipartite_matching import match_one_to_one


def test_the_sum_counts_and_not_the_best_single_pair():
    # a-x alone is the largest, yet a-y and b-x together are more.
    assert match_one_to_one({("a", "x"): 5, ("a", "y"): 4, ("b", "x"): 4}) == {"a": "y", "b": "x"}


def test_a_chain_of_three_gives_way():
    weights = {("a", "x"): 3, ("b", "x"): 3, ("b", "y"): 2, ("c", "y"): 3, ("c", "z"): 2}
    assert match_one_to_one(weights) == {"a": "x", "b": "y", "c": "z"}


def test_who_weighs_less_stays_alone():
    assert match_one_to_one({("a", "x"): 1, ("b", "x"): 2}) == {"b": "x"}


def test_pairs_that_weigh_nothing_or_less_are_not_made():
    assert match_one_to_one({("a", "x"): 0.0, ("b", "y"): -1.0}) == {}


def test_nothing_gives_nothing():
    assert match_one_to_one({}) == {}


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(-3, 9)))
def test_no_other_choice_weighs_more(weights):
    chosen = match_one_to_one({(f"left {a}", f"right {b}"): w for (a, b), w in weights.items()})
    chosen = {int(a[5:]): int(b[6:]) for a, b in chosen.items()}
    assert len(set(chosen.values())) == len(chosen)
    assert sum(weights[pair] for pair in chosen.items()) == weigh_best(weights)


def weigh_best(weights):
    """By trying everything: each left takes one of its rights or none."""
    lefts = sorted({left for left, _ in weights})
    options = [[None, *(right for left, right in weights if left == one)] for one in lefts]
    best = 0
    for rights in product(*options):
        taken = [right for right in rights if right is not None]
        if len(taken) == len(set(taken)):
            pairs = [pair for pair in zip(lefts, rights, strict=True) if pair in weights]
            best = max(best, sum(weights[pair] for pair in pairs))
    return best
