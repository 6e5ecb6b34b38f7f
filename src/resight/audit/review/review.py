"""A review: pairs for people to judge, and their votes. In: pairs of two collections. Out: the next pair, and votes.

    folder/review.json     title, the collections that hold the pairs' a and b, order, blind
    folder/pairs.csv       the pairs (see dedup/pairs.py), numbered from 1 without repeats
    folder/votes.sqlite    the votes, by the ids of the pair: a new list of pairs keeps earlier votes
    folder/searched_with.json  the calibration behind the probabilities of an audit; other reviews have none

Reviewers never see each other's votes. A blind review (the default) hides resight's estimate until the vote, so that
votes can correct it. The least certain pairs come first, unless `order` is given.
"""

import io
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from resight.audit.dedup.pairs import Pair, read_pairs, write_pairs
from resight.audit.review.votes import Agreement, Verdict, Vote, VoteBook, check_reviewer, measure_agreement
from resight.errors import InputError, ManifestError
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer
from resight.files.documents import load_json
from resight.search import calibration as calibrations
from resight.search.calibration import Calibration

FILE = "review.json"
Order = Literal["uncertain", "given"]


@dataclass(frozen=True)
class Settings:
    title: str
    a: Path  # the collection that holds the pairs' a
    b: Path
    order: Order = "uncertain"
    blind: bool = True


def has_settings(folder: Path) -> bool:
    return (folder / FILE).exists()


def read_settings(folder: Path) -> Settings:
    try:
        settings = load_json((folder / FILE).read_text(encoding="utf-8"))
        title, a, b = (settings[name] for name in ("title", "a", "b"))
        order, blind = settings.get("order", "uncertain"), settings.get("blind", True)
        right = all(isinstance(text, str) for text in (title, a, b)) and isinstance(blind, bool)
        if not right or order not in ("uncertain", "given"):
            raise ValueError("a value of the wrong kind")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(
            f"{folder} is not a review",
            expected="review.json with title, a, b; optionally order (uncertain or given) and blind (true or false)",
            actual="no such file" if isinstance(error, FileNotFoundError) else repr(error),
            fix="create it with `resight audit` or `resight dedup --review`; delete a broken review.json first",
        ) from error
    return Settings(title, folder / a, folder / b, order, blind)


def write_settings(settings: Settings, folder: Path) -> None:
    plain = {
        "title": settings.title,
        "a": _name(settings.a, folder),
        "b": _name(settings.b, folder),
        "order": settings.order,
        "blind": settings.blind,
    }
    with write_atomic(folder / FILE) as temporary:
        temporary.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _name(collection: Path, folder: Path) -> str:
    """Relative if the collection lies in the review's folder, so that both can be moved together."""
    inside = collection.resolve().is_relative_to(folder.resolve())
    return Path(os.path.relpath(collection, folder)).as_posix() if inside else str(collection.resolve())


PAIRS, VOTES, CALIBRATION = "pairs.csv", "votes.sqlite", "searched_with.json"


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
    a: Path  # the collection that holds the pairs' a
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
        order: Order | None = None,
        blind: bool | None = None,
        calibration: Calibration | None = None,
    ) -> "Review":
        """Write a review. If the folder holds one, its pairs are replaced and its votes kept.

        `order` and `blind` keep their values unless given. `calibration` is that of the search behind the pairs'
        probabilities, if any.
        """
        known = read_settings(folder) if has_settings(folder) else Settings(title, a, b)
        (folder / CALIBRATION).unlink(missing_ok=True)
        write_pairs(pairs, folder / PAIRS)
        if calibration is not None:
            calibrations.save([calibration], folder / CALIBRATION)
        kept = Settings(title, a, b, order or known.order, known.blind if blind is None else blind)
        write_settings(kept, folder)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Review":
        settings = read_settings(folder)
        listed: dict[tuple[str, str], Pair] = {}
        for pair in read_pairs(folder / PAIRS):
            listed.setdefault((pair.a, pair.b), pair)  # a repeated pair could never be completed
        pairs = tuple(listed.values())
        return cls(folder, settings.title, settings.a, settings.b, pairs, settings.order, settings.blind)

    def find(self, number: int) -> Pair:
        if not 1 <= number <= len(self.pairs):
            raise InputError(
                f"{self.title!r} has no such pair", expected=f"a number from 1 to {len(self.pairs)}", actual=str(number)
            )
        return self.pairs[number - 1]

    def next(self, reviewer: str, *, skipped: bool = False) -> int | None:
        """The number of the next pair for this reviewer; None if all are done.

        With `skipped`, the pair skipped longest ago if no other is left.
        """
        votes = self._list_votes(check_reviewer(reviewer))
        seen = {self._numbers[vote.a, vote.b] for vote in votes}
        left = next((number for number in self._order if number not in seen), None)
        if left is None and skipped:
            again = (self._numbers[vote.a, vote.b] for vote in votes if vote.verdict == "skip")
            left = next(again, None)
        return left

    def vote(self, reviewer: str, number: int, verdict: str) -> Vote:
        """Cast a vote; it is durable when this returns."""
        pair = self.find(number)
        return self._votes.cast(reviewer, pair.a, pair.b, verdict)

    def last(self, reviewer: str) -> int | None:
        """The number of the listed pair that this reviewer voted on last; None without a vote."""
        votes = self._list_votes(check_reviewer(reviewer))
        return self._numbers[votes[-1].a, votes[-1].b] if votes else None

    def undo(self, reviewer: str, number: int | None = None) -> int | None:
        """Undo the vote on this pair, or else the last one, and return the pair's number; None without a vote.

        With a number the call may be repeated, e.g. after a lost response: no other vote is undone instead.
        """
        number = self.last(reviewer) if number is None else number
        if number is None:
            return None
        pair = self.find(number)
        for vote in self._list_votes(check_reviewer(reviewer)):
            if (vote.a, vote.b) == (pair.a, pair.b):
                self._votes.remove(vote)
        return number

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the search behind the probabilities; None if they come from elsewhere."""
        file = self.folder / CALIBRATION
        return calibrations.load(file)[0] if file.is_file() else None

    def progress(self, reviewer: str) -> Progress:
        return Progress(len(self.pairs), Counter(vote.verdict for vote in self._list_votes(check_reviewer(reviewer))))

    def agreement(self) -> Agreement:
        return measure_agreement(self._list_votes())

    def list_votes(self) -> list[Vote]:
        """All reviewers' votes on listed pairs, oldest first."""
        return self._list_votes()

    def export_csv(self) -> str:
        """Columns pair, a, b, reviewer, verdict, at; no cell is a formula (resight.files.csv_cells)."""
        text = io.StringIO()
        writer = make_writer(text, "\n")
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
