"""A part of MSLS: queries and gallery drawn by a seed, or named by a list of ids (one per line).

In: the images of a city and the judged queries. Out: those that stay; see msls.py for the rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight.errors import ManifestError, RecipeError
from resight.types import ImageRef, Judgement

JudgedQuery = tuple[ImageRef, Judgement]


def draw_queries(queries: Sequence[JudgedQuery], count: int, rng: np.random.Generator) -> list[JudgedQuery]:
    if count > len(queries):
        raise RecipeError(
            f"there are not {count} queries",
            expected=f"at most {len(queries)}",
            actual=str(count),
            fix="ask for fewer, or 0 for all",
        )
    return [queries[row] for row in sorted(rng.permutation(len(queries))[:count])]


def draw_gallery(
    database: Sequence[ImageRef], judgements: Sequence[Judgement], count: int, rng: np.random.Generator
) -> frozenset[str]:
    if count > len(database):
        raise RecipeError(
            f"the database has fewer than {count} images",
            expected=f"at most {len(database)}",
            actual=str(count),
            fix="ask for fewer, or 0 for all",
        )
    waiting = [iter([ids[row] for row in rng.permutation(len(ids))]) for ids in (list(j.grades) for j in judgements)]
    chosen: dict[str, None] = {}
    for name in (*_take_turns(waiting), *(database[row].id for row in rng.permutation(len(database)))):
        if len(chosen) == count:
            break
        chosen[name] = None
    return frozenset(chosen)


def _take_turns(lists: Sequence[Iterator[str]]) -> Iterator[str]:
    """One item of each list, then another of each, until all are empty; items come once."""
    seen: set[str] = set()
    while lists:
        left = []
        for items in lists:
            name = next((item for item in items if item not in seen), None)
            if name is not None:
                seen.add(name)
                left.append(items)
                yield name
        lists = left


def restrict(
    database: Sequence[ImageRef],
    queries: Sequence[JudgedQuery],
    kept: frozenset[str],
    unmatched: bool,
) -> tuple[list[ImageRef], list[JudgedQuery]]:
    """The kept images of the database, and the queries with what is left of their positives."""
    judged = [
        (ref, replace(judgement, grades={name: grade for name, grade in judgement.grades.items() if name in kept}))
        for ref, judgement in queries
    ]
    found = [(ref, judgement) for ref, judgement in judged if judgement.grades or unmatched]
    return [ref for ref in database if ref.id in kept], found


def read_list(path: Path, known: Sequence[ImageRef]) -> frozenset[str]:
    """The ids in a file, one per line; empty lines and lines that start with # do not count."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(
            f"the list {path} cannot be read",
            expected="a text file with one id per line, such as london/query/KEY",
            actual=str(error),
            fix="check the path",
        ) from error
    listed = frozenset(line for line in lines if line and not line.startswith("#"))
    unknown = sorted(listed - {ref.id for ref in known})
    if unknown:
        raise ManifestError(
            f"{len(unknown):,} ids of the list {path} are not in these cities",
            expected="ids such as " + known[0].id,
            actual=", ".join(unknown[:3]),
            fix="check cities, split and subtask; panoramas and queries without a positive are left out by default",
        )
    return listed
