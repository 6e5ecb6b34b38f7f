"""Makes the generic code books that come with the package.

From the photographs in two Python packages, mvtb-data and scikit-image (both permissively licensed),
without the views that `resight demo` holds out as queries:

    python benchmarks/make_codebooks.py

Writes src/resight/encode/descriptors/{vlad_256,asmk_4096}.npz: k-means centres, no pixel of any photo.
"""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np

from resight.data import image_files
from resight.data.folder_walk import walk
from resight.encode import codebook
from resight.encode.backbones import sift
from resight.errors import ImageError
from resight.types import FloatArray, ImageRef, Skipped

BOOKS = {"vlad_256": 256, "asmk_4096": 4096}
SMALLEST = 200  # pixels; below are icons and drawings
SEED = 1


def main() -> None:
    folders = [
        Path(str(resources.files("mvtbdata") / "images")),
        Path(str(resources.files("skimage") / "data")),
    ]
    vectors = np.concatenate(list(describe(folders)))
    print(f"{len(vectors):,} local features")
    for name, words in BOOKS.items():
        path = codebook.SHIPPED / f"{name}.npz"
        book = codebook.learn(vectors, words, seed=SEED)
        codebook.save(book, path)
        print(f"{path}: {words} words, {path.stat().st_size / 1024:.0f} KiB, fingerprint {book.fingerprint}")


def describe(folders: list[Path]) -> Iterator[FloatArray]:
    backbone = sift.build(sift.Config())
    for folder in folders:
        for ref in walk(folder):
            if isinstance(ref, Skipped) or "holdout" in ref.id:
                continue
            yield from describe_one(ref, backbone)


def describe_one(ref: ImageRef, backbone: sift.Sift) -> Iterator[FloatArray]:
    try:
        picture = image_files.read(ref, max_side=backbone.max_side)
    except ImageError as error:
        print(f"left out: {error.problem}")
        return
    if min(picture.size) >= SMALLEST:
        for features in backbone.extract([picture]):
            yield features.patches[0]


if __name__ == "__main__":
    main()
