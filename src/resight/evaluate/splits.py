"""Queries in parts that are judged apart, such as those that overlap with a training set and the others (CiDeR, Table
A13). In: a CSV file with the columns id and split, such as the overlap.csv of `resight audit`. Out: query → part.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from resight.data.truth_files import read_table
from resight.errors import InputError, ManifestError

FIX = "name the columns id (of a query) and split in the first line, as `resight audit` does in overlap.csv"


def read_split(path: Path) -> Mapping[str, str]:
    parts: dict[str, str] = {}
    for line, row in read_table(path, ("id", "split"), FIX):
        if parts.setdefault(row["id"], row["split"]) != row["split"]:
            raise ManifestError(
                f"{path}, line {line}: the query {row['id']!r} is in two parts",
                expected="each query in one part",
                actual=f"{parts[row['id']]} and {row['split']}",
                fix="remove one of the lines",
            )
    return parts


def check_split(parts: Mapping[str, str], queries: Sequence[str]) -> None:
    """Refused where it is of other queries: all figures would silently be those of no part."""
    if not any(query in parts for query in queries):
        raise InputError(
            "the split names none of the queries",
            expected=f"ids such as {', '.join(map(repr, queries[:3]))}",
            actual=", ".join(map(repr, list(parts)[:3])) or "nothing",
            fix="give the split of this data set",
        )
