"""Parameters and operations against sums by hand, on the CPU and without values."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("resight.encode.backbones.timm")

from resight import plugins  # noqa: E402
from resight.encode.networks.flops import count_costs, count_network  # noqa: E402


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.near = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.far = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5))

    def forward(self, planes):
        return self.far(self.near(planes))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_part_costs_its_multiplications(device):
    with torch.device(device):
        network = TwoLayers()
    near, far = count_costs(network, {"near": network.near, "far": network.far}, 10)
    assert (near.part, near.parameters, near.operations) == ("near", 3 * 8 * 9 + 8, 3 * 8 * 9 * 100)
    assert (far.part, far.parameters, far.operations) == ("far", 8 * 5 + 5, 8 * 5)
    assert network.training


@pytest.mark.parametrize(
    ("name", "settings", "parameters", "dimensions"),
    [
        ("timm", {"model": "resnet18"}, 11_176_512, 512),
        # patches, positions, CLS, 12 blocks (two norms, qkv, projection, two layers), the last norm
        (
            "timm",
            {"model": "vit_tiny_patch16_224"},
            (768 + 1) * 192 + 197 * 192 + 192 + 12 * (4 * 192 + 4 * 192 * 193 + 8 * 192 * 192 + 5 * 192) + 2 * 192,
            192,
        ),
        ("transformers", {"model": "facebook/dinov2-small"}, 22_056_576, 384),
    ],
)
def test_networks_are_counted_without_values(name, settings, parameters, dimensions):
    module = plugins.find("resight.encode.backbones", name)
    network = module.sketch(module.Config(**settings, untrained=True))
    assert all(value.is_meta for value in network.module.parameters())
    counted = count_network(network, 224)
    assert (counted.parameters, counted.dimensions) == (parameters, dimensions)
    assert 1e9 < counted.operations < 1e10


def test_seven_billion_parameters_need_no_memory():
    module = plugins.find("resight.encode.backbones", "transformers")
    network = module.sketch(module.Config(model="facebook/dinov3-vit7b16-pretrain-lvd1689m", size=32))
    counted = count_network(network, 32)
    assert counted.parameters == 6_716_035_072 and counted.dimensions == 4096
