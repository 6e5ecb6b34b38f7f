import numpy as np

from resight.audit.dedup import candidates


def test_blocks_give_what_the_whole_matrix_gives(monkeypatch):
    monkeypatch.setattr(candidates, "QUERIES", 7)
    monkeypatch.setattr(candidates, "ROWS", 5)
    rng = np.random.default_rng(0)
    queries, rows = rng.normal(size=(20, 6)).astype(np.float32), rng.normal(size=(33, 6)).astype(np.float32)
    found, products = candidates.find_nearest(queries, rows, 4)
    whole = queries @ rows.T
    assert (found == np.argsort(-whole, axis=1)[:, :4]).all()
    assert np.allclose(products, -np.sort(-whole, axis=1)[:, :4])


def test_no_more_are_found_than_there_are():
    found, _ = candidates.find_nearest(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), 5)
    assert found.tolist() == [[0, 1], [1, 0]]
