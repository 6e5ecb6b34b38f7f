"""The light search for weights gives the answers of timm and transformers themselves."""

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from resight.encode import catalogue, named_networks
from resight.encode.networks import weight_files
from resight.errors import RecipeError
from resight.types import Choice

NETWORKS = [Choice(name) for name in named_networks.catalogue()]
CHANGED = [Choice("dinov2_vitb14_reg", {"size": 518}), Choice("convnext_large_laion2b", {"projection": True})]
CHECKPOINT = "resnet101-63fe2227.pth"  # of resnet101.tv_in1k, outside the hub


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without weights."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return tmp_path


def download(cache: Path, repository: str, name: str) -> Path:
    folder = cache / "hub" / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    path = folder / "snapshots" / "abc" / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    return path


def ask_both(choices: list[Choice]) -> tuple[list[catalogue.Entry], list[catalogue.Entry]]:
    return [catalogue.describe(choice) for choice in choices], [catalogue._describe(choice) for choice in choices]


@pytest.fixture
def libraries() -> None:
    pytest.importorskip("resight.encode.backbones.timm")
    pytest.importorskip("resight.encode.backbones.transformers")


@pytest.mark.usefixtures("libraries", "cache")
def test_without_weights_every_network_lacks_what_its_plugin_says():
    light, slow = ask_both([*NETWORKS, *CHANGED])
    assert light == slow
    assert not any(entry.ready for entry in light)
    gated = [entry for entry in light if entry.gated]
    assert gated and all("hf auth login" in entry.missing for entry in gated)


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_with_weights_in_the_cache_every_network_is_ready(cache: Path, name: str):
    import timm

    libraries = {"timm", "transformers"}
    known = named_networks.catalogue()
    plain = [one for one in NETWORKS if known[one.name].encoder.name in libraries and not known[one.name].own_weights]
    for choice in {str(named_networks.resolve(each).settings["model"]): each for each in plain}.values():
        network = named_networks.resolve(choice)
        model = str(network.settings["model"])
        download(cache, timm.get_pretrained_cfg(model).hf_hub_id if network.name == "timm" else model, name)
    light, slow = ask_both([*plain, *CHANGED])
    assert light == slow
    assert all(entry.ready for entry in light)


@pytest.mark.usefixtures("libraries")
def test_published_files_of_place_networks_count_where_torch_hub_puts_them(cache: Path):
    path = cache / "torch" / "hub" / "checkpoints" / "dino_salad.ckpt"
    path.parent.mkdir(parents=True)
    path.touch()
    download(cache, "gberton/MegaLoc", "model.safetensors")
    light, slow = ask_both([Choice("salad"), Choice("megaloc"), Choice("cosplace"), Choice("boq_resnet50")])
    assert light == slow
    assert [entry.ready for entry in light] == [True, True, False, False]


@pytest.mark.usefixtures("libraries")
def test_weights_in_the_cache_of_torch_count(cache: Path):
    path = cache / "torch" / "hub" / "checkpoints" / CHECKPOINT
    path.parent.mkdir(parents=True)
    path.touch()
    assert weight_files.has_timm_weights("resnet101.tv_in1k") is None  # timm knows whose file it is
    light, slow = ask_both([Choice("resnet101"), Choice("resnet50")])
    assert light == slow
    assert [entry.ready for entry in light] == [True, False]


def test_half_a_download_is_not_ready(cache: Path):
    model = "google/siglip-large-patch16-256"
    index = download(cache, model, "model.safetensors.index.json")
    index.write_text('{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}')
    (index.parent / "1.safetensors").touch()
    assert weight_files.has_weights("transformers", {"model": model}) is False
    (index.parent / "2.safetensors").touch()
    assert weight_files.has_weights("transformers", {"model": model}) is True


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "no_such_model"},
        {"model": "resnet101.tv_in1k", "size": 2},
        {"model": "resnet101.tv_in1k", "size": "large"},
        {"model": "resnet101.tv_in1k", "projection": 1},
        {"model": "resnet101.tv_in1k", "weights": "mine.pth"},
    ],
)
@pytest.mark.usefixtures("cache")
def test_what_only_the_plugin_knows_is_left_to_it(settings: dict[str, object]):
    assert weight_files.has_weights("timm", settings) is None


@pytest.mark.usefixtures("libraries", "cache")
def test_settings_that_do_not_fit_are_reported():
    entry = catalogue.describe(Choice("resnet101", {"size": 2}))
    assert not entry.ready and "size" in entry.missing


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a\0b"])
def test_an_index_of_shards_names_files_of_its_own_folder(tmp_path: Path, name: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": name}}))
    with pytest.raises(RecipeError, match="is named"):
        weight_files.list_shards(index)
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert weight_files.list_shards(index) == [tmp_path / "model-1.safetensors"]
