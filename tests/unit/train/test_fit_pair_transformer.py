from pathlib import Path

import numpy as np
import pytest
import torch

from resight.errors import InputError
from resight.search import scorers
from resight.train.fit_pair_transformer import (
    Pair,
    PairTransformerNetwork,
    Schedule,
    Shape,
    build,
    collate,
    export,
    train,
)
from resight.types import Descriptors

SHAPE = Shape(dimensions=8, width=16, depth=2, heads=2)


def draw(rng: np.random.Generator, name: str, count: int) -> Descriptors:
    vectors = rng.normal(size=(count, 8)).astype(np.float32)
    corners = rng.integers(0, 90, (count, 2)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Descriptors((name,), vectors, np.zeros(count, np.int32), boxes=np.hstack([corners, corners + 10]))


def stir(module: PairTransformerNetwork) -> PairTransformerNetwork:
    """Weights far from those that training starts from, in every part."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return module


def score(module: PairTransformerNetwork, queries: list[Descriptors], images: list[Descriptors]) -> np.ndarray:
    with torch.no_grad():
        return module(*collate(queries), *collate(images)).numpy()


def make_pairs(rng: np.random.Generator) -> list[Pair]:
    """Late interaction cannot tell them apart: the same tokens, and what is the same lies on the left."""
    pairs = []
    for number in range(24):
        tokens = draw(rng, f"q{number}", 4)
        assert tokens.boxes is not None
        frame = np.array([[0, 0, 1, 1], [99, 99, 100, 100]], np.float32)
        for same, x in ((True, 5), (False, 85)):
            spots = np.array([[x, 40, x + 10, 50], [x, 60, x + 10, 70]], np.float32)
            image = Descriptors(("i",), tokens.vectors, tokens.owners, boxes=np.vstack([frame, spots]))
            pairs.append(Pair(tokens, image, same))
    return pairs


def test_numpy_and_torch_agree(tmp_path: Path):
    rng = np.random.default_rng(0)
    queries, images = ([draw(rng, "x", int(count)) for count in rng.integers(1, 9, 6)] for _ in range(2))
    module = stir(build(SHAPE)).eval()
    export(module, tmp_path / "weights.npz")
    scorer = scorers.build("transformer", weights=tmp_path / "weights.npz")
    by_numpy = [scorer.score(query, image) for query, image in zip(queries, images, strict=True)]
    by_torch = score(module, queries, images)
    assert by_torch == pytest.approx(by_numpy, abs=1e-4)
    assert np.ptp(by_torch) > 0.1


def test_before_training_it_is_late_interaction():
    rng = np.random.default_rng(0)
    query, image = draw(rng, "q", 5), draw(rng, "a", 7)
    late = float((query.vectors @ image.vectors.T).max(axis=1).mean())
    assert score(build(SHAPE), [query], [image]) == pytest.approx([SHAPE.late * late], abs=1e-4)


def test_what_is_padded_changes_nothing():
    rng = np.random.default_rng(0)
    module = stir(build(SHAPE)).eval()
    short, long = draw(rng, "s", 2), draw(rng, "l", 9)
    assert score(module, [short, long], [long, short])[0] == pytest.approx(score(module, [short], [long])[0], abs=1e-5)


def test_it_learns_what_late_interaction_cannot_tell():
    pairs = make_pairs(np.random.default_rng(0))
    schedule = Schedule(epochs=30, hidden=0.0, rate=3e-3)
    trained = train(build(SHAPE), pairs[:32], np.random.default_rng(0), schedule)
    left = [pair for pair in pairs[32:] if pair.same]
    right = [pair for pair in pairs[32:] if not pair.same]
    scores = [score(trained, [pair.query for pair in side], [pair.image for pair in side]) for side in (left, right)]
    assert (scores[0] > scores[1]).all()


def test_the_same_seed_gives_the_same_weights_and_the_module_that_was_given_stays_as_it_was():
    pairs, given = make_pairs(np.random.default_rng(0))[:12], build(SHAPE, seed=3)
    first, second = (train(given, pairs, np.random.default_rng(5), Schedule(epochs=2)) for _ in range(2))
    for name, value in build(SHAPE, seed=3).state_dict().items():
        assert torch.equal(first.state_dict()[name], second.state_dict()[name])
        assert torch.equal(given.state_dict()[name], value)
    assert not torch.equal(first.project.weight, given.project.weight)


def test_pairs_that_teach_nothing_are_refused():
    pairs = [pair for pair in make_pairs(np.random.default_rng(0)) if pair.same]
    with pytest.raises(InputError, match="no query to learn from"):
        train(build(SHAPE), pairs, np.random.default_rng(0))
