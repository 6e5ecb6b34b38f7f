"""Votes on pairs of images in one SQLite file, and how far reviewers agree beyond chance.

A vote is on disk when `cast` returns: neither a killed process nor a power cut loses it. Every call opens the file, so
threads and processes may vote at once. A reviewer has one vote per pair, the last one; casting the same vote again only
moves it to the end.

Agreement: Cohen's kappa of each two reviewers, Fleiss' kappa of all. A skip is not a vote; `unsure` is a category
beside `same` and `different`. Kappa is undefined (None) without common pairs, and if all votes are equal, because then
chance alone would always agree.
"""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Literal, get_args

from resight.errors import InputError, StorageError
from resight.files.sqlite import connect

Verdict = Literal["same", "different", "unsure", "skip"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
LONGEST_NAME = 60
TABLE = """
create table if not exists votes (
    number integer primary key autoincrement,
    reviewer text not null,
    a text not null,
    b text not null,
    verdict text not null,
    at text not null,
    unique (reviewer, a, b)
)
"""


@dataclass(frozen=True)
class Vote:
    reviewer: str
    a: str
    b: str
    verdict: Verdict
    at: str = ""  # UTC, ISO 8601


class VoteBook:
    def __init__(self, path: Path) -> None:
        self.path = path

    def cast(self, reviewer: str, a: str, b: str, verdict: str) -> Vote:
        """Store a vote; it is durable when this returns."""
        vote = Vote(check_reviewer(reviewer), a, b, check_verdict(verdict), datetime.now(UTC).isoformat())
        with self._open() as connection:
            connection.execute("delete from votes where (reviewer, a, b) = (?, ?, ?)", (vote.reviewer, a, b))
            connection.execute(
                "insert into votes (reviewer, a, b, verdict, at) values (?, ?, ?, ?, ?)",
                (vote.reviewer, a, b, vote.verdict, vote.at),
            )
        return vote

    def remove(self, vote: Vote) -> bool:
        """Delete a vote as it was read; return whether it was still there. A newer vote on the pair stays."""
        with self._open() as connection:
            row = connection.execute(
                "delete from votes where (reviewer, a, b, at) = (?, ?, ?, ?) returning number",
                (vote.reviewer, vote.a, vote.b, vote.at),
            ).fetchone()
        return row is not None

    def read(self, reviewer: str | None = None) -> list[Vote]:
        """The votes of one reviewer or of all, oldest first."""
        if not self.path.exists():
            return []
        choice, values = ("", ()) if reviewer is None else ("where reviewer = ?", (reviewer,))
        with self._open() as connection:
            rows = connection.execute(f"select reviewer, a, b, verdict, at from votes {choice} order by number", values)  # nosec B608  # constant text, values are bound
            return [Vote(*row) for row in rows]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        try:
            with contextlib.closing(connect(self.path)) as connection:
                connection.execute("begin immediate")
                connection.execute(TABLE)
                yield connection
                connection.execute("commit")
        except sqlite3.Error as error:
            raise StorageError(
                f"cannot store votes in {self.path}",
                expected="a writable folder, and a file that resight made",
                actual=str(error),
                fix="check the permissions and the free space",
            ) from error


def check_reviewer(name: str) -> str:
    """The name without surrounding blanks; refused if it looks like a formula, since it becomes a table cell."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or name[0] in "=+-@":
        raise InputError(
            "not a reviewer's name",
            expected=f"1 to {LONGEST_NAME} printable characters that do not begin with =, +, - or @",
            actual=repr(name[:80]),
            fix="give a name or initials",
        )
    return name


def check_verdict(text: str) -> Verdict:
    if text not in VERDICTS:
        raise InputError("not a verdict", expected=f"one of {', '.join(VERDICTS)}", actual=repr(text[:80]))
    return text


Ballot = Mapping[tuple[str, str], str]  # pair → verdict, of one reviewer


@dataclass(frozen=True)
class TwoReviewers:
    first: str
    second: str
    pairs: int  # with votes of both
    agreed: int
    kappa: float | None


@dataclass(frozen=True)
class Agreement:
    reviewers: Mapping[str, int]  # name → pairs voted on
    two: tuple[TwoReviewers, ...]
    pairs: int  # with votes of all
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

    One row per pair with its n ≥ 2 verdicts; n_c of them are c, and p(c) is the share of c among all (Fleiss 1971).
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
