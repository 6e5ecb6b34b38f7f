"""A review: pairs that people look at, and their votes. In: pairs of two collections. Out: the next pair, and votes.

    folder/review.json     title, the collections that the pairs' a and b are in, order, blind
    folder/pairs.csv       the pairs (see pairs.py); a review calls them by their row, from 1
    folder/votes.sqlite    the votes, by the ids of the pair: a new list of pairs keeps the votes that were cast

Reviewers never see each other's votes. A blind review does not show the machine's own view of a pair before the vote,
so that votes can correct it; that is the default. The pairs that are least certain come first, unless `order` is given.
"""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from resight.audit.agreement import Agreement, measure_agreement
from resight.audit.pairs import Pair, read_pairs, write_pairs
from resight.audit.votes import Verdict, Vote, VoteBook, check_reviewer
from resight.errors import InputError, ManifestError
from resight.whole_files import write_whole

SETTINGS, PAIRS, VOTES = "review.json", "pairs.csv", "votes.sqlite"
Order = Literal["uncertain", "given"]


@dataclass(frozen=True)
class Progress:
    total: int
    counts: Mapping[Verdict, int]  # verdict → pairs

    @property
    def voted(self) -> int:
        return sum(self.counts.values()) - self.skipped

    @property
    def skipped(self) -> int:
        return self.counts.get("skip", 0)

    @property
    def left(self) -> int:
        return self.total - self.voted - self.skipped


@dataclass(frozen=True)
class Review:
    folder: Path
    title: str
    a: Path  # the collection that the pairs' a are in
    b: Path
    pairs: tuple[Pair, ...]
    order: Order = "uncertain"
    blind: bool = True

    @classmethod
    def create(
        cls,
        folder: Path,
        title: str,
        a: Path,
        b: Path,
        pairs: Sequence[Pair],
        *,
        order: Order = "uncertain",
        blind: bool = True,
    ) -> "Review":
        """Write a review down; where there is one already, its pairs are replaced and its votes kept."""
        write_pairs(pairs, folder / PAIRS)
        settings = {"title": title, "a": _name(a, folder), "b": _name(b, folder), "order": order, "blind": blind}
        with write_whole(folder / SETTINGS) as temporary:
            temporary.write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Review":
        settings = _read_settings(folder / SETTINGS)
        return cls(
            folder,
            settings["title"],
            folder / settings["a"],
            folder / settings["b"],
            tuple(read_pairs(folder / PAIRS)),
            settings["order"],
            settings["blind"],
        )

    def find(self, number: int) -> Pair:
        if not 1 <= number <= len(self.pairs):
            raise InputError(
                f"{self.title!r} has no such pair", expected=f"a number from 1 to {len(self.pairs)}", actual=str(number)
            )
        return self.pairs[number - 1]

    def next(self, reviewer: str, *, skipped: bool = False) -> int | None:
        """The number of the pair that this reviewer should look at; None when all are done.

        With `skipped`, the pair that was skipped longest ago, when no other is left.
        """
        votes = self._list_votes(check_reviewer(reviewer))
        seen = {self._numbers[vote.a, vote.b] for vote in votes}
        left = next((number for number in self._order if number not in seen), None)
        if left is None and skipped:
            again = (self._numbers[vote.a, vote.b] for vote in votes if vote.verdict == "skip")
            left = next(again, None)
        return left

    def vote(self, reviewer: str, number: int, verdict: str) -> Vote:
        """Durable when this returns."""
        pair = self.find(number)
        return self._votes.cast(reviewer, pair.a, pair.b, verdict)

    def undo(self, reviewer: str) -> int | None:
        """Take the reviewer's last vote back and give the number of its pair; None when there is none left."""
        while vote := self._votes.undo(reviewer):
            number = self._numbers.get((vote.a, vote.b))
            if number is not None:  # else it was cast on a pair of an earlier list
                return number
        return None

    def progress(self, reviewer: str) -> Progress:
        return Progress(len(self.pairs), Counter(vote.verdict for vote in self._list_votes(check_reviewer(reviewer))))

    def agreement(self) -> Agreement:
        return measure_agreement(self._list_votes())

    def list_votes(self) -> list[Vote]:
        """Everybody's, of the pairs that are listed, oldest first."""
        return self._list_votes()

    def export_csv(self) -> str:
        """Columns pair, a, b, reviewer, verdict, at."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("pair", "a", "b", "reviewer", "verdict", "at"))
        writer.writerows(
            (self._numbers[vote.a, vote.b], vote.a, vote.b, vote.reviewer, vote.verdict, vote.at)
            for vote in self._list_votes()
        )
        return text.getvalue()

    def _list_votes(self, reviewer: str | None = None) -> list[Vote]:
        return [vote for vote in self._votes.read(reviewer) if (vote.a, vote.b) in self._numbers]

    @cached_property
    def _votes(self) -> VoteBook:
        return VoteBook(self.folder / VOTES)

    @cached_property
    def _numbers(self) -> Mapping[tuple[str, str], int]:
        return {(pair.a, pair.b): number for number, pair in enumerate(self.pairs, start=1)}

    @cached_property
    def _order(self) -> Sequence[int]:
        numbers = range(1, len(self.pairs) + 1)
        if self.order == "given":
            return numbers
        return sorted(numbers, key=lambda number: round(abs(self.pairs[number - 1].probability - 0.5), 6))


def _name(collection: Path, folder: Path) -> str:
    """Relative where the collection lies in the review's folder, so that both can be moved together."""
    inside = collection.resolve().is_relative_to(folder.resolve())
    return Path(os.path.relpath(collection, folder)).as_posix() if inside else str(collection.resolve())


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        title, a, b = (settings[name] for name in ("title", "a", "b"))
        order, blind = settings.get("order", "uncertain"), settings.get("blind", True)
        right = all(isinstance(text, str) for text in (title, a, b)) and isinstance(blind, bool)
        if not right or order not in ("uncertain", "given"):
            raise ValueError("a value of the wrong kind")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(
            f"{path.parent} is not a review",
            expected="review.json with title, a, b, and order (uncertain or given) and blind (true or false) if wanted",
            actual="no such file" if isinstance(error, FileNotFoundError) else repr(error),
            fix="make it with `resight audit` or `resight dedup --review`",
        ) from error
    return {"title": title, "a": a, "b": b, "order": order, "blind": blind}
