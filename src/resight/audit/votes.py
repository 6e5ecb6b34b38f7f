"""Votes on pairs of images. In: who says what of which pair. Out: the votes, in the order in which they were cast.

One SQLite file. A vote is on the disk when `cast` returns, so that neither a killed process nor a power cut takes it
back. Every call opens the file anew: threads and processes may vote at once.
A reviewer has one vote on a pair, the last one; casting the same vote again changes nothing but its place.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from resight.durable_sqlite import connect
from resight.errors import InputError, StorageError

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
        """Write a vote down; it is durable when this returns."""
        vote = Vote(check_reviewer(reviewer), a, b, check_verdict(verdict), datetime.now(UTC).isoformat())
        with self._open() as connection:
            connection.execute("delete from votes where (reviewer, a, b) = (?, ?, ?)", (vote.reviewer, a, b))
            connection.execute(
                "insert into votes (reviewer, a, b, verdict, at) values (?, ?, ?, ?, ?)",
                (vote.reviewer, a, b, vote.verdict, vote.at),
            )
        return vote

    def remove(self, vote: Vote) -> bool:
        """Take a vote back, as it was read; whether it was still there. One that was cast anew since stays."""
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
            rows = connection.execute(f"select reviewer, a, b, verdict, at from votes {choice} order by number", values)
            return [Vote(*row) for row in rows]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is kept, or nothing."""
        try:
            with contextlib.closing(connect(self.path)) as connection:
                connection.execute("begin immediate")
                connection.execute(TABLE)
                yield connection
                connection.execute("commit")
        except sqlite3.Error as error:
            raise StorageError(
                f"cannot keep votes in {self.path}",
                expected="a place that can be written to, and a file that resight made",
                actual=str(error),
                fix="check who may write there and the space left",
            ) from error


def check_reviewer(name: str) -> str:
    """The name without blanks around it; it becomes a cell of a table, so that it may not look like a formula."""
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
