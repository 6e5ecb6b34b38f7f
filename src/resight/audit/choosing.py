"""Which judged pairs are listed. In: judged pairs of rows. Out: those of the kinds, and as likely, as asked for.

What is not listed takes no part in groups either: a group is kept for an image that a listed pair names. Exact copies
do not come here, as nothing is doubtful about them; they make no room for doubtful pairs.
"""

import math
from collections.abc import Collection, Iterable, Mapping

from resight.audit.listing import Judged
from resight.audit.pairs import Kind

Rows = tuple[int, int]


def choose(judged: Mapping[Rows, Judged], kinds: Collection[Kind], least: float) -> dict[Rows, Judged]:
    return {rows: one for rows, one in judged.items() if one.kind in kinds and one.probability >= least}


def find_cut(chances: Iterable[float], false_alarms: float) -> float:
    """The least probability of a listed pair: as many of the likeliest as keep the expected share of wrong ones.

    Pairs that are equally likely are listed together, or not at all; infinity where none may be listed.
    """
    cut, wrong = math.inf, 0.0
    ranked = sorted(chances, reverse=True)
    for count, chance in enumerate(ranked, start=1):
        wrong += 1 - chance
        if wrong > false_alarms * count + 1e-12:  # the share only grows from here on
            break
        if count == len(ranked) or ranked[count] < chance:
            cut = chance
    return cut
