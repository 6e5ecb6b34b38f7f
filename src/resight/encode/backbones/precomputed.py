"""Vectors or tokens that another program computes: a collection of them holds no encoder.

`Collection.add_vectors` stores them and `Collection.search_vectors` searches; pictures cannot be encoded. The name and
version of their encoder, and their dimensions, keep those of two encoders apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resight.encode.backbones import About
from resight.errors import InputError, RecipeError
from resight.types import Choice, Features, Picture

NAME = "precomputed"
ABOUT = About("your own", 0, "as given", "none: add_vectors stores them", "their own")
PROBES = ("blank", "noise")  # ids of the pictures by which resight learns what an encoder returns


@dataclass(frozen=True)
class Config:
    encoder: str = ""  # name of what computes them (required)
    version: str = ""  # its version
    dimensions: int = 0  # numbers per vector (required)
    tokens: bool = False  # several vectors per image


def build(config: Config) -> "GivenVectors":
    if not config.encoder or config.dimensions < 1:
        raise RecipeError(
            "vectors of your own need a name and dimensions",
            expected="the name of what computes them, and 1 dimension or more",
            actual=f"encoder = {config.encoder!r}, dimensions = {config.dimensions}",
            fix='e.g. resight.own_vectors("clip-vit-b32", dimensions=512)',
        )
    return GivenVectors(config)


def find_weights(config: Config) -> None:
    build(config)


def own_vectors(name: str, *, dimensions: int, version: str = "1", tokens: bool = False) -> Choice:
    """Declare vectors that another program computes, for `resight.open(path, encoder=…)`.

    Args:
        name: What computes them.
        dimensions: Numbers per vector.
        version: Must change whenever the vectors do.
        tokens: Whether an image has several vectors, which are compared by late interaction.

    Returns:
        The encoder of such a collection, which takes `add_vectors` and `search_vectors` in place of images.

    Examples:
        >>> import numpy as np
        >>> import resight
        >>> vectors = np.eye(3, dtype=np.float32)
        >>> works = resight.open("works.resight", encoder=resight.own_vectors("my encoder", dimensions=3))
        >>> works.add_vectors(["a", "b", "c"], vectors).added
        3
        >>> works.search_vectors(vectors[1], k=1)[0].id
        'b'
    """
    settings = {"encoder": name, "version": version, "dimensions": dimensions, "tokens": tokens}
    build(Config(**settings))  # type: ignore[arg-type]
    return Choice(NAME, settings)


class GivenVectors:
    max_side: int | None = 64
    batch = 1

    def __init__(self, config: Config) -> None:
        self.fingerprint = (
            f"precomputed({config.encoder}, version={config.version}, dimensions={config.dimensions}, "
            f"tokens={config.tokens})"
        )
        self._dimensions = config.dimensions

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:  # noqa: ARG002
        for picture in pictures:
            if picture.ref.id not in PROBES or picture.sha256:
                raise InputError(
                    "this collection holds vectors, and no encoder",
                    expected="vectors: collection.add_vectors(…), collection.search_vectors(…), or the id of an image",
                    actual=f"the image {picture.ref.id}",
                    fix="encode it with what made the vectors",
                )
            blank = np.zeros((1, 1, self._dimensions), np.float32)
            yield Features((picture.ref.id,), blank, np.array([picture.size], np.int32), (1, 1))
