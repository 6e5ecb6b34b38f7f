"""Which positives of a graded query count: "easy/ap" is `ap` under the protocol easy.

The revisited Oxford and Paris benchmark grades positives as easy (grade 2 here) or hard (grade 1), and asks three
questions of one ranking. What a protocol leaves aside is ignored: it leaves the ranking before ranks are counted.

    easy/…      grade 2 and above are positives, grade 1 is ignored
    medium/…    every grade above 0 is a positive
    hard/…      grade 1 is a positive, grade 2 and above are ignored

A query without a positive under a protocol has no value there (NaN): it is left out of the mean, and counted.
Radenović et al., Revisiting Oxford and Paris, CVPR 2018.
"""

from dataclasses import dataclass, replace

from resight.errors import RecipeError
from resight.types import Judgement

BEFORE_METRIC = "/"
EASY = 2  # the lowest grade of an easy positive


@dataclass(frozen=True)
class Protocol:
    easy: bool  # whether easy positives count
    hard: bool
    convention: str


PROTOCOLS = {
    "easy": Protocol(True, False, "Easy: grade 2 and above are positives, grade 1 is ignored."),
    "medium": Protocol(True, True, "Medium: every grade above 0 is a positive."),
    "hard": Protocol(False, True, "Hard: grade 1 is a positive, grade 2 and above are ignored."),
}


def split(name: str) -> tuple[str | None, str]:
    """ "easy/ap@20" → ("easy", "ap@20"); "ap" → (None, "ap")."""
    protocol, slash, metric = name.partition(BEFORE_METRIC)
    if not slash:
        return None, name
    if protocol not in PROTOCOLS:
        raise RecipeError(
            f"there is no protocol called {protocol!r}",
            expected=f"one of {', '.join(PROTOCOLS)} before the {BEFORE_METRIC!r}",
            actual=repr(name),
            fix="write for example medium/ap_trapezoid, or the metric alone",
        )
    return protocol, metric


def narrow(judgement: Judgement, protocol: str | None) -> Judgement:
    """The judgement as a protocol sees it; None leaves it as it is."""
    if protocol is None:
        return judgement
    kept = PROTOCOLS[protocol]
    aside = [
        id for id, grade in judgement.grades.items() if grade > 0 and not (kept.easy if grade >= EASY else kept.hard)
    ]
    grades = {id: grade for id, grade in judgement.grades.items() if grade <= 0 or id not in set(aside)}
    return replace(judgement, grades=grades, ignored=judgement.ignored.union(aside))
