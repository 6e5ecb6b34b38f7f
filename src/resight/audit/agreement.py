"""How far reviewers agree beyond chance. In: votes. Out: Cohen's kappa of each two, Fleiss' kappa of all.

Conventions: skipping is no vote; `unsure` is a category beside `same` and `different`. Where chance alone would agree
always (all votes alike), kappa is undefined and given as None, whatever the agreement; the same without common pairs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from resight.audit.votes import Vote

Ballot = Mapping[tuple[str, str], str]  # pair → verdict, of one reviewer


@dataclass(frozen=True)
class TwoReviewers:
    first: str
    second: str
    pairs: int  # that both voted on
    agreed: int
    kappa: float | None


@dataclass(frozen=True)
class Agreement:
    reviewers: Mapping[str, int]  # name → pairs voted on
    two: tuple[TwoReviewers, ...]
    pairs: int  # that all voted on
    fleiss: float | None


def measure_agreement(votes: Iterable[Vote]) -> Agreement:
    ballots: dict[str, dict[tuple[str, str], str]] = {}
    for vote in votes:
        if vote.verdict != "skip":
            ballots.setdefault(vote.reviewer, {})[vote.a, vote.b] = vote.verdict
    two = tuple(_compare(first, second, ballots) for first, second in combinations(sorted(ballots), 2))
    shared = sorted(set.intersection(*map(set, ballots.values()))) if ballots else []
    rows = [[ballot[pair] for ballot in ballots.values()] for pair in shared]
    return Agreement(
        {name: len(ballot) for name, ballot in sorted(ballots.items())}, two, len(shared), compute_fleiss(rows)
    )


def compute_cohen(first: Sequence[str], second: Sequence[str]) -> float | None:
    """κ = (p_o - p_e) / (1 - p_e): p_o the share that agrees, p_e = Σ_c p_first(c) · p_second(c).

    Verdicts of two reviewers on the same pairs, in the same order (Cohen 1960).
    """
    count = len(first)
    if not count:
        return None
    observed = sum(one == other for one, other in zip(first, second, strict=True)) / count
    ours, theirs = Counter(first), Counter(second)
    expected = sum(ours[verdict] * theirs[verdict] for verdict in ours) / count**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def compute_fleiss(rows: Sequence[Sequence[str]]) -> float | None:
    """κ = (P - P_e) / (1 - P_e): P the mean over pairs of Σ_c n_c (n_c - 1) / (n (n - 1)), P_e = Σ_c p(c)².

    One row a pair with its n ≥ 2 verdicts; n_c of them are c, and p(c) is the share of c among all (Fleiss 1971).
    """
    if not rows or len(rows[0]) < 2:
        return None
    count = len(rows[0])
    observed = sum(
        sum(same * (same - 1) for same in Counter(row).values()) / (count * (count - 1)) for row in rows
    ) / len(rows)
    shares = Counter(verdict for row in rows for verdict in row)
    expected = sum(share**2 for share in shares.values()) / (len(rows) * count) ** 2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def _compare(first: str, second: str, ballots: Mapping[str, Ballot]) -> TwoReviewers:
    shared = sorted(ballots[first].keys() & ballots[second].keys())
    ours, theirs = [ballots[first][pair] for pair in shared], [ballots[second][pair] for pair in shared]
    agreed = sum(one == other for one, other in zip(ours, theirs, strict=True))
    return TwoReviewers(first, second, len(shared), agreed, compute_cohen(ours, theirs))
