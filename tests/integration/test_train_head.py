"""`train_head` end to end on made things: ground that is lit from many sides."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.running import run

from resight import recipe as recipes
from resight.collection import open_collection
from resight.data.maps.terrain import shade
from resight.encode import heads
from resight.errors import InputError
from resight.evaluate import judge
from resight.evaluate.statistics.tests import paired_interval, randomisation_test
from resight.train.fit_head import Settings
from resight.train.train_head import Report, train_head
from resight.types import Branch, Choice, Recipe

RECIPE = Recipe(
    "small",
    (
        Branch(
            Choice("efficientnet_lite", {"block": 8, "size": 64}),
            Choice("tokens", {"selection": "all"}),
            index=Choice("maxsim", {"kind": "fp32"}),
        ),
    ),
)
SETTINGS = Settings(steps=60, check=30, instances=24)


def make_ground(generator: np.random.Generator) -> np.ndarray:
    """Hills of several sizes, [64, 64]."""
    ground = np.zeros((64, 64), np.float32)
    for side, height in ((4, 20), (8, 10), (16, 5)):
        hills = height * generator.normal(size=(side, side)).astype(np.float32)
        ground += cv2.resize(hills, (64, 64), interpolation=cv2.INTER_CUBIC)
    return ground


def make_photos(folder: Path, things: int, lights: int = 4) -> Path:
    """One folder a thing; `lights` pictures of it, lit from north-west to north-east."""
    generator = np.random.default_rng(0)
    for thing in range(things):
        ground = make_ground(generator)
        (folder / f"thing{thing:02d}").mkdir(parents=True)
        for light in range(lights):
            picture = shade(ground, 10.0, 10.0, -60 + 120 * light / max(lights - 1, 1))
            cv2.imwrite(str(folder / f"thing{thing:02d}" / f"{light}.png"), np.uint8(255 * picture))
    return folder


def train(photos: Path, out: Path, **settings: object) -> Report:
    return train_head(
        photos,
        out,
        RECIPE,
        judge=judge,
        interval=paired_interval,
        chance=randomisation_test,
        settings=SETTINGS,
        choices=[Choice("linear", {"dimensions": 48})],
        **settings,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("photos"), 40)


def test_light_is_learnt_and_the_recipe_is_ready_to_use(photos: Path, tmp_path: Path) -> None:
    report = train(photos, tmp_path / "out")
    assert report.kept
    assert report.ap is not None
    assert report.ap.low > 0
    assert report.things == (24, 6, 10)
    head = heads.load(tmp_path / "out" / "head.safetensors")
    assert head.facts.gain == pytest.approx(report.ap.difference)
    opened = open_collection(tmp_path / "photos.resight", tmp_path / "out" / "recipe.toml")
    opened.add(photos)
    assert f"head({head.fingerprint})" in opened.metadata.spaces[0]
    assert opened.search(photos / "thing03" / "0.png", k=1)[0].id == "thing03/0.png"


def test_where_folders_mean_nothing_the_encoder_stays_frozen(photos: Path, tmp_path: Path) -> None:
    """Each folder holds four pictures of any things in any light, so that there is nothing to learn."""
    order = np.random.default_rng(1).permutation(sorted(photos.glob("*/*.png")))
    for number, path in enumerate(order):
        mixed = tmp_path / "photos" / f"{number // 4:02d}"
        mixed.mkdir(parents=True, exist_ok=True)
        (mixed / f"{number}.png").write_bytes(path.read_bytes())
    report = train(tmp_path / "photos", tmp_path / "out")
    assert not report.kept
    assert "the original encoder is kept" in report.verdict
    assert report.head is None
    assert not (tmp_path / "out" / "head.safetensors").exists()
    assert recipes.load(tmp_path / "out" / "recipe.toml") == RECIPE


def test_too_few_things_are_said_and_nothing_is_trained(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", 8, lights=2)
    (photos / "alone").mkdir()
    (photos / "alone" / "1.png").write_bytes((photos / "thing00" / "0.png").read_bytes())
    (photos / "thing01" / "broken.png").write_bytes(b"no picture")
    report = train(photos, tmp_path / "out")
    assert "Too few objects to learn from: 8" in report.verdict
    assert report.single == 1
    assert [Path(skipped.path).name for skipped in report.skipped] == ["broken.png"]
    assert recipes.load(tmp_path / "out" / "recipe.toml") == RECIPE
    assert json.loads((tmp_path / "out" / "report.json").read_text())["kept"] is False


def test_a_folder_without_two_images_of_anything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no object in .* has two images"):
        train(make_photos(tmp_path / "photos", 3, lights=1), tmp_path / "out")


def test_more_rows_than_memory_should_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resight.train.cached_features.MOST_BYTES", 1000)
    with pytest.raises(InputError, match="take too much memory for training"):
        train(make_photos(tmp_path / "photos", 2, lights=2), tmp_path / "out")
    assert not (tmp_path / "out" / "recipe.toml").exists()


def test_without_a_gain_the_command_names_nothing_to_use(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", 8, lights=2)
    ran = run("train", "--folder", photos, "--preset", "sift_vlad", "--out", tmp_path / "out", "--minutes", 0.01)
    assert ran.code == 0
    assert "the original encoder is kept" in ran.out and "use it with" not in ran.out
