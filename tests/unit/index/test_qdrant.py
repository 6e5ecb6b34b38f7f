"""Rows in Qdrant give the answers that the other indexes give, in local mode and in Edge."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.token_rows import make_tokens, score_by_hand

from resight import index
from resight.errors import CollectionError, InputError
from resight.types import Descriptors

pytest.importorskip("qdrant_client")


@pytest.fixture(params=["local", "edge"])
def settings(request: pytest.FixtureRequest) -> dict[str, bool]:
    if request.param == "edge":
        pytest.importorskip("qdrant_edge")
    return {"edge": request.param == "edge"}


def draw_rows(images: int, rows_each: int, dimensions: int = 8) -> Descriptors:
    vectors = np.random.default_rng(1).normal(size=(images * rows_each, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Descriptors(
        tuple(f"image {number}" for number in range(images)),
        vectors,
        np.repeat(np.arange(images, dtype=np.int32), rows_each),
        np.arange(4 * len(vectors), dtype=np.float32).reshape(-1, 4),
    )


def draw_query(rows: int, dimensions: int = 8) -> Descriptors:
    vectors = np.random.default_rng(2).normal(size=(rows, dimensions)).astype(np.float32)
    return Descriptors(("q",), vectors, np.zeros(rows, np.int32))


def make_folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


@pytest.mark.parametrize(
    ("rows_each", "query_rows", "match"), [(1, 1, None), (3, 1, None), (3, 2, "best"), (1, 3, "mean")]
)
def test_answers_are_those_of_exact(
    settings: dict[str, bool], rows_each: int, query_rows: int, match: str | None, tmp_path: Path
):
    rows, query = draw_rows(2000, rows_each), draw_query(query_rows)
    mine = index.build("qdrant", match=match, **settings).create(lambda: iter([rows]), make_folder(tmp_path, "q"))
    theirs = index.build("exact", match=match).create(lambda: iter([rows]), make_folder(tmp_path, "e"))
    for allowed in (None, frozenset(rows.ids[10:50])):
        found, true = mine.search(query, 20, allowed), theirs.search(query, 20, allowed)
        assert found.ids == true.ids
        np.testing.assert_allclose(found.scores, true.scores, atol=1e-5)
        assert found.boxes == true.boxes


def test_tokens_score_as_in_late_interaction(settings: dict[str, bool], tmp_path: Path):
    rows, query = make_tokens([4, 0, 2, 7, 1, 3]), make_tokens([5], seed=1)
    ranking = index.build("qdrant", match="mean", **settings).create(lambda: iter([rows]), tmp_path).search(query, 6)
    found = dict(zip(ranking.ids, ranking.scores.tolist(), strict=True))
    assert found == pytest.approx(score_by_hand(query, rows), abs=1e-5)


def test_of_many_that_tie_at_the_cut_the_first_ids_come_in(settings: dict[str, bool], tmp_path: Path):
    names = tuple(f"{number:02}" for number in reversed(range(40)))
    rows = Descriptors(names, np.ones((40, 2), np.float32), np.arange(40, dtype=np.int32))
    searcher = index.build("qdrant", **settings).create(lambda: iter([rows]), tmp_path)
    assert searcher.search(draw_query(1, 2), 3).ids == ("00", "01", "02")


def test_two_searchers_may_have_the_same_index_open(settings: dict[str, bool], tmp_path: Path):
    rows, plugin = draw_rows(30, 2), index.build("qdrant", **settings)
    first = plugin.create(lambda: iter([rows]), tmp_path)
    second = plugin.open(tmp_path)
    assert second.search(draw_query(1), 5).ids == first.search(draw_query(1), 5).ids


def test_an_index_that_was_moved_is_opened_where_it_is(settings: dict[str, bool], tmp_path: Path):
    rows, plugin, folder = draw_rows(30, 1), index.build("qdrant", **settings), make_folder(tmp_path, "building")
    before = plugin.create(lambda: iter([rows]), folder).search(draw_query(1), 5)
    after = plugin.open(folder.rename(tmp_path / "built")).search(draw_query(1), 5)
    assert after.ids == before.ids


def test_truncated_vectors_are_reported(tmp_path: Path):
    plugin = index.build("qdrant")
    plugin.create(lambda: iter([draw_rows(30, 1)]), tmp_path)
    np.save(tmp_path / "vectors.npy", np.zeros((29, 8), np.float32))
    with pytest.raises(CollectionError, match="damaged"):
        plugin.open(tmp_path)


def test_a_shard_with_missing_points_is_reported(tmp_path: Path):
    pytest.importorskip("qdrant_edge")
    plugin = index.build("qdrant", edge=True)
    plugin.create(lambda: iter([draw_rows(30, 1)]), tmp_path)
    np.save(tmp_path / "offsets.npy", np.arange(32))
    (tmp_path / "ids.json").write_text(json.dumps([str(number) for number in range(31)]))
    (tmp_path / "boxes.npy").unlink()
    with pytest.raises(CollectionError, match="31 points"):
        plugin.open(tmp_path)


def test_a_variable_that_is_not_set_names_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_URL", raising=False)
    with pytest.raises(InputError, match="NO_SUCH_URL"):
        index.build("qdrant", url="NO_SUCH_URL").create(lambda: iter([draw_rows(2, 1)]), tmp_path)


def test_a_server_and_edge_exclude_each_other():
    with pytest.raises(InputError, match="exclude"):
        index.build("qdrant", url="http://127.0.0.1:6333", edge=True)
