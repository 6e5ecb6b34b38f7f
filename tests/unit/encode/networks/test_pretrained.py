"""Where weights come from: files in every wrapper and naming, folders, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import draw_texture, make_picture

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from resight.encode import backbones  # noqa: E402
from resight.encode.backbones.transformers import Config, find_weights  # noqa: E402
from resight.encode.networks import hub  # noqa: E402
from resight.encode.networks.architectures import Architecture, Preparation, describe  # noqa: E402
from resight.encode.networks.pretrained import load_module, make_module, quieten  # noqa: E402
from resight.encode.networks.torch_backbone import TorchBackbone  # noqa: E402
from resight.encode.networks.torchvision_compat import declare_missing  # noqa: E402
from resight.encode.networks.weight_files import PRETRAINED_FILES  # noqa: E402
from resight.encode.preprocess import Statistics, prepare  # noqa: E402
from resight.errors import MissingWeights, RecipeError  # noqa: E402
from resight.types import Features  # noqa: E402

declare_missing()
PICTURE = make_picture(draw_texture(np.random.default_rng(0), 120, 90), "x")
IMAGENET = Statistics((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
VIT = {"model_type": "vit", **SIZES, "patch_size": 16, "image_size": 64}


def save(module: Any, folder: Path) -> Path:
    with quieten():
        module.save_pretrained(folder)
    return folder


def make_vit(**changes: Any) -> Any:
    torch.manual_seed(7)
    return transformers.ViTModel(transformers.ViTConfig.from_dict({**VIT, **changes})).eval()


def write_config(folder: Path, values: dict[str, Any] = VIT) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values))
    return str(folder)


def build(**settings: Any) -> TorchBackbone:
    backbone = backbones.build("transformers", **settings)
    assert isinstance(backbone, TorchBackbone)
    return backbone


def encode(backbone: TorchBackbone) -> Features:
    (features,) = backbone.extract([PICTURE])
    return features


def read_saved(folder: Path) -> dict[str, Any]:
    return load_file(folder / "model.safetensors")


def same(one: Features, other: Features) -> bool:
    assert one.head is not None and other.head is not None
    return np.allclose(one.patches, other.patches, atol=1e-6) and np.allclose(one.head, other.head, atol=1e-6)


def test_a_saved_folder_gives_the_librarys_own_outputs(tmp_path: Path):
    module = make_vit()
    folder = save(module, tmp_path / "saved")
    features = encode(build(model=str(folder)))
    planes = prepare(PICTURE, 64, 64, "squash", IMAGENET, "bicubic")[0]
    with torch.inference_mode():
        expected = module(pixel_values=torch.from_numpy(planes))
    assert features.grid == (4, 4)
    assert np.allclose(features.patches, expected.last_hidden_state[:, 1:], atol=1e-5)
    assert np.allclose(features.head, expected.pooler_output, atol=1e-5)
    assert find_weights(Config(model=str(folder))) == folder / "model.safetensors"


def test_the_preprocessing_of_a_folder_is_read(tmp_path: Path):
    folder = save(make_vit(), tmp_path / "saved")
    shown = {
        "do_center_crop": True,
        "size": {"shortest_edge": 80},
        "crop_size": {"height": 64, "width": 64},
        "image_mean": [0.1, 0.2, 0.3],
        "image_std": [0.4, 0.5, 0.6],
        "resample": 2,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(shown))
    assert describe(str(folder)).preparation == Preparation(64, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), "bilinear", 0.8)


@pytest.mark.parametrize("prefix", ["", "vit.", "module.backbone.", "teacher.backbone.", "_orig_mod.encoder.model."])
@pytest.mark.parametrize("naming", ["saved", "present"])
def test_a_wrapped_checkpoint_loads_to_the_same_outputs(tmp_path: Path, prefix: str, naming: str):
    module = make_vit()
    folder = save(module, tmp_path / "saved")
    state = read_saved(folder) if naming == "saved" else module.state_dict()
    wrapped = {f"{prefix}{name}": tensor for name, tensor in state.items()}
    save_file(wrapped, tmp_path / "own.safetensors")
    torch.save({"epoch": 3, "teacher": wrapped}, tmp_path / "own.pth")
    expected = build(model=str(folder))
    for file in ("own.safetensors", "own.pth"):
        found = build(model=write_config(tmp_path / "bare"), weights=tmp_path / file)
        assert same(encode(found), encode(expected))
        assert found.fingerprint == expected.fingerprint


SMALLEST = {
    "dinov2": {**SIZES, "patch_size": 16, "image_size": 64, "use_swiglu_ffn": True},
    "dinov3_vit": {**SIZES, "patch_size": 16, "num_register_tokens": 2},
    "dinov3_convnext": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
}


@pytest.mark.parametrize("family", SMALLEST)
@pytest.mark.parametrize("prefix", ["", "module.backbone.", "model."])
def test_names_that_the_library_has_changed_load_under_both(tmp_path: Path, family: str, prefix: str):
    architecture = Architecture("smallest", family, SMALLEST[family], Preparation(64))
    module = make_module(architecture)
    for state in (read_saved(save(module, tmp_path / "saved")), module.state_dict()):
        save_file({f"{prefix}{name}": tensor for name, tensor in state.items()}, tmp_path / "own.safetensors")
        loaded = load_module(architecture, [tmp_path / "own.safetensors"]).state_dict()
        assert all(torch.equal(tensor, loaded[name]) for name, tensor in module.state_dict().items())


def test_of_two_copies_the_teacher_is_taken(tmp_path: Path):
    teacher, student = read_saved(save(make_vit(), tmp_path / "saved")), {}
    for name, tensor in teacher.items():
        student[name] = torch.zeros_like(tensor)
    both = {f"student.backbone.{name}": tensor for name, tensor in student.items()}
    both |= {f"teacher.backbone.{name}": tensor for name, tensor in teacher.items()}
    both["teacher.head.mlp.0.weight"] = torch.zeros(3, 3)
    torch.save(both, tmp_path / "own.pth")
    found = build(model=str(tmp_path / "saved"), weights=tmp_path / "own.pth")
    assert same(encode(found), encode(build(model=str(tmp_path / "saved"))))


def test_a_classifier_is_left_out_and_a_missing_pooler_makes_cls_the_head(tmp_path: Path):
    torch.manual_seed(7)
    classifier = transformers.ViTForImageClassification(transformers.ViTConfig.from_dict(VIT))
    features = encode(build(model=str(save(classifier, tmp_path / "saved"))))
    assert np.array_equal(features.head, features.cls)
    pooled = encode(build(model=str(save(make_vit(), tmp_path / "pooled"))))
    assert not np.array_equal(pooled.head, pooled.cls)


def test_positions_of_another_size_set_the_networks_own(tmp_path: Path):
    larger = save(make_vit(image_size=96), tmp_path / "larger")
    found = build(model=write_config(tmp_path / "bare"), weights=larger / "model.safetensors")
    expected = build(model=str(larger), size=64)
    assert same(encode(found), encode(expected))


def make_clip() -> Any:
    torch.manual_seed(7)
    vision = {**SIZES, "patch_size": 16, "image_size": 64}
    text = {**SIZES, "vocab_size": 20, "max_position_embeddings": 8}
    return transformers.CLIPModel(
        transformers.CLIPConfig(vision_config=vision, text_config=text, projection_dim=24)
    ).eval()


def test_a_whole_clip_gives_its_vision_half_and_its_projection(tmp_path: Path):
    module = make_clip()
    folder = str(save(module, tmp_path / "clip"))
    state = read_saved(tmp_path / "clip")
    state["vision_model.embeddings.position_ids"] = torch.arange(17)[None]  # as older versions saved them
    save_file(state, tmp_path / "own.safetensors")
    plain, projected = (
        build(model=folder, weights=tmp_path / "own.safetensors", projection=wanted) for wanted in (False, True)
    )
    assert np.allclose(encode(plain).patches, encode(projected).patches, atol=1e-6)
    given, pooled = encode(projected).head, encode(plain).head
    assert given is not None and pooled is not None and given.shape == (1, 24)
    expected = pooled @ module.visual_projection.weight.detach().numpy().T
    assert np.allclose(given, expected, atol=1e-5)


def test_a_whole_siglip_gives_its_vision_half(tmp_path: Path):
    torch.manual_seed(7)
    vision = {**SIZES, "patch_size": 16, "image_size": 64}
    text = {**SIZES, "vocab_size": 20, "max_position_embeddings": 8}
    module = transformers.SiglipModel(transformers.SiglipConfig(vision_config=vision, text_config=text)).eval()
    features = encode(build(model=str(save(module, tmp_path / "siglip"))))
    assert features.cls is None and features.head is not None and features.head.shape == (1, 32)


def test_masked_autoencoders_lose_their_decoder(tmp_path: Path):
    torch.manual_seed(7)
    config = transformers.ViTMAEConfig(
        **SIZES,
        patch_size=16,
        image_size=64,
        decoder_hidden_size=16,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=16,
    )
    features = encode(build(model=str(save(transformers.ViTMAEForPreTraining(config), tmp_path / "mae"))))
    assert features.patches.shape == (1, 16, 32)


@pytest.mark.parametrize(
    "model",
    [
        "facebook/deit-tiny-distilled-patch16-224",
        "facebook/dinov3-convnext-tiny-pretrain-lvd1689m",
        "microsoft/resnet-18",
    ],
)
def test_a_file_serves_a_model_of_the_table_without_the_hub(tmp_path: Path, model: str):
    save(make_module(describe(model)), tmp_path / "saved")
    found = build(model=model, weights=tmp_path / "saved" / "model.safetensors")
    expected = build(model=model, untrained=True)
    assert same(encode(found), encode(expected))
    assert found.fingerprint == expected.fingerprint


def test_shards_are_put_together(tmp_path: Path):
    module = make_vit()
    with quieten():
        module.save_pretrained(tmp_path / "saved", max_shard_size="20KB")
    save(module, tmp_path / "whole")
    assert len(list((tmp_path / "saved").glob("*.safetensors"))) > 1
    assert same(encode(build(model=str(tmp_path / "saved"))), encode(build(model=str(tmp_path / "whole"))))


def test_an_activation_changes_the_fingerprint(tmp_path: Path):
    folder = save(make_vit(), tmp_path / "saved")
    other = write_config(tmp_path / "other", {**VIT, "hidden_act": "quick_gelu"})
    names = {build(model=model, weights=folder / "model.safetensors").fingerprint for model in (str(folder), other)}
    assert len(names) == 2


def refuse(error: type[Exception] = RecipeError, **settings: Any) -> Any:
    with pytest.raises(error) as caught:
        build(**settings)
    return caught.value


def test_a_checkpoint_of_another_shape_is_refused_with_keys_and_shapes(tmp_path: Path):
    folder = save(make_vit(hidden_size=48, num_attention_heads=3), tmp_path / "saved")
    error = refuse(model=write_config(tmp_path / "bare"), weights=folder / "model.safetensors")
    assert "do not fit" in error.problem
    assert "embeddings.cls_token 1×1×32" in error.expected and "embeddings.cls_token 1×1×48" in error.actual


def test_missing_and_strange_keys_are_named(tmp_path: Path):
    state = read_saved(save(make_vit(), tmp_path / "saved"))
    state["something.else"] = state.pop("layernorm.weight")
    save_file(state, tmp_path / "own.safetensors")
    error = refuse(model=str(tmp_path / "saved"), weights=tmp_path / "own.safetensors")
    assert "missing layernorm.weight" in error.actual and "something.else 32" in error.actual


def test_a_deeper_checkpoint_is_not_cut_off(tmp_path: Path):
    folder = save(make_vit(num_hidden_layers=3), tmp_path / "saved")
    error = refuse(model=write_config(tmp_path / "bare"), weights=folder / "model.safetensors")
    assert "not in the network layers.2." in error.actual and "and 12 more" in error.actual


def test_a_projection_that_the_file_lacks_is_named(tmp_path: Path):
    state = read_saved(save(make_clip(), tmp_path / "clip"))
    del state["visual_projection.weight"]
    save_file(state, tmp_path / "own.safetensors")
    error = refuse(model=str(tmp_path / "clip"), weights=tmp_path / "own.safetensors", projection=True)
    assert "visual_projection.weight 24×32" in error.expected


def test_weights_in_the_naming_of_timm_are_sent_there(tmp_path: Path):
    state = {"blocks.0.attn.qkv.weight": torch.zeros(3, 1), "patch_embed.proj.weight": torch.zeros(1, 3, 2, 2)}
    torch.save({"teacher": {f"backbone.{name}": tensor for name, tensor in state.items()}}, tmp_path / "own.pth")
    error = refuse(model="facebook/dino-vits16", weights=tmp_path / "own.pth")
    assert "encoder timm" in error.fix and "vit_small_patch16_224.dino" in error.fix
    assert "embeddings.cls_token" in error.expected


def test_a_projection_is_refused_where_there_is_none():
    error = refuse(model="facebook/deit-tiny-patch16-224", untrained=True, projection=True)
    assert "clip" in error.expected


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path):
    assert "save_pretrained" in refuse(model=str(tmp_path)).expected


def test_a_folder_without_weights_is_refused(tmp_path: Path):
    error = refuse(model=write_config(tmp_path / "bare"))
    assert PRETRAINED_FILES[0] in error.expected and "config.json" in error.actual
    with pytest.raises(MissingWeights):
        find_weights(Config(model=str(tmp_path / "bare")))


def test_a_type_without_a_family_is_refused_with_those_that_work(tmp_path: Path):
    error = refuse(model=write_config(tmp_path / "bare", {"model_type": "swin"}))
    assert error.actual == "swin" and "dinov3_vit" in error.expected and "clip_vision_model" in error.expected


def test_a_configuration_that_makes_no_network_is_refused(tmp_path: Path):
    for values in ({**VIT, "hidden_act": "no such"}, {**VIT, "hidden_size": "wide"}, {**VIT, "num_attention_heads": 0}):
        error = refuse(model=write_config(tmp_path / "bare", values), untrained=True)
        assert "makes no sense" in error.problem
    (tmp_path / "bare" / "config.json").write_text("[]")
    assert "JSON object" in refuse(model=str(tmp_path / "bare")).expected


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere", "a/b/c"])
def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(model: str):
    assert model in refuse(model=model).actual


def test_without_a_hub_the_error_names_what_would_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "find_obstacle", lambda: "the hub cannot be reached")
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda _repository, _name: None)
    for model in ("facebook/dinov2-small", "someone/else"):
        error = refuse(MissingWeights, model=model)
        assert model in error.problem and "`weights`" in error.fix


def test_a_model_beyond_the_table_comes_whole_from_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    folder = save(make_vit(), tmp_path / "saved")

    def find(_repository: str, name: str) -> str | object:
        path = folder / name
        return str(path) if path.is_file() else object()

    monkeypatch.setattr(hub, "try_to_load_from_cache", find)
    assert same(encode(build(model="someone/else")), encode(build(model=str(folder))))


def test_weights_are_looked_for_without_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda _repository, _name: None)
    with pytest.raises(MissingWeights) as caught:
        find_weights(Config(model="facebook/dinov3-vits16-pretrain-lvd1689m"))
    assert "hf auth login" in caught.value.fix
    with pytest.raises(MissingWeights, match="no such file"):
        find_weights(Config(weights=tmp_path / "none.pth"))
    assert find_weights(Config(untrained=True)) is None
    here = str(tmp_path / "model.safetensors")
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda _repository, _name: here)
    assert find_weights(Config()) == Path(here)
