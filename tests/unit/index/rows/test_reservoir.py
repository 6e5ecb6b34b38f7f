"""A random sample of tokens whose number is unknown beforehand."""

import numpy as np

from resight.index.rows.reservoir import Reservoir


def sample(count: int, size: int, chunk: int, seed: int = 0) -> list[float]:
    reservoir = Reservoir(size, np.random.default_rng(seed))
    for start in range(0, count, chunk):
        reservoir.add(np.arange(start, min(start + chunk, count), dtype=np.float32)[:, None])
    return [float(value) for value in reservoir.take().ravel()]


def test_all_tokens_are_the_sample_where_they_are_few():
    assert sorted(sample(7, 10, 3)) == [0, 1, 2, 3, 4, 5, 6]


def test_a_sample_has_its_size_and_no_token_twice():
    found = sample(1000, 50, 64)
    assert len(found) == len(set(found)) == 50


def test_chunks_do_not_change_the_sample_and_the_seed_does():
    assert sample(1000, 50, 7) == sample(1000, 50, 1000)
    assert sample(1000, 50, 7) != sample(1000, 50, 7, seed=1)


def test_first_and_last_tokens_are_as_likely_as_any():
    drawn = np.concatenate([sample(100, 20, 30, seed) for seed in range(500)])
    shares = np.bincount(drawn.astype(int), minlength=100) / 500
    assert abs(shares[:10].mean() - 0.2) < 0.02
    assert abs(shares[-10:].mean() - 0.2) < 0.02


def test_without_tokens_there_is_no_sample():
    reservoir = Reservoir(5)
    reservoir.add(np.zeros((0, 4), np.float32))
    assert len(reservoir.take()) == 0
