"""Networks by name."""

import pytest

from resight import plugins, recipe
from resight.encode import catalogue, named_networks
from resight.encode.named_networks import resolve, resolve_branch
from resight.errors import MissingWeights, RecipeError
from resight.types import Branch, Choice


def test_a_name_stands_for_a_plugin_and_its_settings():
    choice = resolve(Choice("dino_vits16"))
    assert choice.name in ("timm", "transformers")
    assert choice.settings["model"]


def test_settings_beside_the_name_are_put_in():
    plain, larger = resolve(Choice("dino_vits16")), resolve(Choice("dino_vits16", {"size": 448}))
    assert larger.settings == {**plain.settings, "size": 448}


def test_a_plugin_stays_what_it_is():
    choice = Choice("sift", {"features": 10})
    assert resolve(choice) == choice


def test_a_name_that_does_not_exist_brings_the_closest_one():
    with pytest.raises(RecipeError, match="dino_vits16"):
        resolve(Choice("dino_vitss16"))


def test_weights_that_nobody_gives_out_must_be_named():
    with pytest.raises(MissingWeights, match="needs a weights file"):
        resolve(Choice("marsdino_vits16"))
    assert resolve(Choice("marsdino_vits16", {"weights": "mars.pth"})).settings["weights"] == "mars.pth"
    assert resolve(Choice("marsdino_vits16", {"untrained": True})).settings["untrained"]


def test_the_parts_of_a_fused_encoder_are_resolved_too():
    part = {"encoder": "dino_vits16", "descriptor": "pooled"}
    branch = Branch(Choice("fused", {"parts": [part, part]}), Choice("pooled"))
    (first, _) = resolve_branch(branch).encoder.settings["parts"]
    assert first["encoder"] == {"name": "timm", "model": "vit_small_patch16_224.dino"}


def test_every_network_has_a_plugin_and_every_fact():
    for model in named_networks.catalogue().values():
        assert model.encoder.name in plugins.names(named_networks.BACKBONES)
        assert model.title and model.family and model.training and model.licence
        assert model.dimensions > 0 and model.tokens > 0 and model.parameters > 0


def test_every_network_with_a_published_vector_is_a_preset():
    published = [model.name for model in named_networks.catalogue().values() if model.encoder.name == "place"]
    assert sorted(published) == sorted(recipe.NETWORKS)
    (branch,) = recipe.load("megaloc", ["branches.0.encoder.weights=own.pth"]).branches
    assert branch.encoder == Choice("megaloc", {"weights": "own.pth"})
    assert branch.descriptor == Choice("pooled", {"pooling": "head"})


def test_no_network_is_called_like_a_plugin():
    assert not set(named_networks.catalogue()) & set(plugins.names(named_networks.BACKBONES))


def test_the_list_holds_plugins_and_networks_or_those_asked_for():
    names = [entry.name for entry in catalogue.list_encoders()]
    assert names == [*plugins.names(named_networks.BACKBONES), *named_networks.catalogue()]
    assert [entry.name for entry in catalogue.list_encoders(["dino_vits16", "sift"])] == ["dino_vits16", "sift"]


def test_a_network_without_weights_here_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (entry,) = catalogue.list_encoders(["marsdino_vits16"])
    assert not entry.ready and "weights" in entry.missing
    assert entry.weights == "a file of your own"
