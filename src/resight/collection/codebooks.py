"""Code books from one's own images: a random sample of local features of every image, then k-means."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.collection.adding import Progress, Source, list_refs
from resight.crops import crop
from resight.data import images
from resight.encode import backbones
from resight.encode.backbones import Backbone
from resight.encode.codebook import Codebook, learn
from resight.encode.extract import run_ahead
from resight.encode.vocabulary.settings import take_rows
from resight.errors import BoxError, ImageError, InputError
from resight.types import ImageRef, Picture

Rows = NDArray[Any]


def learn_codebook(
    sources: Sequence[Source], words: int, encoder: str, features: int, seed: int, progress: Progress | None = None
) -> Codebook:
    """`features` bounds the memory: each image gives its share of them, drawn at random."""
    return learn(sample_features(sources, backbones.build(encoder), features, seed, progress=progress), words, seed)


def sample_features(
    sources: Sequence[Source],
    backbone: Backbone,
    most: int,
    seed: int,
    *,
    normalise: bool = False,
    progress: Progress | None = None,
) -> Rows:
    """At most about `most` local features [n, D] of all images, which share them out; the same ones each time."""
    total = sum(1 for source in sources for _ in list_refs(source))
    if total == 0:
        raise InputError("no images to learn from", expected="a folder with images", fix="check the path")
    share = max(most // total, 1)

    def take(item: tuple[int, ImageRef]) -> Rows | None:
        number, ref = item
        try:
            picture = _read(ref, backbone.max_side)
        except (ImageError, BoxError):
            return None  # whoever indexes the images lists what cannot be read
        (features,) = backbone.extract([picture])
        rows = take_rows(features, 0, normalise)
        return rows[np.random.default_rng([seed, number]).permutation(len(rows))[:share]]

    workers = os.cpu_count() or 1
    parts: list[Rows] = []
    with ThreadPoolExecutor(workers, thread_name_prefix="sample") as pool:
        for done, rows in enumerate(run_ahead(_number(sources), take, pool, 2 * workers), start=1):
            parts += [] if rows is None else [rows]
            if progress:
                progress(done, total)
    if not parts:
        raise InputError("no image could be read", expected="images", actual=f"{total} files", fix="check the path")
    return np.concatenate(parts)


def _number(sources: Sequence[Source]) -> Iterator[tuple[int, ImageRef]]:
    refs = (ref for source in sources for ref in list_refs(source) if isinstance(ref, ImageRef))
    yield from enumerate(refs)


def _read(ref: ImageRef, max_side: int | None) -> Picture:
    if ref.box is None:
        return images.read(ref, max_side=max_side)
    return crop(images.read(ref), ref.box)
