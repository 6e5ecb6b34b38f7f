"""Positions of a few ids in a ranking.

In: a ranking and the ids that matter. Out: id → its position, counted from 0. Ids are strings. For speed they may be
row numbers (an array of integers) if the judgement's ids are integers too: a million rows take a few milliseconds.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.types import IntArray, Judgement

Ids = Sequence[str] | NDArray[Any]
TABLE_FACTOR = 8  # a table of flags may have this many entries per ranked row


def find_positions(ranked_ids: Ids, wanted: Collection[str]) -> dict[str, int]:
    """Position, counted from 0, of each wanted id that is in the ranking; refuses a ranking that has an id twice."""
    if len(ranked_ids) == 0:
        return {}
    by_number = isinstance(ranked_ids[0], (int, np.integer))
    if wanted and by_number != isinstance(next(iter(wanted)), (int, np.integer)):
        raise _refuse_kinds(ranked_ids[0], next(iter(wanted)))
    return _find_rows(np.asarray(ranked_ids), wanted) if by_number else _find_names(ranked_ids, wanted)


def number_judgement(judgement: Judgement, rows: Mapping[str, int]) -> Judgement:
    """The judgement with row numbers for ids, for rankings of rows; refuses an id without a row."""
    for id in (*judgement.grades, *judgement.ignored, *judgement.boxes):
        if id not in rows:
            raise InputError(
                f"{id!r} is judged but has no row",
                expected=f"ids of the {len(rows):,} images that are ranked",
                actual=repr(id),
                fix="judge against the database that was searched",
            )
    numbered: Any = rows  # a Judgement declares its ids as strings
    return replace(
        judgement,
        grades={numbered[id]: grade for id, grade in judgement.grades.items()},
        ignored=frozenset(numbered[id] for id in judgement.ignored),
        boxes={numbered[id]: box for id, box in judgement.boxes.items()},
    )


def _find_names(ranked_ids: Ids, wanted: Collection[str]) -> dict[str, int]:
    positions: dict[str, int] = dict(zip(ranked_ids, range(len(ranked_ids)), strict=True))
    if len(positions) < len(ranked_ids):
        # The dictionary holds an id's last position, so an id with another position comes again further down.
        first, id = next((position, id) for position, id in enumerate(ranked_ids) if positions[id] != position)
        raise _refuse_duplicate(id, first, positions[id])
    return {id: positions[id] for id in wanted if id in positions}


def _find_rows(ranked: NDArray[Any], wanted: Collection[str]) -> dict[str, int]:
    if ranked.ndim != 1 or ranked.dtype.kind not in "iu":
        raise _refuse_kinds(ranked.ravel()[0], "a mixture")
    rows: IntArray = ranked.astype(np.int64, copy=False)
    low, high = int(rows.min()), int(rows.max())
    if low < 0 or high >= TABLE_FACTOR * len(rows) + 1024:
        return _find_sparse(rows, wanted)
    seen = np.zeros(high + 1, dtype=np.bool_)
    seen[rows] = True
    if np.count_nonzero(seen) < len(rows):
        raise _find_duplicate(rows)
    numbers: Any = wanted
    asked = np.zeros(high + 1, dtype=np.bool_)
    asked[[row for row in numbers if 0 <= row <= high]] = True
    return {int(rows[position]): int(position) for position in np.flatnonzero(asked[rows])}  # type: ignore[misc]


def _find_sparse(rows: IntArray, wanted: Collection[str]) -> dict[str, int]:
    """For row numbers too far apart for a table of flags."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise _find_duplicate(rows)
    names = list(wanted)
    asked = np.asarray(names, dtype=np.int64)
    nearest = np.minimum(np.searchsorted(ordered, asked), len(ordered) - 1)
    found = ordered[nearest] == asked
    return {name: int(order[row]) for name, row, there in zip(names, nearest, found, strict=True) if there}


def _find_duplicate(rows: NDArray[Any]) -> InputError:
    order = np.argsort(rows, kind="stable")
    again = int(np.flatnonzero(rows[order][1:] == rows[order][:-1])[0])
    return _refuse_duplicate(int(rows[order[again]]), int(order[again]), int(order[again + 1]))


def _refuse_duplicate(id: Hashable, first: int, second: int) -> InputError:
    return InputError(
        f"{id!r} is in the ranking more than once",
        expected="every id at most once",
        actual=f"{id!r} at ranks {first + 1} and {second + 1}",
        fix="keep only the best rank of each image",
    )


def _refuse_kinds(ranked: Any, judged: Any) -> InputError:
    return InputError(
        "the ranking and the judgement use different kinds of ids",
        expected="strings in both, or row numbers in both",
        actual=f"{ranked!r} ({type(ranked).__name__}) ranked, {judged!r} ({type(judged).__name__}) judged",
        fix="use ids in both; resight.evaluate.rank_positions.number_judgement turns a judgement's ids into rows",
    )
