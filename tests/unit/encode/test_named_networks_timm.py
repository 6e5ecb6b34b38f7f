"""What models.toml says of timm's networks, against timm: built without memory, on torch's meta device."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("resight.encode.backbones.timm")
timm = pytest.importorskip("timm")

from resight.encode.named_networks import Model, catalogue  # noqa: E402
from resight.encode.networks.timm_network import check_name, check_projection  # noqa: E402

ENTRIES = [model for model in catalogue().values() if model.encoder.name == "timm"]


def test_the_networks_of_the_papers_are_there():
    assert len(ENTRIES) == 42
    assert {"resnet50", "vgg16", "dinov2_vitg14_reg", "pe_g14_448", "marsdino_vits16"} <= {one.name for one in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_dimensions_tokens_parameters_and_licence_are_true(entry: Model):
    name = str(entry.encoder.settings["model"])
    check_name(name)
    size = entry.encoder.settings.get("size")
    with torch.device("meta"):
        model = timm.create_model(name, **({"dynamic_img_size": True} if size else {})).eval()
    if entry.encoder.settings.get("projection"):
        check_projection(model, name)
    else:
        model.reset_classifier(0)
    size = size or model.pretrained_cfg["input_size"][-1]
    assert read_shape(model, torch.empty(1, 3, size, size, device="meta")) == (entry.tokens, entry.dimensions)
    assert sum(part.numel() for part in model.parameters()) / 1e6 == pytest.approx(entry.parameters, rel=0.02)
    assert entry.own_weights or entry.licence.lower() == model.pretrained_cfg["license"]
    assert not entry.gated


def read_shape(model: Any, planes: Any) -> tuple[int, int]:
    shape = model.forward_features(planes).shape
    return (shape[2] * shape[3], shape[1]) if len(shape) == 4 else (shape[1] - model.num_prefix_tokens, shape[2])
