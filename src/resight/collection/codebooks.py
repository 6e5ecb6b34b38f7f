"""Code books from one's own images: a random sample of local features of every image, then k-means."""

from collections.abc import Sequence

import numpy as np

from resight.collection.adding import Progress, Source, list_refs
from resight.data import images
from resight.encode import backbones
from resight.encode.codebook import Codebook, learn
from resight.errors import ImageError, InputError
from resight.types import FloatArray, Skipped


def learn_codebook(
    sources: Sequence[Source], words: int, encoder: str, features: int, seed: int, progress: Progress | None = None
) -> Codebook:
    """`features` bounds the memory: each image gives its share of them, drawn at random."""
    total = sum(1 for source in sources for _ in list_refs(source))
    if total == 0:
        raise InputError("no images to learn from", expected="a folder with images", fix="check the path")
    share = max(features // total, 1)
    generator = np.random.default_rng(seed)
    backbone = backbones.build(encoder)
    parts: list[FloatArray] = []
    done = 0
    for source in sources:
        for ref in list_refs(source):
            done += 1
            if progress:
                progress(done, total)
            if isinstance(ref, Skipped):
                continue
            try:
                picture = images.read(ref, max_side=backbone.max_side)
            except ImageError:
                continue  # `resight index` lists what cannot be read
            for batch in backbone.extract([picture]):
                rows = batch.patches.reshape(-1, batch.patches.shape[2])
                parts.append(rows[generator.permutation(len(rows))[:share]])
    if not parts:
        raise InputError("no image could be read", expected="images", actual=f"{total} files", fix="check the path")
    return learn(np.concatenate(parts), words, seed)
