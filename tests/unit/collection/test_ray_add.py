"""How images are cut into blocks for the workers of a cluster, and that importing this needs no Ray."""

import subprocess
import sys
from pathlib import Path

import pytest

from resight.collection.change_detection import KnownImages
from resight.collection.ray_add import cut_blocks
from resight.types import ImageRef


class Stored:
    """The part of a store's state that is asked for here; nothing is read to cut blocks."""

    def __init__(self, *ids: str) -> None:
        self.stamps = {id: number for number, id in enumerate(ids)}


def make_refs(count: int) -> list[ImageRef]:
    return [ImageRef(f"{number}", Path(f"/{number}.jpg")) for number in range(count)]


@pytest.mark.parametrize(
    ("images", "workers", "sizes"),
    [
        (5000, 2, [256] * 19 + [136]),  # an eighth of a worker's share would be 312
        (2000, 2, [96] * 20 + [80]),  # 125, and of that the multiple of 32
        (70, 4, [32, 32, 6]),
        (0, 4, []),
    ],
)
def test_every_worker_gets_several_blocks_of_a_multiple_of_32(images: int, workers: int, sizes: list[int]) -> None:
    refs = make_refs(images)
    blocks = cut_blocks(refs, KnownImages(Stored()), workers)
    assert [len(block.refs) for block in blocks] == sizes
    assert [ref for block in blocks for ref in block.refs] == refs


def test_images_that_replace_stored_ones_have_blocks_of_their_own() -> None:
    blocks = cut_blocks(make_refs(4), KnownImages(Stored("1", "3")), 1)
    assert [(block.new, [ref.id for ref in block.refs]) for block in blocks] == [
        (True, ["0", "2"]),
        (False, ["1", "3"]),
    ]


def test_the_engine_is_imported_without_ray() -> None:
    program = "import sys, resight.collection.ray_add; sys.exit('ray' in sys.modules or 'lance' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
