"""Checkpoints in the authors' layouts: files written here under their names, by rules of our own, are read back."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
landmark = pytest.importorskip("resight.encode.backbones.landmark")

from resight.errors import RecipeError  # noqa: E402

SMALL = {"backbone": "resnet18", "dimensions": 24, "width": 16}


def make(design, **settings):
    return landmark.make_network(landmark.Config(**{**SMALL, "design": design, **settings}))


def name_as_authors(design, name):
    """Our name of a tensor → the authors', one step after the other, as their code names its modules."""
    steps = {
        "gem": [
            (r"trunk\.model\.conv1", "backbone.0"),
            (r"trunk\.model\.bn1", "backbone.1"),
            (r"trunk\.model\.layer(\d)", lambda found: f"backbone.{int(found[1]) + 3}"),
            (r"head\.embed\.project", "fc"),
            (r"head\.embed\.norm", "bn"),
        ],
        "solar": [
            (r"trunk\.model\.conv1", "features.conv1.0"),
            (r"trunk\.model\.bn1", "features.conv1.1"),
            (r"trunk\.model\.layer1", "features.conv2_x.2"),
            (r"trunk\.model\.layer(\d)", lambda found: f"features.conv{int(found[1]) + 1}_x"),
            (r"head\.attention(\d)\.query", r"features.soa\1.f"),
            (r"head\.attention(\d)\.key", r"features.soa\1.g"),
            (r"head\.attention(\d)\.value", r"features.soa\1.h"),
            (r"head\.attention(\d)\.back", r"features.soa\1.v"),
            (r"head\.(pool|whiten)", r"\1"),
        ],
        "dolg": [
            (r"trunk\.model\.conv1", "globalmodel.stem.conv"),
            (r"trunk\.model\.bn1", "globalmodel.stem.bn"),
            (r"trunk\.model\.layer(\d)\.(\d+)", lambda found: f"globalmodel.s{found[1]}.b{int(found[2]) + 1}"),
            (r"downsample\.0", "proj"),
            (r"downsample\.1", "bn"),
            (r"(globalmodel\.s\d\.b\d+)\.conv(\d)", lambda found: f"{found[1]}.f.{'-abc'[int(found[2])]}"),
            (r"(globalmodel\.s\d\.b\d+)\.bn(\d)", lambda found: f"{found[1]}.f.{'-abc'[int(found[2])]}_bn"),
            (r"head\.local\.context\.whole", "localmodel.aspp.im_pool.1"),
            (r"head\.local\.context\.point", "localmodel.aspp.aspp.0"),
            (r"head\.local\.context\.dilated\.(\d)", lambda found: f"localmodel.aspp.aspp.{int(found[1]) + 1}"),
            (r"head\.local\.context\.join", "localmodel.aspp.conv_after.0"),
            (r"head\.local\.reduce", "localmodel.conv1"),
            (r"head\.local\.norm", "localmodel.bn"),
            (r"head\.local\.score", "localmodel.conv2"),
            (r"head\.pool", "pool_g"),
            (r"head\.reduce", "fc_t"),
            (r"head\.project", "fc"),
        ],
        "token": [
            (r"trunk\.model\.conv1", "backbone.block1.0"),
            (r"trunk\.model\.bn1", "backbone.block1.1"),
            (r"trunk\.model\.layer(\d)", lambda found: f"backbone.block{int(found[1]) + 1}"),
            (r"head\.reduce", "tr.conv"),
            (r"head\.tokenize\.patterns", "tr.query"),
            (r"head\.tokenize\.mix", "tr.token_norm.0"),
            (r"head\.tokenize\.norm", "tr.token_norm.1"),
            (r"head\.relate\.attend", "tr.encoder.0.attn"),
            (r"head\.relate\.norm", "tr.encoder.0.bn"),
            (r"head\.relate\.mix", "tr.encoder.0.mlp"),
            (r"head\.refine", "tr.decoder"),
            (r"attend_cells", "cross_attn"),
            (r"attend_tokens", "self_attn"),
            (r"norm_cells", "bn1"),
            (r"norm_tokens", "bn2"),
            (r"mix\.0", "mlp.fc1"),
            (r"mix\.3", "mlp.fc2"),
            (r"(\w*attn)\.query", r"\1.q"),
            (r"(\w*attn)\.key", r"\1.k"),
            (r"(\w*attn)\.value", r"\1.v"),
            (r"(\w*attn)\.back", r"\1.proj"),
            (r"head\.embed\.project", "tr.proj.0"),
            (r"head\.embed\.norm", "tr.proj.1"),
        ],
    }
    for pattern, new in steps[design]:
        name = re.sub(rf"(?<!\w){pattern}(?!\d)", new, name)
    return name


def draw_state(network):
    generator = torch.Generator().manual_seed(7)
    return {
        name: torch.rand(value.shape, generator=generator) if value.is_floating_point() else value
        for name, value in network.state_dict().items()
    }


def write_as_authors(design, state, path):
    renamed = {f"module.{name_as_authors(design, name)}": value for name, value in state.items()}
    assert not [name for name in renamed if "trunk" in name or "head" in name]
    extras = {
        "gem": {"module.final.weight": torch.rand(3, 24)},
        "solar": {"module.features.soa4.gamma": torch.zeros(1), "module.features.soa5.gamma": torch.zeros(1)},
        "dolg": {"module.desc_cls.weight": torch.rand(3, 24), "module.desc_cls.t": torch.zeros(1)},
        "token": {"module.classifier.weight": torch.rand(3, 24)},
    }[design]
    for name in ("module.pool.p", "module.pool_g.p"):
        if name in renamed:
            renamed[name] = renamed[name].reshape(1)
    if design == "token":
        renamed["module.tr.query"] = renamed["module.tr.query"][None]
    if design == "dolg":
        renamed["module.globalmodel.stem.conv.weight"] = renamed["module.globalmodel.stem.conv.weight"].flip(1)
    wrapper = "model_state" if design == "dolg" else "state_dict"
    torch.save({wrapper: {**renamed, **extras}, "epoch": 3}, path)


@pytest.mark.parametrize("design", ["gem", "solar", "dolg", "token"])
def test_a_file_of_the_authors_layout_fills_every_tensor(design, tmp_path):
    state = draw_state(make(design))
    write_as_authors(design, state, tmp_path / "published.pth")
    loaded = make(design, weights=tmp_path / "published.pth").state_dict()
    for name, value in loaded.items():
        if value.is_floating_point():
            np.testing.assert_array_equal(value, state[name], err_msg=name)


def test_a_file_of_other_sizes_names_what_does_not_fit(tmp_path):
    write_as_authors("dolg", draw_state(make("dolg")), tmp_path / "published.pth")
    with pytest.raises(RecipeError, match="do not fit") as refused:
        make("dolg", weights=tmp_path / "published.pth", atrous=False, dimensions=32)
    assert "head.project.weight 24×512" in refused.value.actual and "context" in refused.value.actual
    assert "atrous" in refused.value.fix


def test_a_file_of_another_network_is_refused(tmp_path):
    write_as_authors("gem", draw_state(make("gem")), tmp_path / "published.pth")
    with pytest.raises(RecipeError, match="do not fit"):
        make("solar", weights=tmp_path / "published.pth")
    with pytest.raises(RecipeError, match="do not fit"):
        make("glam", weights=tmp_path / "published.pth")
