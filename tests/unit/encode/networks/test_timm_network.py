"""Where a timm network's weights come from, and what is said when they do not."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import draw_texture, make_picture

torch = pytest.importorskip("torch")
plugin = pytest.importorskip("resight.encode.backbones.timm")
timm = pytest.importorskip("timm")

from huggingface_hub import constants  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from resight.encode import backbones  # noqa: E402
from resight.encode.networks import hub  # noqa: E402
from resight.errors import MissingWeights, RecipeError  # noqa: E402
from resight.types import Features, Picture  # noqa: E402

TINY = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache on a machine without a network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch"))
    monkeypatch.setattr(hub, "find_obstacle", lambda: "the hub cannot be reached: no network")
    return tmp_path


def test_weights_of_the_makers_are_read_from_the_cache_with_their_classifier_and_without_asking(cache: Path):
    model = create(TINY)
    path = put(cache, f"timm/{TINY}", model.state_dict())
    assert plugin.find_weights(plugin.Config(model=TINY)) == path
    built = backbones.build("timm", model=TINY, size=96)
    own = backbones.build("timm", model=TINY, size=96, weights=path)
    assert built.fingerprint == own.fingerprint
    np.testing.assert_array_equal(show(built).patches, show(own).patches)


def test_weights_of_the_makers_must_fit_to_the_last_key(cache: Path):
    state = dict(create(TINY).state_dict())
    del state["blocks.3.norm1.weight"]
    path = put(cache, f"timm/{TINY}", state)
    with pytest.raises(MissingWeights, match=r"blocks\.3\.norm1\.weight"):
        backbones.build("timm", model=TINY)
    path.write_bytes(b"half a download")
    with pytest.raises(MissingWeights, match="delete that file"):
        backbones.build("timm", model=TINY)


def test_weights_that_timm_keeps_outside_the_hub_are_found_too(cache: Path):
    name = "gcvit_xxtiny.in1k"
    with pytest.raises(MissingWeights):
        plugin.find_weights(plugin.Config(model=name))
    path = cache / "torch" / "checkpoints" / "gcvit_xxtiny_224_nvidia-d1d86009.pth"
    path.parent.mkdir(parents=True)
    path.touch()
    assert plugin.find_weights(plugin.Config(model=name)) == path


def test_without_network_or_cache_the_weights_are_missing_and_the_error_names_ways_out(cache: Path):
    for name in ("vit_small_patch14_dinov2.lvd142m", "gcvit_xxtiny.in1k"):
        with pytest.raises(MissingWeights, match="no network") as caught:
            backbones.build("timm", model=name)
        assert "`weights`" in caught.value.fix
        with pytest.raises(MissingWeights, match="not on this machine"):
            plugin.find_weights(plugin.Config(model=name))
    assert not list(cache.glob("torch/**/*.pth"))


def test_an_architecture_that_nobody_trained_is_refused():
    untrained = next(name for name in timm.list_models() if not timm.list_pretrained(f"{name}.*"))
    with pytest.raises(MissingWeights, match=f"timm has no weights for {untrained}"):
        backbones.build("timm", model=untrained)


def test_a_path_that_is_not_there_is_missing(tmp_path: Path):
    with pytest.raises(MissingWeights, match="no file"):
        plugin.find_weights(plugin.Config(weights=tmp_path / "absent.pth"))
    assert plugin.find_weights(plugin.Config(untrained=True)) is None


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("vit_smal_patch16_224", "vit_small_patch16_224"),
        ("vit_small_patch16_224.dinno", "vit_small_patch16_224.dino"),
        ("ResNet18", "resnet18"),
        ("", "a name that timm"),
        ("hf-hub:timm/resnet18", "resnet18"),
        ("../../etc/passwd", "a name that timm"),
    ],
)
def test_an_unknown_name_is_answered_with_the_closest(name: str, close: str):
    with pytest.raises(RecipeError, match="timm has no model") as caught:
        backbones.build("timm", model=name, untrained=True)
    assert close in caught.value.expected
    with pytest.raises(RecipeError, match="timm has no model"):
        plugin.find_weights(plugin.Config(model=name))


@pytest.mark.parametrize("wrap", ["full", "backbone"])
def test_a_checkpoint_of_dino_training_loads(wrap: str, tmp_path: Path):
    """As MarsDINO and others are saved: student and teacher, with the head of self-distillation."""
    name = "vit_small_patch16_224.dino"
    state = {key: tensor + 0.01 for key, tensor in create(name).state_dict().items()}
    heads = {"head.mlp.0.weight": torch.zeros(4, 4), "head.last_layer.weight_v": torch.zeros(4, 4)}
    teacher = {f"backbone.{key}": tensor for key, tensor in state.items()} | heads
    student = {f"module.{key}": torch.zeros_like(tensor) for key, tensor in teacher.items()}
    path = tmp_path / "own.pth"
    torch.save({"student": student, "teacher": teacher, "epoch": 3} if wrap == "full" else teacher, path)
    plain = tmp_path / "plain.safetensors"
    save_file(state, plain)
    prints = {backbones.build("timm", model=name, weights=own).fingerprint for own in (path, plain)}
    assert len(prints) == 1


def test_a_position_embedding_of_another_grid_is_resampled_by_timm(tmp_path: Path):
    small = create(TINY, img_size=96)
    path = tmp_path / "own.pth"
    torch.save({"state_dict": small.state_dict()}, path)
    network = plugin.timm_network.load_model(TINY, plugin.Config(weights=path))
    expected = timm.layers.resample_abs_pos_embed(small.pos_embed, [14, 14], [6, 6], num_prefix_tokens=1)
    torch.testing.assert_close(network.pos_embed, expected)


@pytest.mark.parametrize("name", [TINY, "resnet10t.c3_in1k"])
def test_a_classifier_of_other_classes_does_not_matter(name: str, tmp_path: Path):
    path = tmp_path / "own.safetensors"
    save_file(create(name, num_classes=7).state_dict(), path)
    assert show(backbones.build("timm", model=name, weights=path, size=96)).head is not None


def test_a_projection_has_to_come_with_the_checkpoint(tmp_path: Path):
    name = "vit_pe_core_tiny_patch16_384.fb"
    state = {key: tensor for key, tensor in create(name).state_dict().items() if not key.startswith("head.")}
    path = tmp_path / "own.safetensors"
    save_file(state, path)
    backbones.build("timm", model=name, weights=path)
    with pytest.raises(RecipeError, match=r"head\.weight 512×192"):
        backbones.build("timm", model=name, weights=path, projection=True)


def test_a_wrong_checkpoint_is_refused_with_keys_and_shapes(tmp_path: Path):
    path = tmp_path / "own.pth"
    torch.save(create("vit_small_patch8_224.dino").state_dict(), path)
    with pytest.raises(RecipeError) as caught:
        backbones.build("timm", model="vit_small_patch16_224.dino", weights=path)
    assert "patch_embed.proj.weight 384×3×16×16" in caught.value.expected
    assert "of another shape patch_embed.proj.weight 384×3×8×8" in caught.value.actual
    with pytest.raises(RecipeError, match=r"not in the network .*cls_token"):
        backbones.build("timm", model="resnet10t", weights=path)


@pytest.mark.parametrize(
    "key",
    [
        "encoder.layer.0.attention.attention.query.weight",
        "vision_model.encoder.layers.0.self_attn.q_proj.weight",
        "layer.0.attention.q_proj.weight",
    ],
)
def test_a_checkpoint_in_the_naming_of_transformers_is_sent_there(key: str, tmp_path: Path):
    path = tmp_path / "own.safetensors"
    save_file({key: torch.zeros(2), "embeddings.cls_token": torch.zeros(2)}, path)
    with pytest.raises(RecipeError) as caught:
        backbones.build("timm", model=TINY, weights=path)
    assert "use the encoder 'transformers'" in caught.value.fix


def test_several_threads_get_the_attention_of_their_own_picture():
    backbone = backbones.build("timm", model=TINY, untrained=True, size=96)
    pictures = [draw(seed) for seed in range(6)]
    alone = [next(iter(backbone.extract([picture]))) for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda picture: next(iter(backbone.extract([picture]))), pictures * 4))
    for number, answer in enumerate(together):
        np.testing.assert_allclose(answer.attention, alone[number % 6].attention, atol=1e-6)
        np.testing.assert_allclose(answer.patches, alone[number % 6].patches, atol=1e-5)


def create(name: str, **extras: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return timm.create_model(name, **extras).eval().requires_grad_(False)


def put(cache: Path, repository: str, state: Any) -> Path:
    """A file in the cache, laid out as the hub's library does."""
    folder = cache / "hub" / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    path = folder / "snapshots" / "abc" / "model.safetensors"
    path.parent.mkdir(parents=True)
    save_file(state, path)
    return path


def draw(seed: int) -> Picture:
    return make_picture(draw_texture(np.random.default_rng(seed), 160, 120))


def show(backbone: Any) -> Features:
    (features,) = backbone.extract([draw(0)])
    assert isinstance(features, Features)
    return features
