from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import global_rows

from resight import index
from resight.errors import RecipeError
from resight.index import Chunks, Searcher
from resight.index.rows.pretransform import Pretransform, identity, load_pretransform, save_pretransform
from resight.types import Descriptors

IMAGES, REGIONS, DIMENSIONS = 600, 5, 32


def cluster_rows(images: int = IMAGES) -> Descriptors:
    """Regions of a grid L1 around 60 centres, of unit length."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(60, DIMENSIONS))
    rows = centres[generator.integers(0, 60, images * REGIONS)] + 0.4 * generator.normal(
        size=(images * REGIONS, DIMENSIONS)
    )
    boxes = np.array([(0, 0, 64, 48), (0, 0, 32, 24), (32, 0, 64, 24), (0, 24, 32, 48), (32, 24, 64, 48)], np.float32)
    return Descriptors(
        tuple(f"{number:04}" for number in range(images)),
        (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32),
        np.repeat(np.arange(images, dtype=np.int32), REGIONS),
        np.tile(boxes, (images, 1)),
    )


def cut(rows: Descriptors, images: int) -> Chunks:
    """The same rows in chunks of so many images."""

    def chunks() -> Iterator[Descriptors]:
        for start in range(0, len(rows.ids), images):
            part = slice(start * REGIONS, (start + images) * REGIONS)
            assert rows.boxes is not None
            yield Descriptors(
                rows.ids[start : start + images], rows.vectors[part], rows.owners[part] - start, rows.boxes[part]
            )

    return chunks


def create(folder: Path, rows: Descriptors, chunk: int = 250, **settings: Any) -> Any:
    """With fewer words than usual, which are learnt in less time."""
    folder.mkdir()
    return index.build("ivfpq", **{"m": 16, "nbits": 4 if settings.get("fast") else 6, **settings}).create(
        cut(rows, chunk), folder
    )


def measure_recall(searcher: Searcher, exact: Searcher, k: int = 10) -> float:
    found = 0
    for vector in cluster_rows(40).vectors[::REGIONS]:
        query = global_rows("q", (vector + 0.02)[None])
        found += len(set(searcher.search(query, k).ids) & set(exact.search(query, k).ids))
    return found / (40 * k)


@pytest.fixture(scope="module")
def rows() -> Descriptors:
    return cluster_rows()


@pytest.fixture(scope="module")
def exact(rows: Descriptors, tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    return index.build("exact").create(cut(rows, 100), tmp_path_factory.mktemp("exact"))


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({}, 0.99),
        ({"keep": "none"}, 0.75),
        ({"keep": "none", "rotation": True}, 0.75),
        ({"fast": True}, 0.99),
        ({"fast": True, "keep": "none"}, 0.6),
        ({"rotation": True, "fast": True}, 0.99),
    ],
)
def test_most_of_the_exact_answer_is_found(
    tmp_path: Path, rows: Descriptors, exact: Searcher, settings: dict[str, Any], least: float
):
    searcher = create(tmp_path / "index", rows, **settings)
    assert searcher.layout.kind == ("fast" if settings.get("fast") else "pq")
    assert measure_recall(searcher, exact) >= least
    again = index.build("ivfpq", **settings).open(tmp_path / "index")
    query = global_rows("q", rows.vectors[:1])
    assert again.search(query, 20).ids == searcher.search(query, 20).ids


@pytest.mark.parametrize("settings", [{}, {"train_rows": 700, "seed": 3}, {"train_on": "L0"}])
def test_how_rows_come_in_chunks_makes_no_difference(tmp_path: Path, rows: Descriptors, settings: dict[str, Any]):
    create(tmp_path / "few", rows, 7, **settings)
    create(tmp_path / "all", rows, IMAGES, **settings)
    for name in ("lists.faiss", "layout.json", "vectors.npy", "boxes.npy", "offsets.npy", "ids.json"):
        assert (tmp_path / "few" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()


def test_the_seed_chooses_the_sample(tmp_path: Path, rows: Descriptors):
    for name, seed in (("a", 1), ("again", 1), ("b", 2)):
        create(tmp_path / name, rows, seed=seed, train_rows=500)
    lists = [(tmp_path / name / "lists.faiss").read_bytes() for name in ("a", "again", "b")]
    assert lists[0] == lists[1] != lists[2]


@pytest.mark.parametrize(("level", "trained_on"), [("all", 3000), ("L0", 600), ("L1", 3000)])
def test_the_rows_of_a_level_train_it(tmp_path: Path, rows: Descriptors, level: str, trained_on: int):
    assert create(tmp_path / "index", rows, train_on=level).layout.trained_on == trained_on


def test_a_level_needs_boxes(tmp_path: Path, rows: Descriptors):
    bare = Descriptors(rows.ids, rows.vectors, rows.owners)
    with pytest.raises(RecipeError, match="needs boxes"):
        index.build("ivfpq", train_on="L1").create(lambda: iter([bare]), tmp_path)


def test_another_branch_trains_it(tmp_path: Path, rows: Descriptors):
    plugin = index.build("ivfpq", train_branch=1, m=8, nbits=6)
    assert plugin.learns_from == 1
    assert index.build("ivfpq").learns_from is None
    other = global_rows([str(number) for number in range(300)], rows.vectors[:300])
    searcher = plugin.create(cut(rows, 100), tmp_path, training=lambda: iter([other]))
    assert searcher.layout.trained_on == 300
    assert searcher.search(global_rows("q", rows.vectors[:1]), 1).ids == ("0000",)


@pytest.mark.parametrize("training", [None, global_rows("ab", np.ones((2, 7))), global_rows("", np.ones((0, 32)))])
def test_a_branch_that_cannot_train_it_is_refused(tmp_path: Path, rows: Descriptors, training: Descriptors | None):
    chunks = None if training is None else lambda: iter([training])
    with pytest.raises(RecipeError, match="branch 2 cannot train"):
        index.build("ivfpq", train_branch=2).create(cut(rows, 100), tmp_path, training=chunks)


def test_too_few_rows_stay_as_they_are(tmp_path: Path):
    few = cluster_rows(12)  # 60 rows, and 64 words
    searcher = create(tmp_path / "index", few)
    assert searcher.layout.kind == "flat"
    scores = (few.vectors @ few.vectors[7]).reshape(12, REGIONS).max(axis=1)
    ranking = searcher.search(global_rows("q", few.vectors[7:8]), 12)
    np.testing.assert_allclose(ranking.scores, np.sort(scores)[::-1], atol=1e-6)
    assert ranking.ids[0] == "0001"


def test_a_small_sample_makes_fewer_words_and_lists(tmp_path: Path, rows: Descriptors):
    layout = create(tmp_path / "index", rows, train_rows=50).layout
    assert (layout.kind, layout.bits, layout.nlist, layout.trained_on) == ("pq", 5, 1, 50)


def test_lists_are_as_many_as_asked_for_where_the_rows_allow_it(tmp_path: Path, rows: Descriptors):
    assert create(tmp_path / "asked", rows, nlist=16).layout.nlist == 16
    assert create(tmp_path / "most", rows).layout.nlist == 3000 // 39
    assert create(tmp_path / "chosen", rows, nlist=0, train_rows=3000).layout.nlist == 76


def test_an_m_that_does_not_divide_the_dimensions_is_refused_with_those_that_do(tmp_path: Path, rows: Descriptors):
    with pytest.raises(RecipeError, match="1, 2, 4, 8, 16, 32"):
        create(tmp_path / "index", rows, m=5)
    assert create(tmp_path / "eight", rows, m=8).layout.m == 8


def test_a_search_looks_further_until_there_are_k_images(tmp_path: Path, rows: Descriptors):
    searcher = create(tmp_path / "index", rows, nlist=64, nprobe=1, refine=1)
    assert len(searcher.search(global_rows("q", rows.vectors[:1]), 500).ids) == 500


@pytest.mark.parametrize("keep", ["none", "fp16"])
def test_a_wide_filter_is_walked_through_and_a_narrow_one_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Descriptors, exact: Searcher, keep: str
):
    searcher = create(tmp_path / "index", rows, keep=keep, m=32, nbits=5)
    allowed = frozenset(rows.ids[::2])
    query = global_rows("q", rows.vectors[5:6])
    truth = set(exact.search(query, 10, allowed).ids)
    for few in (20_000, 0):
        monkeypatch.setattr("resight.index.rows.approximate.FEW_ROWS", few)
        found = set(searcher.search(query, 10, allowed).ids)
        assert found <= allowed
        assert len(found & truth) >= 9


def test_its_bytes(tmp_path: Path, rows: Descriptors):
    searcher = create(tmp_path / "index", rows, m=8, nbits=8, keep="none", nlist=4)
    assert searcher.bytes_uncompressed == 3000 * 32 * 4
    codes, numbers, words = 3000 * 8, 3000 * 8, 256 * 32 * 4
    assert codes + numbers + words < searcher.bytes_in_memory < codes + numbers + words + 10_000
    kept = create(tmp_path / "kept", rows, m=8, nbits=8, nlist=4)
    assert kept.bytes_in_memory == searcher.bytes_in_memory
    assert kept.bytes_on_disk == searcher.bytes_on_disk + 3000 * 32 * 2 + 128
    assert searcher.bytes_kept == searcher.bytes_in_memory  # the codes alone
    assert kept.bytes_kept == searcher.bytes_in_memory + 3000 * 32 * 2  # and the rows in float16


def test_its_file_has_the_size_that_patchify_prints(tmp_path: Path):
    """Table 7 of Patchify is centroids, words, 64 + 8 bytes per row and 8 bytes per list; here 4 lists and m = 8."""
    rows = cluster_rows(100)
    searcher = create(tmp_path / "a", rows, m=8, nbits=8, nlist=4, keep="none")
    centroids, words, codes, lists = 4 * 32 * 4, 256 * 32 * 4, 500 * (8 + 8), 4 * 8
    offsets = 101 * 8
    assert 0 < searcher.bytes_kept - offsets - (centroids + words + codes + lists) < 400  # the header of faiss
    assert searcher.bytes_on_disk < searcher.bytes_kept + 500 * 16 + 5000  # boxes and ids, and no matrix


def test_as_many_lists_as_asked_for(tmp_path: Path):
    rows = cluster_rows(100)
    assert create(tmp_path / "few", rows, nlist=100).layout.nlist == 500 // 39
    assert create(tmp_path / "all", rows, nlist=100, rows_per_list=1).layout.nlist == 100


def test_the_transform_that_changes_nothing_has_no_matrix(tmp_path: Path):
    save_pretransform(identity(3), tmp_path)
    assert (tmp_path / "turn_matrix.npy").stat().st_size == 128
    loaded = load_pretransform(tmp_path)
    assert loaded.nbytes == 0 and loaded.apply(np.eye(3, dtype=np.float32)).tolist() == np.eye(3).tolist()
    turned = loaded.compose(np.eye(3, dtype=np.float32)[::-1])
    assert turned.apply(np.array([[1, 2, 3]], np.float32)).tolist() == [[3, 2, 1]]
    save_pretransform(Pretransform(np.zeros(3, np.float32), np.eye(3, dtype=np.float32), False), tmp_path)
    assert load_pretransform(tmp_path).nbytes == 36  # as older versions wrote it


@pytest.mark.parametrize("settings", [{"fast": True, "nbits": 8}, {"nprobe": 0}, {"refine": 0}, {"train_on": "L4"}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]):
    with pytest.raises(RecipeError):
        index.build("ivfpq", **settings)


def test_a_damaged_index_is_not_opened(tmp_path: Path, rows: Descriptors):
    create(tmp_path / "index", rows)
    np.save(tmp_path / "index" / "vectors.npy", np.zeros((2, 32), np.float16))
    with pytest.raises(Exception, match="damaged"):
        index.build("ivfpq").open(tmp_path / "index")


def test_without_a_row_for_each_dimension_nothing_is_rotated(tmp_path: Path):
    few = cluster_rows(20)
    (tmp_path / "index").mkdir()
    plugin = index.build("ivfpq", m=16, nbits=4, rotation=True, train_on="L0")
    searcher: Any = plugin.create(cut(few, 20), tmp_path / "index")
    assert searcher.layout.trained_on == 20 < DIMENSIONS
    assert searcher.search(global_rows("q", few.vectors[:1]), 1).ids == ("0000",)


def test_whitening_separates_rows_that_have_much_in_common(tmp_path: Path):
    rows = cluster_rows()
    common = rows.vectors + 4 * np.ones(DIMENSIONS, np.float32) / np.sqrt(DIMENSIONS)
    alike = replace(rows, vectors=(common / np.linalg.norm(common, axis=1, keepdims=True)).astype(np.float32))
    (tmp_path / "exact").mkdir()
    truth = index.build("exact").create(cut(alike, 100), tmp_path / "exact")
    recalls = {}
    for dimensions in (0, 16):
        searcher = create(tmp_path / str(dimensions), alike, m=8, nlist=1, keep="none", dimensions=dimensions)
        recalls[dimensions] = sum(
            len(set(searcher.search(query, 10).ids) & set(truth.search(query, 10).ids))
            for query in (global_rows("q", alike.vectors[row][None]) for row in range(0, 400, 20))
        )
    assert recalls[16] > recalls[0]
    assert searcher.bytes_uncompressed == 4 * len(alike) * DIMENSIONS


def test_one_row_is_too_few_to_learn_whitening(tmp_path: Path):
    searcher = create(tmp_path / "index", cluster_rows(1), dimensions=8, m=4)
    assert searcher.search(global_rows("q", cluster_rows(1).vectors[:1]), 3).ids == ("0000",)
