"""Classes that a text suggests for removal (`find_candidates`), and the reviewers' decisions on them.

In: the readable names of the training classes, texts such as "Oxford", and the file candidates.csv of an audit. Out:
Candidates. A name suggests a class if it contains the text as whole words, whatever its case and accents: "Paris" is in
"Hôtel des Invalides (Paris)" and not in "Parish church". A suggested class goes only if at least one reviewer confirms
that an evaluation set shows it, as in CiDeR: by the verdict "same" in candidates.csv, or by a vote "same" on a pair of
an evaluation image and an image of the class.

    class,name,images,text,reviewer,verdict
    167104,Hôtel des Invalides,23,invalides,Kim,same

A verdict is same, different or unsure; an empty one waits for a reviewer. Several reviewers take one line each.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight.audit.review.votes import Verdict, check_reviewer, check_verdict
from resight.data.truth_tables import read_table
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer

FILE = "candidates.csv"
COLUMNS = ("class", "name", "images", "text", "reviewer", "verdict")
Verdicts = Mapping[str, tuple[tuple[str, Verdict], ...]]  # class → reviewers and their verdicts


@dataclass(frozen=True)
class Candidate:
    name: str  # the class
    text: str  # that its readable name contains
    decision: Literal["confirmed", "refuted", "open"]
    verdicts: tuple[tuple[str, Verdict], ...] = ()


def find_candidates(
    names: Mapping[str, str],
    texts: Iterable[str],
    verdicts: Verdicts | None = None,
    matched: Collection[str] = frozenset(),
) -> tuple[Candidate, ...]:
    """`names`: class → readable name; `matched`: classes with a pair that a reviewer has confirmed."""
    known = verdicts or {}
    return tuple(
        Candidate(label, text, _decide(known.get(label, ()), label in matched), known.get(label, ()))
        for label, text in _match_names(names, texts)
    )


def read_verdicts(path: Path) -> Verdicts:
    """The reviewers' decisions in a candidates.csv; none if there is no such file."""
    found: dict[str, tuple[tuple[str, Verdict], ...]] = {}
    if not path.exists():
        return found
    fix = f"run the audit again: it writes {FILE} with these columns"
    for _, row in read_table(path, ("class", "reviewer", "verdict"), fix):
        if row["verdict"].strip():
            given = check_reviewer(row["reviewer"]), check_verdict(row["verdict"].strip().lower())
            found[row["class"]] = (*found.get(row["class"], ()), given)
    return found


def write_candidates(
    candidates: Iterable[Candidate], path: Path, names: Mapping[str, str], sizes: Mapping[str, int]
) -> None:
    """One line per verdict, and an empty one for a class without any."""
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(COLUMNS)
        for one in candidates:
            for reviewer, verdict in one.verdicts or (("", ""),):
                table.writerow((one.name, names.get(one.name, ""), sizes[one.name], one.text, reviewer, verdict))


def _decide(verdicts: tuple[tuple[str, Verdict], ...], matched: bool) -> Literal["confirmed", "refuted", "open"]:
    cast = {verdict for _, verdict in verdicts if verdict != "skip"}
    if matched or "same" in cast:
        return "confirmed"
    return "refuted" if cast else "open"


def _match_names(names: Mapping[str, str], texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Class → the first text that its name contains as whole words."""
    wanted = [(text.strip(), re.compile(rf"(?<!\w){re.escape(_fold(text))}(?!\w)")) for text in texts if text.strip()]
    for label, name in sorted(names.items()):
        folded = _fold(name)
        found = next((text for text, pattern in wanted if pattern.search(folded)), None)
        if found is not None:
            yield label, found


def _fold(text: str) -> str:
    """Lower case without accents, words joined by one blank: "Hôtel  des" → "hotel des"."""
    parts = unicodedata.normalize("NFKD", " ".join(text.replace("_", " ").split()))
    return "".join(letter for letter in parts if not unicodedata.combining(letter)).casefold()
