"""The rankings of an evaluation as TREC run files: one of one recipe, or a folder with one a recipe.

In: what `measure` tells of every ranking. Out: files of the first DEPTH answers of each query, which `resight judge`
reads.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from resight.evaluate.trec import write_run
from resight.types import FloatArray, Recipe

DEPTH = 1000  # answers of a query in a run file


class Recorder:
    """The first DEPTH answers of every query, by recipe."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, Sequence[str], Sequence[float]]]] = {}

    def add(self, recipe: Recipe, query: str, ids: Sequence[str], scores: FloatArray) -> None:
        self._found.setdefault(recipe.name, []).append((query, ids[:DEPTH], scores[:DEPTH].tolist()))

    def write(self, path: Path) -> list[Path]:
        """The files that were written: `path` itself, or those in it where there are several recipes."""
        written = []
        for name, rankings in self._found.items():
            words = re.sub(r"[^\w.+-]+", "_", name).strip("_")
            place = path / f"{words}.run" if len(self._found) > 1 else path
            place.parent.mkdir(parents=True, exist_ok=True)
            write_run(place, rankings, tag=words)
            written.append(place)
        return written
