"""Bytes of a recipe's database: as the descriptors give them, and what a search really reads.

In: an encoded data set, a recipe and its branches. Out: Sizes per image, and the facts of an Evaluation's row. An index
that answers from its own codes counts by these: `ivfpq` by its lists (centroids, words, codes and row numbers), the
offsets of the images and the rows that it stores for a second comparison; `maxsim` with keep = "none" by the codes of
its tokens, without the few bytes per image of offsets and error bounds. Every other branch counts by its stored rows:
vectors, visual words and key points. Boxes, ids and the files of the store are left out.
"""

from dataclasses import dataclass
from typing import Any

from resight.collection import Collection
from resight.evaluate.evaluation import BYTES, COMPRESSION, MEGABYTES, ROWS, Fact
from resight.evaluate.measure import EncodedDataset
from resight.types import Choice, Recipe

MEGABYTE = 1e6


@dataclass(frozen=True)
class Sizes:
    """Per image."""

    stored: float  # bytes of the rows as the descriptors give them
    kept: float  # bytes that a search reads
    rows: float  # vectors, tokens or local features


def measure_sizes(encoded: EncodedDataset, recipe: Recipe, own: frozenset[int]) -> Sizes:
    """The branches `own` of a recipe over the branches of the collection.

    A branch without weight counts if there are rerankers, which may read it; else it only trains the index of another.
    """
    images = max(len(encoded.collection), 1)
    stored = kept = rows = 0.0
    for position in sorted(own):
        branch = recipe.branches[position]
        if branch.weight == 0 and not recipe.rerankers:
            continue
        size, count = count_bytes(encoded.collection, position)
        choice = branch.index or recipe.index
        codes = _count_codes(encoded, recipe, position, choice, count) if branch.weight > 0 else None
        stored, kept, rows = stored + size, kept + (size if codes is None else codes), rows + count
    return Sizes(stored / images, kept / images, rows / images)


def list_facts(sizes: Sizes, images: int) -> dict[str, Fact]:
    """Facts of an evaluation's row over so many images."""
    megabytes = sizes.kept * images / MEGABYTE
    compression = sizes.stored / sizes.kept if sizes.kept else 1.0
    return {
        BYTES: Fact(sizes.kept, f"{sizes.kept:,.0f}"),
        ROWS: Fact(sizes.rows, f"{sizes.rows:.4g}"),
        MEGABYTES: Fact(megabytes, f"{megabytes:,.2f}"),
        COMPRESSION: Fact(compression, f"{compression:.2f}"),
    }


def count_bytes(collection: Collection, branch: int) -> tuple[int, int]:
    """Bytes of the stored rows of a branch, without the boxes of tokens; and the number of rows."""
    size = rows = 0
    for chunk in collection.descriptors(branch):
        rows += len(chunk)
        size += sum(array.nbytes for array in (chunk.vectors, chunk.words, chunk.points) if array is not None)
    return size, rows


def _count_codes(encoded: EncodedDataset, recipe: Recipe, branch: int, choice: Choice, rows: int) -> float | None:
    """Bytes of an index that answers from its own codes; None for one that reads the rows as they are stored."""
    coded = choice.name == "ivfpq" or (choice.name == "maxsim" and choice.settings.get("keep") == "none")
    if not coded:
        return None
    searcher: Any = encoded.view(recipe).searcher(branch, whole=True)
    return float(searcher.bytes_kept) if choice.name == "ivfpq" else rows * float(searcher.bytes_per_token)
