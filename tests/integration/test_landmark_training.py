"""The comparison networks learn by the trainer of CiDeR, from images on disk to a file that the encoder reads."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
landmark = pytest.importorskip("resight.encode.backbones.landmark")

from support.tiny_training import write_classes  # noqa: E402

from resight import recipe  # noqa: E402
from resight.errors import RecipeError  # noqa: E402
from resight.train.train_network import make_network, train_recipe  # noqa: E402

RECIPE = """
name = "tiny"
data = { name = "folder", labels = true }

[[branches]]
encoder = { name = "landmark", design = "DESIGN", backbone = "test_resnet", dimensions = 16, width = 16, size = 64 }
descriptor = { name = "pooled", pooling = "head" }

[train]
name = "network"
epochs = 4
batch = 8
rate = 0.003
optimizer = "adamw"
warmup = 0
size = 64
held_out = 0
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classes(tmp_path_factory.mktemp("photos"), classes=4, each=4, shape=(64, 64))


def read(design: str, folder: Path, more: str = ""):
    (folder / "recipe.toml").write_text(RECIPE.replace("DESIGN", design) + more, encoding="utf-8")
    return recipe.load(folder / "recipe.toml")


def refuse_to_judge(*_: object):
    raise AssertionError("no class is held out")


@pytest.mark.parametrize("design", ["gem", "solar", "glam", "dolg", "token"])
def test_it_learns_and_its_file_gives_the_same_network(design: str, photos: Path, tmp_path: Path):
    chosen = read(design, tmp_path)
    trained = train_recipe(chosen, photos, tmp_path / "out", refuse_to_judge)
    lines = [json.loads(line) for line in (tmp_path / "out" / "all" / "curves.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert len(losses) == 8 and losses[-1] < losses[0]
    before = make_network(chosen).state_dict()
    after = landmark.make_network(landmark.Config(weights=trained.network))
    assert after.design == make_network(chosen).design
    assert all(not torch.equal(before[name], value) for name, value in after.named_parameters() if "weight" in name)
    assert torch.isfinite(after.eval()(torch.zeros(1, 3, 64, 64))).all()


def test_stages_of_cider_are_refused(photos: Path, tmp_path: Path):
    with pytest.raises(RecipeError, match="needs a network with parts"):
        train_recipe(read("solar", tmp_path, 'stages = ["head"]'), photos, tmp_path / "out", refuse_to_judge)
