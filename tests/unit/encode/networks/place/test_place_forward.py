"""Vectors of place networks against a second reading of their definitions, written here on the authors' own names.

The readings take a published state dict and images, in double precision, and share no code with the package: attention,
batch norms, optimal transport and poolings are written out.
"""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
place = pytest.importorskip("resight.encode.backbones.place")

from support import published_states as published  # noqa: E402
from support.builders import draw_texture, make_picture  # noqa: E402
from torch.nn import functional  # noqa: E402

from resight.encode.networks.place.place_layouts import load_network  # noqa: E402
from resight.encode.networks.place.trunks import interpolate_positions  # noqa: E402

EIGHTEEN = (2, 2, 2, 2)


def convolve(x, s, name, stride=1, padding=0):
    return functional.conv2d(x, s[f"{name}.weight"], s.get(f"{name}.bias"), stride, padding)


def batch_norm(x, s, name):
    mean, variance = s[f"{name}.running_mean"], s[f"{name}.running_var"]
    scale = s[f"{name}.weight"] / (variance + 1e-5).sqrt()
    return x * scale[:, None, None] + (s[f"{name}.bias"] - mean * scale)[:, None, None]


def layer_norm(x, s, name, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * s[f"{name}.weight"] + s[f"{name}.bias"]


def linear(x, s, name):
    return x @ s[f"{name}.weight"].T + s.get(f"{name}.bias", 0)


def unit(x, axis=-1):
    return x / x.square().sum(axis, keepdim=True).sqrt()


def gem(maps, p, least=1e-6):
    return (maps.clamp(min=least) ** p).mean((2, 3)) ** (1 / p)


def resnet18(x, s, name, stages=4, floors=()):
    """Maps after each stage; `floors`: what takes the place of ReLU in the blocks of a stage and after them."""
    x = batch_norm(convolve(x, s, name("conv1"), 2, 3), s, name("bn1")).clamp(min=0)
    x = functional.max_pool2d(x, 3, 2, 1)
    maps = []
    for stage in range(1, stages + 1):
        inner, outer = dict(floors).get(stage, (0, 0))
        for block in range(2):
            here = f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            y = batch_norm(convolve(x, s, name(f"{here}.conv1"), stride, 1), s, name(f"{here}.bn1")).clamp(min=inner)
            y = batch_norm(convolve(y, s, name(f"{here}.conv2"), 1, 1), s, name(f"{here}.bn2"))
            if stride == 2:
                x = convolve(x, s, name(f"{here}.downsample.0"), 2)
                x = batch_norm(x, s, name(f"{here}.downsample.1"))
            x = (x + y).clamp(min=outer)
        maps.append(x)
    return maps


def attend(queries, inputs, weights, heads):
    """Multi-head attention; `weights`: (W, b) of query, key, value and output."""
    *joint, (back, shift) = weights
    q, k, v = (x @ w.T + b for x, (w, b) in zip((queries, inputs, inputs), joint, strict=True))
    width = q.shape[-1] // heads
    parts = []
    for head in range(heads):
        cut = slice(head * width, (head + 1) * width)
        scores = torch.exp(q[..., cut] @ k[..., cut].transpose(-1, -2) / math.sqrt(width))
        parts.append(scores / scores.sum(-1, keepdim=True) @ v[..., cut])
    return torch.cat(parts, -1) @ back.T + shift


def dinov2(x, s, prefix, has_norm=True):
    """CLS and patches on the grid that the position embedding has."""
    cells = convolve(x, s, f"{prefix}patch_embed.proj", 14).flatten(2).transpose(1, 2)
    tokens = torch.cat([s[f"{prefix}cls_token"].expand(len(x), -1, -1), cells], 1) + s[f"{prefix}pos_embed"]
    width = tokens.shape[-1]
    for block in range(2):
        here = f"{prefix}blocks.{block}"
        normed = layer_norm(tokens, s, f"{here}.norm1", 1e-6)
        joint = zip(s[f"{here}.attn.qkv.weight"].split(width), s[f"{here}.attn.qkv.bias"].split(width), strict=True)
        weights = [*joint, (s[f"{here}.attn.proj.weight"], s[f"{here}.attn.proj.bias"])]
        tokens = tokens + s[f"{here}.ls1.gamma"] * attend(normed, normed, weights, width // 64)
        hidden = linear(layer_norm(tokens, s, f"{here}.norm2", 1e-6), s, f"{here}.mlp.fc1")
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
        tokens = tokens + s[f"{here}.ls2.gamma"] * linear(hidden, s, f"{here}.mlp.fc2")
    tokens = layer_norm(tokens, s, f"{prefix}norm", 1e-6) if has_norm else tokens
    return tokens[:, 0], tokens[:, 1:]


def read_sscd(x, s):
    (*_, maps) = resnet18(x, s, "backbone.{}".format)
    return linear(gem(maps, 3), s, "backbone.fc")


def read_cosplace(x, s):
    (*_, maps) = resnet18(x, s, published.in_sequence("backbone"))
    return linear(gem(unit(maps, 1), s["aggregation.1.p"]), s, "aggregation.3")


def read_mixvpr(x, s):
    (*_, maps) = resnet18(x, s, "backbone.model.{}".format, 3)
    mixed = maps.flatten(2)
    for layer in range(2):
        here = f"aggregator.mix.{layer}.mix"
        mixed = mixed + linear(linear(layer_norm(mixed, s, f"{here}.0"), s, f"{here}.1").clamp(min=0), s, f"{here}.3")
    channels = linear(mixed.transpose(1, 2), s, "aggregator.channel_proj").transpose(1, 2)
    return linear(channels, s, "aggregator.row_proj").flatten(1)


def split_attention(s, name):
    width = s[f"{name}.out_proj.bias"].shape[0]
    joint = zip(s[f"{name}.in_proj_weight"].split(width), s[f"{name}.in_proj_bias"].split(width), strict=True)
    return [*joint, (s[f"{name}.out_proj.weight"], s[f"{name}.out_proj.bias"])]


def read_boq(x, s):
    _, cells = dinov2(x, s, "backbone.dino.", has_norm=False)
    side = math.isqrt(cells.shape[1])
    maps = cells.transpose(1, 2).reshape(len(x), -1, side, side)
    cells = layer_norm(
        convolve(maps, s, "aggregator.proj_c", 1, 1).flatten(2).transpose(1, 2), s, "aggregator.norm_input"
    )
    answers = []
    for layer in range(2):
        here = f"aggregator.boqs.{layer}"
        heads = cells.shape[-1] // 64
        cells = layer_norm(
            cells + attend(cells, cells, split_attention(s, f"{here}.encoder.self_attn"), heads),
            s,
            f"{here}.encoder.norm1",
        )
        hidden = linear(linear(cells, s, f"{here}.encoder.linear1").clamp(min=0), s, f"{here}.encoder.linear2")
        cells = layer_norm(cells + hidden, s, f"{here}.encoder.norm2")
        queries = s[f"{here}.queries"].expand(len(x), -1, -1)
        queries = queries + attend(queries, queries, split_attention(s, f"{here}.self_attn"), heads)
        queries = layer_norm(queries, s, f"{here}.norm_q")
        found = attend(queries, cells, split_attention(s, f"{here}.cross_attn"), heads)
        answers.append(layer_norm(found, s, f"{here}.norm_out"))
    return linear(torch.cat(answers, 1).transpose(1, 2), s, "aggregator.fc").flatten(1)


def read_salad(x, s, prefix="backbone.model.", agg="aggregator."):
    """Sinkhorn on the shares themselves, with masses that sum to 1 on either side."""
    scene, cells = dinov2(x, s, prefix)
    count = cells.shape[1]

    def mlp(values, name, last):
        one = {f"{part}.{kind}": s[f"{agg}{name}.{part}.{kind}"] for part in (0, last) for kind in ("weight", "bias")}
        one = {key: value.flatten(1) if value.ndim > 1 else value for key, value in one.items()}
        return linear(linear(values, one, "0").clamp(min=0), one, str(last))

    vectors = []
    for image in range(len(x)):
        scores = mlp(cells[image], "score", 3).T  # [m, n]
        clusters = len(scores)
        kernel = torch.exp(torch.cat([scores, s[f"{agg}dust_bin"].expand(1, count)]))
        total = clusters + count
        rows = torch.tensor([1.0] * clusters + [count - clusters], dtype=torch.float64) / total
        columns = torch.full((count,), 1 / total, dtype=torch.float64)
        right = torch.ones(count, dtype=torch.float64)
        for _ in range(3):
            left = rows / (kernel @ right)
            right = columns / (kernel.T @ left)
        shares = (left[:, None] * kernel * right)[:-1] * total
        gathered = unit(mlp(cells[image], "cluster_features", 3).T @ shares.T, 0)  # [channels, m]
        vectors.append(unit(torch.cat([unit(mlp(scene[image], "token_features", 2)), gathered.flatten()])))
    return torch.stack(vectors)


def read_megaloc(x, s):
    return linear(read_salad(x, s, "backbone.", "aggregator.agg."), s, "aggregator.linear")


def read_delg(x, s):
    *_, maps = resnet18(x.flip(1), s, published.in_pycls("globalmodel"))
    return linear(gem(maps, s["globalmodel.head.pool.p"]), s, "globalmodel.head.fc")


def read_superglobal(x, s):
    floors = [(1, (0.014, 0.014)), (2, (0, 0.014)), (3, (0, 0.014))]
    vectors = []
    for scale in (0.7071, 1.0, 1.4142):
        size = [int(side * scale) for side in x.shape[2:]]
        seen = functional.interpolate(x, size, mode="bilinear", antialias=True).flip(1)
        *_, maps = resnet18(seen, s, published.in_pycls("encoder_q"), floors=floors)
        near = torch.zeros_like(maps)
        rows, columns = maps.shape[2:]

        def mirror(at, count):
            at = abs(at)
            return at if at < count else 2 * (count - 1) - at

        for row in range(rows):
            for column in range(columns):
                window = [
                    maps[:, :, mirror(row + down, rows), mirror(column + right, columns)] ** 2.5
                    for down in range(-2, 3)
                    for right in range(-2, 3)
                ]
                near[:, :, row, column] = (sum(window) / 25) ** (1 / 2.5)
        vectors.append(unit(linear(unit(gem((maps + near) / 2, 4.6, 1e-8)), s, "encoder_q.head.fc")))
    return torch.stack(vectors).amax(0)


CASES = {  # reading, shapes, input
    "sscd": (read_sscd, published.sscd_torchvision(24), (64, 96)),
    "cosplace": (read_cosplace, published.cosplace(24), (64, 96)),
    "mixvpr": (read_mixvpr, published.mixvpr(6, 2, 2, 4, (2, 2, 2), False), (64, 64)),
    "boq": (read_boq, published.boq_dino(64, 2, 3, 128, 5, 2, 3), (42, 42)),
    "salad": (read_salad, published.salad(64, 2, 3, 4, 6, 5, 16), (42, 42)),
    "megaloc": (
        read_megaloc,
        published.megaloc(24, 6, 4, 5, "backbone.", width=64, depth=2, side=3, hidden=16),
        (42, 42),
    ),
    "delg": (read_delg, published.delg(24, 16, (2, 2, 2, 2), False), (64, 96)),
    "superglobal": (read_superglobal, published.superglobal(24, (2, 2, 2, 2), False), (160, 192)),
}


@pytest.mark.parametrize("model", CASES)
def test_the_vector_is_that_of_a_second_reading(model, tmp_path):
    read, shapes, size = CASES[model]
    state = published.draw(shapes, spread=0.7)
    torch.save(state, tmp_path / "own.pth")
    images = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        seen = load_network(model, tmp_path / "own.pth").see(images)
        expected = unit(read(images.double(), {name: value.double() for name, value in state.items()}))
    assert (expected[0] - expected[1]).abs().max() > 0.003  # images tell: nothing has died on the way
    np.testing.assert_allclose(seen.descriptors.double(), expected, atol=2e-5)


def test_attention_of_salad_is_what_the_dustbin_leaves_and_that_of_boq_sums_to_one(tmp_path):
    images = torch.randn(1, 3, 42, 42, generator=torch.Generator().manual_seed(1))
    for model in ("salad", "boq"):
        torch.save(published.draw(CASES[model][1]), tmp_path / "own.pth")
        with torch.no_grad():
            attention = load_network(model, tmp_path / "own.pth").see(images).attention
        assert attention.shape == (1, 3, 3) and (attention >= 0).all()
        # Columns have mass 1; four clusters have mass 1 each but for the last step, which makes the columns exact.
        total = float(attention.sum())
        assert total == pytest.approx(4, rel=0.2) if model == "salad" else total == pytest.approx(1, abs=1e-5)


def test_delg_shows_local_features_of_unit_length_and_their_attention(tmp_path):
    state = published.draw(CASES["delg"][1])
    torch.save(state, tmp_path / "own.pth")
    images = torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        seen = load_network("delg", tmp_path / "own.pth").see(images)
    exact = {name: value.double() for name, value in state.items()}
    lower = resnet18(images.double().flip(1), exact, published.in_pycls("globalmodel"), 3)[-1]
    local = batch_norm(convolve(lower, exact, "localmodel.conv1"), exact, "localmodel.bn")
    scores = torch.log1p(torch.exp(convolve(local.clamp(min=0), exact, "localmodel.conv2")))[:, 0]
    np.testing.assert_allclose(seen.maps, unit(local, 1), atol=1e-4)
    np.testing.assert_allclose(seen.attention, scores, atol=1e-4, rtol=1e-4)


def test_positions_are_interpolated_as_dinov2_does():
    """Bicubic with a = −0.75, the edge repeated, the scale for 0.1 cells more than there are."""
    side, rows, columns = 5, 3, 7
    positions = torch.randn(1, 1 + side * side, 2, generator=torch.Generator().manual_seed(0))
    grid = positions[0, 1:].reshape(side, side, 2).double().numpy()

    def spread(count):
        weights = np.zeros((count, side))
        for at in range(count):
            source = (at + 0.5) * side / (count + 0.1) - 0.5
            for cell in range(math.floor(source) - 1, math.floor(source) + 3):
                d = abs(source - cell)
                near = 1.25 * d**3 - 2.25 * d**2 + 1
                far = -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3
                weights[at, min(max(cell, 0), side - 1)] += near if d <= 1 else far if d < 2 else 0
        return weights

    expected = np.einsum("ra,cb,abd->rcd", spread(rows), spread(columns), grid).reshape(-1, 2)
    found = interpolate_positions(positions, rows, columns)
    assert torch.equal(found[:, 0], positions[:, 0])
    np.testing.assert_allclose(found[0, 1:], expected, atol=1e-5)
    assert interpolate_positions(positions, side, side) is positions


def test_a_picture_becomes_features_with_head_patches_and_attention(tmp_path):
    torch.save(published.draw(CASES["megaloc"][1]), tmp_path / "megaloc.torch")
    backbone = place.build(place.Config(model="megaloc", weights=tmp_path / "megaloc.torch", size=56))
    (features,) = backbone.extract([make_picture(draw_texture(np.random.default_rng(0)), "one")])
    assert features.grid == (4, 4) and features.patches.shape == (1, 16, 64) and features.cls.shape == (1, 64)
    assert features.attention.shape == (1, 16)
    assert features.head.shape == (1, 24) and np.linalg.norm(features.head) == pytest.approx(1, abs=1e-5)
    assert backbone.fingerprint.startswith("place megaloc")


@pytest.mark.parametrize(
    ("model", "parts"),
    [("mixvpr", {"mix", "project_channels", "project_cells"}), ("cosplace", {"pool", "project"})],
)
def test_parts_are_counted_without_any_values(model, parts):
    costs = {one.part: one for one in place.count_parts(place.Config(model=model, backbone="resnet18", untrained=True))}
    assert set(costs) == {"backbone", *parts}
    if model == "cosplace":
        assert costs["backbone"].parameters == 11_176_512
        assert costs["project"].parameters == 2048 * 513
