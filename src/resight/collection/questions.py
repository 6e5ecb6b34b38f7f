"""What a collection is asked with, where two ways to answer are compared: images, or a sample of its own.

In: a collection, one of its branches, and queries or how many of its images. Out: rows of that branch, each with the id
of the image where it is one of the collection, so that it can be left out of its own answer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from resight.collection import Collection
from resight.collection.adding import list_refs
from resight.data import images
from resight.errors import BoxError, ImageError
from resight.search.token_support import split
from resight.types import Descriptors, ImageRef, Skipped

Question = tuple[Descriptors, str | None]


def list_questions(
    collection: Collection, branch: int, queries: Sequence[str | Path], sample: int, seed: int
) -> Iterator[Question | Skipped]:
    """queries: images, folders or manifests; without any, `sample` images of the collection that have rows."""
    if queries:
        refs = (ref for source in queries for ref in list_refs(source))
        return (ref if isinstance(ref, Skipped) else _encode(collection, branch, ref, None) for ref in refs)
    ids = sorted(record.id for record in collection.records())
    chosen = [ids[row] for row in np.random.default_rng(seed).permutation(len(ids))[:sample]]
    if collection.recipe.branches[branch].regions is None:
        stored = split(collection.descriptors(branch, chosen))
        return ((image, image.ids[0]) for image in stored if len(image))
    # stored are the rows of the regions, and a query is whole
    return (_encode(collection, branch, record.ref, record.id) for record in collection.records(chosen))


def _encode(collection: Collection, branch: int, ref: ImageRef, own: str | None) -> Question | Skipped:
    try:
        return collection.encode_query(ref).descriptors[branch], own
    except (ImageError, BoxError) as error:
        return Skipped(str(ref.path), images.reason(error, ref.path))
