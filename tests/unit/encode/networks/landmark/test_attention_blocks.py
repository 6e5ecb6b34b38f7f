"""The special block of each comparison network against its equations, written out cell by cell in numpy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("resight.encode.backbones.landmark")

from resight.encode.networks.landmark.dolg import AtrousContext, LocalBranch, remove_projection  # noqa: E402
from resight.encode.networks.landmark.gem_embedding import Embedding, GeM  # noqa: E402
from resight.encode.networks.landmark.glam import GlobalLocalAttention  # noqa: E402
from resight.encode.networks.landmark.solar import SecondOrderAttention  # noqa: E402
from resight.encode.networks.landmark.visual_tokens import Attention, DropBranch, Refinement, SelfAttention, Tokenizer  # noqa: E402

ROWS, COLUMNS = 3, 4
CELLS = ROWS * COLUMNS


def prepare(module, seed=0):
    """Random weights and statistics of norms, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if value.is_floating_point():
            drawn = 0.5 * torch.randn(value.shape, generator=generator)
            value.data = drawn.abs() + 0.5 if name.endswith("running_var") else drawn
    return module.eval()


def read(module):
    """Parameters by name, in double precision; 1 × 1 convolutions as matrices."""
    found = {name: value.detach().double().numpy() for name, value in module.state_dict().items()}
    return {name: value[..., 0, 0] if value.shape[2:] == (1, 1) else value for name, value in found.items()}


def draw(*shape, seed=3):
    return np.random.default_rng(seed).normal(size=shape)


def to_torch(array):
    return torch.from_numpy(array).float()


def softmax(values):
    powers = np.exp(values - values.max())
    return powers / powers.sum()


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def batch_norm(values, known, name):
    """Values [c] or [c, N]."""
    deviation = np.sqrt(known[f"{name}.running_var"] + 1e-5)
    scale, shift = known[f"{name}.weight"] / deviation, known[f"{name}.bias"]
    return ((values.T - known[f"{name}.running_mean"]) * scale + shift).T


def layer_norm(row, known, name):
    return (row - row.mean()) / np.sqrt(row.var() + 1e-5) * known[f"{name}.weight"] + known[f"{name}.bias"]


def linear(row, known, name):
    return known[f"{name}.weight"] @ row + known[f"{name}.bias"]


def convolve_3x3(maps, weight, bias, rate):
    """Maps [c, rows, columns], zeros around them."""
    result = np.zeros((len(weight), ROWS, COLUMNS)) + bias[:, None, None]
    for row in range(ROWS):
        for column in range(COLUMNS):
            for down in (-1, 0, 1):
                for right in (-1, 0, 1):
                    y, x = row + rate * down, column + rate * right
                    if 0 <= y < ROWS and 0 <= x < COLUMNS:
                        result[:, row, column] += weight[:, :, down + 1, right + 1] @ maps[:, y, x]
    return result


def test_second_order_attention():
    block = prepare(SecondOrderAttention(8, 2))
    known, maps = read(block), draw(2, 8, ROWS, COLUMNS)
    new, received = block(to_torch(maps))
    for image in range(2):
        cells = maps[image].reshape(8, CELLS)

        def embed(name, cells=cells):
            normed = batch_norm(
                (known[f"{name}.0.weight"] @ cells).T.T + known[f"{name}.0.bias"][:, None], known, f"{name}.1"
            )
            return np.maximum(normed, 0)

        queries, keys = embed("query"), embed("key")
        values = known["value.weight"] @ cells + known["value.bias"][:, None]
        total = np.zeros(CELLS)
        for cell in range(CELLS):
            shares = softmax(np.array([queries[:, cell] @ keys[:, other] for other in range(CELLS)]) / np.sqrt(4))
            total += shares / CELLS
            gathered = sum(shares[other] * values[:, other] for other in range(CELLS))
            expected = cells[:, cell] + known["back.weight"] @ gathered + known["back.bias"]
            np.testing.assert_allclose(new[image].detach().reshape(8, CELLS)[:, cell], expected, atol=1e-5)
        np.testing.assert_allclose(received[image].detach().reshape(CELLS), total, atol=1e-6)
        assert total.sum() == pytest.approx(1)


def test_global_local_attention():
    channels, width = 6, 4
    block = prepare(GlobalLocalAttention(channels, width))
    known, maps = read(block), draw(2, channels, ROWS, COLUMNS)
    found = block(to_torch(maps)).detach().double().numpy()
    shares = softmax(known["fusion"])
    for image in range(2):
        one = maps[image]
        means = np.concatenate([[0], one.mean(axis=(1, 2)), [0]])

        def over_channels(name, means=means):
            kernel = known[f"{name}.weight"][0, 0]
            return sigmoid(np.array([kernel @ means[at : at + 3] for at in range(channels)]))

        def point(name, values):
            return np.einsum("oc,crx->orx", known[f"{name}.weight"], values) + known[f"{name}.bias"][:, None, None]

        reduced = point("local_space.reduce", one)
        around = [
            convolve_3x3(
                reduced,
                known[f"local_space.around.{number}.weight"],
                known[f"local_space.around.{number}.bias"],
                number + 1,
            )
            for number in range(3)
        ]
        near = point("local_space.join", np.concatenate([point("local_space.point", reduced), *around]))
        weighed = one * over_channels("local_channels")[:, None, None] + one
        local = weighed * near + weighed

        queries, keys = over_channels("query_channels"), over_channels("key_channels")
        mixed = np.zeros_like(one)
        for channel in range(channels):
            weights = softmax(np.array([keys[other] * queries[channel] for other in range(channels)]))
            mixed[channel] = sum(weights[other] * one[other] for other in range(channels))
        query, key, value = (
            point(f"global_space.{name}", one).reshape(width, CELLS) for name in ("query", "key", "value")
        )
        gathered = np.zeros((width, CELLS))
        for cell in range(CELLS):
            weights = softmax(np.array([key[:, other] @ query[:, cell] for other in range(CELLS)]))
            gathered[:, cell] = value @ weights
        far = point("global_space.back", gathered.reshape(width, ROWS, COLUMNS))
        whole = (one * mixed) * far + one * mixed
        np.testing.assert_allclose(found[image], shares[0] * local + shares[1] * whole + shares[2] * one, atol=1e-5)


def test_orthogonal_fusion():
    features, vectors = draw(2, 5, ROWS, COLUMNS), draw(2, 5, seed=4)
    found = remove_projection(to_torch(features), to_torch(vectors)).double().numpy()
    for image in range(2):
        axis = vectors[image]
        for row in range(ROWS):
            for column in range(COLUMNS):
                cell = features[image, :, row, column]
                expected = cell - (cell @ axis) / (axis @ axis) * axis
                np.testing.assert_allclose(found[image, :, row, column], expected, atol=1e-5)
                assert found[image, :, row, column] @ axis == pytest.approx(0, abs=1e-5)


def test_local_branch_with_dilated_convolutions():
    channels = 4
    block = prepare(LocalBranch(channels, atrous=True))
    known, maps = read(block), draw(1, channels, ROWS, COLUMNS)
    features, scores = (part.detach().double().numpy()[0] for part in block(to_torch(maps)))
    one = maps[0]
    # A dilation of 6 or more sees nothing but zeros beyond a map of 3 × 4 cells: only the middle of the kernel counts.
    dilated = [
        np.einsum("oc,crx->orx", known[f"context.dilated.{number}.weight"][:, :, 1, 1], one)
        + known[f"context.dilated.{number}.bias"][:, None, None]
        for number in range(3)
    ]
    whole = np.maximum(linear(one.mean(axis=(1, 2)), known, "context.whole"), 0)
    for row in range(ROWS):
        for column in range(COLUMNS):
            joined = np.concatenate(
                [
                    whole,
                    linear(one[:, row, column], known, "context.point"),
                    *(part[:, row, column] for part in dilated),
                ]
            )
            context = np.maximum(linear(joined, known, "context.join"), 0)
            cell = batch_norm(linear(context, known, "reduce"), known, "norm")
            score = np.log1p(np.exp(linear(np.maximum(cell, 0), known, "score")))[0]
            assert scores[0, row, column] == pytest.approx(score, abs=1e-5)
            np.testing.assert_allclose(features[:, row, column], score * cell / np.linalg.norm(cell), atol=1e-5)


@pytest.mark.parametrize("rate", [6, 12, 18])
def test_dilated_convolutions_keep_the_size_and_reach_as_far_as_stated(rate):
    context = AtrousContext(4)
    branch = context.dilated[[6, 12, 18].index(rate)]
    with torch.no_grad():
        branch.weight.fill_(1)
        branch.bias.zero_()
    maps = torch.zeros(1, 4, 41, 41)
    maps[0, 0, 20, 20] = 1
    reached = branch(maps)[0, 0].nonzero()
    assert {tuple(cell) for cell in reached.tolist()} == {
        (20 + down * rate, 20 + right * rate) for down in (-1, 0, 1) for right in (-1, 0, 1)
    }
    assert context(maps).shape == maps.shape


def attend(queries, inputs, known, name, heads):
    """Rows of queries [L, d] over inputs [N, d]."""
    query, key, value = (
        np.array([linear(row, known, f"{name}.{part}") for row in rows])
        for part, rows in (("query", queries), ("key", inputs), ("value", inputs))
    )
    size = queries.shape[1] // heads
    gathered = np.zeros_like(query)
    for head in range(heads):
        at = slice(head * size, (head + 1) * size)
        for row in range(len(query)):
            shares = softmax(key[:, at] @ query[row, at] / np.sqrt(size))
            gathered[row, at] = shares @ value[:, at]
    return np.array([linear(row, known, f"{name}.back") for row in gathered])


def test_attention_of_several_heads():
    block = prepare(Attention(8, 2, 0.5))  # which drops nothing in evaluation
    queries, inputs = draw(2, 3, 8), draw(2, CELLS, 8, seed=4)
    found = block(to_torch(queries), to_torch(inputs)).detach()
    known = {f"it.{name}": value for name, value in read(block).items()}
    for image in range(2):
        np.testing.assert_allclose(found[image], attend(queries[image], inputs[image], known, "it", 2), atol=1e-5)


def test_self_attention_of_local_features():
    block = prepare(SelfAttention(8, 2, 0.1))
    known, cells = read(block), draw(1, CELLS, 8)
    related = cells[0] + attend(cells[0], cells[0], known, "attend", 2)
    expected = related + np.array([linear(batch_norm(row, known, "norm"), known, "mix") for row in related])
    np.testing.assert_allclose(block(to_torch(cells)).detach()[0], expected, atol=1e-5)


def test_visual_tokens():
    block = prepare(Tokenizer(8, 3))
    known, cells = read(block), draw(2, CELLS, 8)
    found = block(to_torch(cells)).detach()
    for image in range(2):
        sums = np.zeros((3, 8))
        for cell in cells[image]:
            shares = softmax(known["patterns"] @ cell)  # each cell chooses among the tokens
            sums += shares[:, None] * cell
        expected = [layer_norm(linear(row, known, "mix"), known, "norm") for row in sums]
        np.testing.assert_allclose(found[image], expected, atol=1e-5)


def test_refinement_of_visual_tokens():
    block = prepare(Refinement(8, 2, 0.1))
    known, tokens, cells = read(block), draw(1, 3, 8), draw(1, CELLS, 8, seed=4)
    now = tokens[0]
    now = now + attend(
        np.array([layer_norm(row, known, "norm_cells") for row in now]), cells[0], known, "attend_cells", 2
    )

    def mix(row):
        inner = linear(row, known, "mix.0")
        gelu = torch.nn.functional.gelu(torch.from_numpy(inner)).numpy()
        return linear(gelu, known, "mix.3")

    now = now + np.array([mix(row) for row in now])
    normed = np.array([layer_norm(row, known, "norm_tokens") for row in now])
    now = now + attend(normed, normed, known, "attend_tokens", 2)
    np.testing.assert_allclose(block(to_torch(tokens), to_torch(cells)).detach()[0], now, atol=1e-5)


def test_a_dropped_branch_is_dropped_for_the_whole_image_and_its_mean_stays():
    torch.manual_seed(0)
    kept = DropBranch(0.25).train()(torch.ones(4000, 2, 3))
    values = kept.flatten(1)
    assert (values == values[:, :1]).all()
    assert sorted(set(values[:, 0].tolist())) == pytest.approx([0, 4 / 3])
    assert kept.mean() == pytest.approx(1, abs=0.05)
    assert (DropBranch(0.25).eval()(torch.ones(5, 2, 3)) == 1).all()


def test_gem_and_embedding():
    maps = np.abs(draw(2, 5, ROWS, COLUMNS)) + 0.1
    pooled = GeM(3.0, learnt=True)(to_torch(maps)).detach()
    np.testing.assert_allclose(pooled, (maps**3).mean(axis=(2, 3)) ** (1 / 3), atol=1e-5)
    block = prepare(Embedding(5, 7, 0.5))
    known, vectors = read(block), draw(2, 5)
    expected = [batch_norm(linear(row, known, "project"), known, "norm") for row in vectors]
    np.testing.assert_allclose(block(to_torch(vectors)).detach(), expected, atol=1e-5)
