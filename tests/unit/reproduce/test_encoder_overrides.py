import pytest

from resight.errors import RecipeError
from resight.reproduce.encoder_overrides import apply_override


def make_recipe() -> dict:
    return {
        "branches": [
            {"encoder": "dino_vits16", "descriptor": "tokens"},
            {"encoder": {"name": "marsdino_vits16", "size": 448}, "descriptor": "tokens"},
            {"encoder": {"name": "fused", "parts": [{"encoder": "marsdino_vits16", "descriptor": "pooled"}]}},
        ]
    }


def test_only_the_network_of_that_name_takes_the_setting():
    recipe = make_recipe()
    apply_override(recipe, "encoders.marsdino_vits16.weights=mars.pth")
    assert recipe["branches"][0]["encoder"] == "dino_vits16"
    assert recipe["branches"][1]["encoder"] == {"name": "marsdino_vits16", "size": 448, "weights": "mars.pth"}
    (part,) = recipe["branches"][2]["encoder"]["parts"]
    assert part["encoder"] == {"name": "marsdino_vits16", "weights": "mars.pth"}


def test_a_recipe_without_the_network_stays_as_it_is():
    recipe = {"branches": [{"encoder": "dino_vits16"}], "data": "craterbench"}
    apply_override(recipe, "encoders.marsdino_vits16.weights=mars.pth")
    assert recipe == {"branches": [{"encoder": "dino_vits16"}], "data": "craterbench"}
    apply_override(recipe, "branches.0.encoder.size=64")
    assert recipe["branches"][0]["encoder"] == {"name": "dino_vits16", "size": 64}


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("encoders.marsdino_vits17.weights=a", "marsdino_vits17"),
        ("encoders.marsdino_vits16=a", "cannot use"),
        ("encoders.marsdino_vits16.weights", "cannot use"),
    ],
)
def test_a_name_that_no_network_has_is_refused(override: str, problem: str):
    with pytest.raises(RecipeError, match=problem):
        apply_override(make_recipe(), override)
