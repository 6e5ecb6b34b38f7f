"""Several region sources as one."""

from pathlib import Path

import numpy as np
import pytest
from support.builders import fill_picture
from support.region_networks import draw_detector

from resight.encode.descriptors import regions
from resight.encode.descriptors.regions.union import score_ranks
from resight.errors import RecipeError
from resight.types import Choice


def test_sources_take_turns(tmp_path: Path):
    path = draw_detector(tmp_path, [[0, 0, 16, 16], [32, 32, 64, 64]], [0.3, 0.9])
    sources = [{"name": "onnx_detector", "model": str(path)}, {"name": "grid", "level": 1}]
    picture = fill_picture(64, 64)
    union = regions.build("union", sources=sources)
    # The grid's last cell is the detector's second box.
    assert len(union.propose(picture).boxes) == 2 + 5 - 1
    best = regions.build("union", sources=sources, most=2).propose(picture)
    assert best.boxes.tolist() == [[32, 32, 64, 64], [0, 0, 64, 64]]
    assert union.finest == 4 and "grid(level=1" in union.fingerprint
    assert regions.build("union", sources=[Choice("grid", {"level": 0})]).finest == 1


def test_reciprocal_ranks_follow_the_scores():
    np.testing.assert_allclose(score_ranks(np.float32([0.2, 0.9, 0.9])), [1 / 3, 1, 1 / 2])


def test_nothing_to_join_is_refused():
    with pytest.raises(RecipeError, match="no region sources"):
        regions.build("union")
    with pytest.raises(RecipeError, match="no regions called 'nonsense'"):
        regions.build("union", sources=["nonsense"])
