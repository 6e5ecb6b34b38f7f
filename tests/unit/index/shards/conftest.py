"""Two shards on disk, of twenty images."""

from pathlib import Path

import pytest
from support.builders import global_rows

from resight import index

NAMES = [f"image {number}" for number in range(20)]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards on disk."""
    folder = tmp_path / "index"
    folder.mkdir()
    index.build("ray_shards", shards=2).create(
        lambda: iter([global_rows(NAMES, [[number, 1] for number in range(20)])]), folder
    )
    return folder
