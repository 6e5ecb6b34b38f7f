"""Every recipe of CiDeR can be read, and says how to train."""

import pytest

from resight import plugins, recipe
from resight.encode.backbones import cider
from resight.errors import RecipeError
from resight.train import losses
from resight.train.train_config import Settings, read_settings
from resight.types import Choice

NAMES = [name for name in recipe.shipped() if name.startswith("cider/")]
MEASURED_ALONE = ("cider/table_a19", "cider/table_a22")  # variants of an answer, not of a training
ALTERNATIVES = {
    "cider/table_7": 8,
    "cider/table_8": 4,
    "cider/table_9": 4,
    "cider/table_a14": 4,
    "cider/table_a15": 3,
    "cider/table_a16": 4,
    "cider/table_a17": 2,
    "cider/table_a18": 5,
    "cider/table_a19": 4,
    "cider/table_a20": 2,
    "cider/table_a21": 2,
    "cider/table_a22": 2,
    "cider/table_a23": 2,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_builds_its_settings_its_network_and_its_loss(name: str):
    made = recipe.load_all(name)
    assert len(made) == ALTERNATIVES.get(name, 1)
    designs = []
    for one in made:
        (branch,) = one.branches
        designs.append(
            (plugins.configure(cider.Config, branch.encoder.settings, "cider"), branch.transforms, one.train)
        )
        if name not in MEASURED_ALONE:
            settings = read_settings(one)
            assert losses.build(settings.loss.name, 3, 4, **settings.loss.settings)
    assert all(designs.count(design) == 1 for design in designs)  # alternatives that differ in something


@pytest.mark.parametrize(
    ("name", "epochs", "stages"),
    [
        ("sfm120k", 100, ("all",)),
        ("sfm120k_ft", 100, ("backbone", "head")),
        ("rgldv2_clean", 50, ("all",)),
        ("rgldv2_clean_ft", 50, ("backbone", "head")),
    ],
)
def test_the_figures_are_those_of_the_paper(name: str, epochs: int, stages: tuple[str, ...]):
    settings = read_settings(recipe.load(f"cider/{name}"))
    assert (settings.epochs, settings.stages) == (epochs, stages)
    assert (settings.batch, settings.rate, settings.momentum, settings.decay) == (128, 1e-3, 0.9, 1e-5)
    assert (settings.warmup, settings.optimizer, settings.sampling) == (3, "sgd", "group")
    assert settings.loss == Choice("arcface", {"margin": 0.3})


def test_tables_vary_what_they_are_about():
    warm = [read_settings(one).warmup for one in recipe.load_all("cider/table_a21")]
    sampling = [(read_settings(one).sampling, read_settings(one).size) for one in recipe.load_all("cider/table_a23")]
    masks = [one.branches[0].encoder.settings["masks"] for one in recipe.load_all("cider/table_9")]
    assert (warm, sampling, masks) == ([0, 3], [("fixed", 224), ("group", 512)], [1, 2, 3, 6])


def test_only_the_set_with_the_overlap_allows_it():
    allowing = [name for name in NAMES if read_settings_of(name).overlap == "allow"]
    assert allowing == ["cider/gldv2_clean", "cider/gldv2_clean_ft"]


def read_settings_of(name: str) -> Settings:
    return Settings() if name in MEASURED_ALONE else read_settings(recipe.load_all(name)[0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epoch": 3}, "no setting 'epoch'"),
        ({"epochs": 0}, "epochs = 0 is out of range"),
        ({"stages": ["tail"]}, r"stages\.0 does not fit"),
        ({"batch": 10, "accumulate": 4}, "batch, accumulate and together do not match"),
        ({"held_out": 2}, "held_out = 2.0 is out of range"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], words: str):
    with pytest.raises(RecipeError, match=words):
        plugins.configure(Settings, settings, "train")


def test_resolutions_are_compared_whitened_as_in_the_paper():
    """Table A19's last row is the whitened one of Table A22."""
    resolutions, whitening = ([one.branches[0].transforms for one in recipe.load_all(name)] for name in MEASURED_ALONE)
    assert all(transforms[-1].name == "whiten" for transforms in resolutions)
    last, whitened = resolutions[-1], whitening[-1]
    assert [choice.name for choice in last] == [choice.name for choice in whitened] == ["multiscale", "whiten"]
    assert last[0] == whitened[0] and last[1].settings["file"] == whitened[1].settings["file"]
    assert all(transforms[-1].settings["any_scale"] for transforms in resolutions)  # one file serves all rows
