"""Which pairs count: pairs and votes in, confirmed pairs out.

A pair is confirmed when at least one reviewer calls it the same thing, and refuted when somebody voted on it and nobody
does (unsure and skipped are no confirmation). A pair that nobody has voted on counts by its probability, unless there
is a doubt that only a person can settle.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from resight.audit.pairs import Pair
from resight.audit.votes import Vote, check_reviewer, check_verdict
from resight.data.truth_files import read_table

LEAST = 0.9


@dataclass(frozen=True)
class Decisions:
    by_votes: tuple[Pair, ...]
    by_probability: tuple[Pair, ...]  # nobody has voted on them
    refuted: tuple[Pair, ...]
    open: tuple[Pair, ...]  # neither voted on nor probable enough
    least: float

    @property
    def confirmed(self) -> tuple[Pair, ...]:
        return self.by_votes + self.by_probability


def decide(
    pairs: Sequence[Pair],
    votes: Iterable[Vote],
    least: float = LEAST,
    doubtful: frozenset[tuple[str, str]] = frozenset(),
) -> Decisions:
    said: dict[tuple[str, str], set[str]] = {}
    for vote in votes:
        if vote.verdict != "skip":
            said.setdefault((vote.a, vote.b), set()).add(vote.verdict)

    def pick(voted: bool, agreed: bool) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if judge(pair) == (voted, agreed))

    def judge(pair: Pair) -> tuple[bool, bool]:
        """Whether anybody voted, and whether the pair counts."""
        key = pair.a, pair.b
        return (
            (True, "same" in said[key]) if key in said else (False, pair.probability >= least and key not in doubtful)
        )

    return Decisions(pick(True, True), pick(False, True), pick(True, False), pick(False, False), least)


def read_votes(path: Path) -> list[Vote]:
    """What `resight votes --out` wrote: the columns a, b, reviewer and verdict."""
    columns = ("a", "b", "reviewer", "verdict")
    return [
        Vote(check_reviewer(row["reviewer"]), row["a"], row["b"], check_verdict(row["verdict"]), row.get("at", ""))
        for _, row in read_table(path, columns, "write it with `resight votes FOLDER --out FILE`")
    ]
