"""What a CiDeR network localises is cut out, found and shown: from its file to the evidence of an answer."""

from pathlib import Path

import numpy as np
import pytest
from support.scenes import box_around, draw_scene, hang, write_jpeg

torch = pytest.importorskip("torch")
cider = pytest.importorskip("resight.encode.backbones.cider")

import resight  # noqa: E402
from resight.encode.networks.design_header import save_network  # noqa: E402
from resight.types import Box  # noqa: E402

QUAD = ((440, 20), (620, 14), (624, 146), (436, 140))
RECIPE = """
[[branches]]
encoder = { name = "cider", weights = "FILE", size = 128 }
descriptor = { name = "pooled", pooling = "head" }
regions = { name = "cider", encoder = { name = "cider", weights = "FILE", size = 128 } }
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that looks at whatever makes its first layer answer: edges."""
    design = {"backbone": "resnet18", "block": 0, "enhancement": "none", "context": "none", "dimensions": 64}
    network = cider.make_network(cider.Config(**design))
    with torch.no_grad():
        network.localisation.look.weight.fill_(0.1)
    path = tmp_path_factory.mktemp("network") / "trained.safetensors"
    save_network(network, network.design, "cider", path)
    return path


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    wall = np.full((480, 640, 3), (124, 116, 104), np.uint8)  # the mean of ImageNet: 0 to the network
    for number in range(4):
        write_jpeg(folder / f"wall_{number}.jpg", hang(draw_scene(number), wall, QUAD))
    return folder


def test_answers_show_the_region_that_the_network_found_and_heat_maps(weights: Path, photos: Path, tmp_path: Path):
    (tmp_path / "recipe.toml").write_text(RECIPE.replace("FILE", str(weights)))
    collection = resight.open(tmp_path / "photos.resight", tmp_path / "recipe.toml")
    collection.add(photos)
    answer = collection.ask(write_jpeg(tmp_path / "query.jpg", draw_scene(2)), k=4)
    found = [answer.explain(hit) for hit in answer.hits]
    assert len(found) == 4
    for evidence in found:
        assert evidence.region is not None and lies_in(evidence.region, box_around(QUAD))
        assert evidence.heat is not None and evidence.query_heat is not None


def lies_in(box: Box, outer: Box, slack: float = 20) -> bool:
    """`slack` pixels: a cell of the map is 2 × 2 pixels of the input, 10 × 8 of the photo, and its edge is blurred."""
    return all(box[side] >= outer[side] - slack and box[side + 2] <= outer[side + 2] + slack for side in (0, 1))
