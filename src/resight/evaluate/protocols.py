"""Evaluation protocols of graded data sets: "easy/ap" is the metric `ap` under the protocol easy.

In: the name of a metric, or a query's Judgement. Out: the protocol's name and the metric's, or the Judgement as the
protocol sees it. The revisited Oxford and Paris benchmark grades positives as easy (grade 2 here) or hard (grade 1)
and judges each ranking three times. A protocol ignores the positives that it does not count: they leave the ranking
before ranks are counted.

    easy/…      grade 2 and above are positives, grade 1 is ignored
    medium/…    every grade above 0 is a positive
    hard/…      grade 1 is a positive, grade 2 and above are ignored

A query without a positive under a protocol has no value there (NaN): means leave it out, and reports count it.
Radenović et al., Revisiting Oxford and Paris, CVPR 2018.
"""

from dataclasses import dataclass, replace

from resight.errors import RecipeError
from resight.types import Judgement

SEPARATOR = "/"  # between a protocol and a metric
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


def split_name(name: str) -> tuple[str | None, str]:
    """ "easy/ap@20" → ("easy", "ap@20"); "ap" → (None, "ap")."""
    protocol, separator, metric = name.partition(SEPARATOR)
    if not separator:
        return None, name
    if protocol not in PROTOCOLS:
        raise RecipeError(
            f"there is no protocol called {protocol!r}",
            expected=f"one of {', '.join(PROTOCOLS)} before the {SEPARATOR!r}",
            actual=repr(name),
            fix="write for example medium/ap_trapezoid, or the metric alone",
        )
    return protocol, metric


def apply_protocol(judgement: Judgement, protocol: str | None) -> Judgement:
    """The judgement as a protocol sees it; None leaves it as it is."""
    if protocol is None:
        return judgement
    counted = PROTOCOLS[protocol]
    ignored = {
        id
        for id, grade in judgement.grades.items()
        if grade > 0 and not (counted.easy if grade >= EASY else counted.hard)
    }
    grades = {id: grade for id, grade in judgement.grades.items() if id not in ignored}
    return replace(judgement, grades=grades, ignored=judgement.ignored.union(ignored))
