"""The detector of AMES: weights and descriptors by hand and against torch."""

from pathlib import Path

import numpy as np
import pytest

from resight.encode import descriptors
from resight.errors import InputError, MissingFile, RecipeError
from resight.types import Features

PATCHES = np.array([[[3, 0], [0, 1], [0, 2], [1, 0]]], np.float32)


def make_features(patches: np.ndarray = PATCHES) -> Features:
    return Features(("a",), patches, np.array([[20, 20]], np.int32), grid=(2, len(patches[0]) // 2))


def test_without_a_detector_the_longest_patches_come_first():
    rows = descriptors.build("ames_local", query=3, database=2).describe(make_features(), "query")
    assert rows.vectors.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert rows.weights is not None and rows.weights.tolist() == [3, 2, 1]
    assert rows.boxes is not None and rows.boxes[1].tolist() == [0, 10, 10, 20]  # the third patch


def test_a_stored_image_has_fewer_than_a_query():
    rows = descriptors.build("ames_local", query=3, database=2).describe(make_features(), "database")
    assert len(rows) == 2
    assert len(descriptors.build("ames_local").describe(make_features(), "database")) == 4  # as many as there are


def test_the_detector_is_that_of_torch(tmp_path: Path):
    torch = pytest.importorskip("torch")
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        detector = nn.Module()
        detector.conv1, detector.bn, detector.conv2 = nn.Conv2d(5, 5, 1), nn.BatchNorm2d(5), nn.Conv2d(5, 1, 1)
        for tensor in (*detector.parameters(), detector.bn.running_mean):
            nn.init.normal_(tensor)
        nn.init.uniform_(detector.bn.running_var, 0.5, 2)
    detector.eval()
    torch.save({"state": detector.state_dict()}, tmp_path / "detector.pt")
    patches = np.random.default_rng(1).normal(size=(1, 12, 5)).astype(np.float32)
    rows = descriptors.build("ames_local", detector=tmp_path / "detector.pt").describe(make_features(patches), "query")
    with torch.no_grad():
        found = detector.bn(detector.conv1(torch.from_numpy(patches).permute(0, 2, 1)[..., None]))
        strength = nn.functional.softplus(detector.conv2(found.relu()))[0, 0, :, 0].numpy()
        unit = nn.functional.normalize(found, dim=1)[0, :, :, 0].T.numpy()
    order = np.argsort(-strength)
    assert rows.weights == pytest.approx(strength[order], rel=1e-4)
    assert rows.vectors == pytest.approx(unit[order], abs=1e-5)
    with pytest.raises(RecipeError, match="another backbone"):
        descriptors.build("ames_local", detector=tmp_path / "detector.pt").describe(make_features(), "query")


def test_files_that_are_no_detector(tmp_path: Path):
    torch = pytest.importorskip("torch")
    torch.save({"state": {"conv1.bias": torch.zeros(2)}}, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"bn\.weight"):
        descriptors.build("ames_local", detector=tmp_path / "other.pt")
    with pytest.raises(MissingFile, match="leave detector out"):
        descriptors.build("ames_local", detector=tmp_path / "absent.pt")
