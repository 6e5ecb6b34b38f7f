"""The index `late`: exact answers, what it refuses, and what it takes of memory and disk."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from token_rows import make_tokens, score_by_hand

from resight import index, kernels
from resight.errors import CollectionError, InputError, RecipeError, SpaceMismatch
from resight.kernels import dispatch, pack_files
from resight.types import Descriptors


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_exact_answers_are_those_of_the_formula_in_every_kind(tmp_path: Path, kind: str):
    images = make_tokens([1 + number % 7 for number in range(300)])
    searcher = index.build("late", kind=kind, keep="fp32").create(lambda: iter([images]), tmp_path)
    for seed in range(5):
        query = make_tokens([5], seed=100 + seed)
        truth = score_by_hand(query, images)
        found = searcher.search(query, 10)
        assert list(found.ids) == sorted(truth, key=lambda name: (-truth[name], name))[:10]
        assert found.scores == pytest.approx([truth[name] for name in found.ids], abs=1e-5)


def test_an_image_without_tokens_scores_0_and_is_listed(tmp_path: Path):
    images = make_tokens([3, 0, 2])
    searcher = index.build("late").create(lambda: iter([images]), tmp_path)
    found = searcher.search(make_tokens([2], seed=9), 3)
    assert dict(zip(found.ids, found.scores.tolist(), strict=True))["001"] == 0


@pytest.mark.parametrize("settings", [{}, {"exact": False}, {"cascade": True, "cascade_dims": 2}])
def test_an_image_without_tokens_comes_before_those_that_score_less_than_0(tmp_path: Path, settings: dict):
    axes = np.eye(4, dtype=np.float32)
    rows = Descriptors(("a", "b", "c"), np.stack([-axes[0], axes[0]]), np.array([0, 2], np.int32))
    searcher = index.build("late", **settings).create(lambda: iter([rows]), tmp_path)
    query = Descriptors(("q",), axes[:1], np.zeros(1, np.int32))
    assert searcher.search(query, 2).ids == ("c", "b")
    assert searcher.search(query, 3, frozenset("ab")).ids == ("b", "a")


def test_a_query_without_tokens_finds_everything_equally_good(tmp_path: Path):
    searcher = index.build("late").create(lambda: iter([make_tokens([3, 2, 1])]), tmp_path)
    found = searcher.search(make_tokens([0], seed=1), 2)
    assert (found.ids, found.scores.tolist(), found.proof) == (("000", "001"), [0, 0], "")


def test_only_what_is_allowed_is_found(tmp_path: Path):
    images = make_tokens([4] * 20)
    searcher = index.build("late").create(lambda: iter([images]), tmp_path)
    found = searcher.search(make_tokens([4], seed=3), 5, frozenset({"004", "011"}))
    assert set(found.ids) == {"004", "011"}


def test_of_equal_scores_at_the_cut_the_first_ids_come_in_however_they_were_stored(tmp_path: Path):
    token = np.ones((1, 4), np.float32) / 2
    ids = [f"{number:02}" for number in np.random.default_rng(0).permutation(60)]
    chunks = [Descriptors((name,), token, np.zeros(1, np.int32)) for name in ids]
    searcher = index.build("late").create(lambda: iter(chunks), tmp_path)
    assert searcher.search(replace(chunks[0], ids=("q",)), 3).ids == ("00", "01", "02")


def test_visual_words_are_refused(tmp_path: Path):
    rows = Descriptors(("a",), np.zeros((1, 2), np.uint8), np.zeros(1, np.int32), words=np.zeros(1, np.int32))
    with pytest.raises(RecipeError, match="needs tokens"):
        index.build("late").create(lambda: iter([rows]), tmp_path)


@pytest.mark.parametrize("other", [make_tokens([2], dimensions=8, space="a"), make_tokens([2], space="b")])
def test_rows_of_two_kinds_are_refused_with_both(tmp_path: Path, other: Descriptors):
    chunks = [make_tokens([2, 2], space="a"), replace(other, ids=("other",))]
    with pytest.raises(SpaceMismatch, match="16 dimensions, space 'a'"):
        index.build("late").create(lambda: iter(chunks), tmp_path)


def test_a_query_of_another_space_or_of_other_dimensions_is_refused_with_both(tmp_path: Path):
    plugin = index.build("late")
    plugin.create(lambda: iter([make_tokens([2, 2], space="tokens #1")]), tmp_path)
    searcher = plugin.open(tmp_path)
    with pytest.raises(SpaceMismatch) as refusal:
        searcher.search(make_tokens([2], space="tokens #2"), 1)
    assert (refusal.value.expected, refusal.value.actual) == ("tokens #1", "tokens #2")
    with pytest.raises(InputError, match="of 8 dimensions") as mismatch:
        searcher.search(make_tokens([2], dimensions=8, space="tokens #1"), 1)
    assert "16 dimensions" in mismatch.value.expected


def test_ids_and_pack_that_do_not_belong_together_are_refused(tmp_path: Path):
    plugin = index.build("late")
    plugin.create(lambda: iter([make_tokens([2, 2])]), tmp_path)
    (tmp_path / "images.json").write_text('{"space": "", "ids": ["a"]}')
    with pytest.raises(CollectionError, match="2 ids"):
        plugin.open(tmp_path)


@pytest.mark.parametrize(
    "settings", [{"kind": "fp32"}, {"kind": "pq", "m": 8, "keep": "fp16"}, {"cascade": True, "cascade_dims": 8}]
)
def test_tokens_are_written_once_and_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict
):
    """Twice as many images take twice the disk and little more memory: samples are of one size."""
    part = make_tokens([64] * 64, dimensions=32)  # half a MiB; 17 of them are more than any sample
    written: list[int] = []
    monkeypatch.setattr(np, "save", lambda path, array, save=np.save: (written.append(array.nbytes), save(path, array)))
    monkeypatch.setattr(pack_files, "LEAST", 0)  # small arrays would be read at the end

    def measure(parts: int, folder: Path) -> int:
        folder.mkdir()

        def chunks() -> Iterator[Descriptors]:
            return (replace(part, ids=tuple(f"{number}/{name}" for name in part.ids)) for number in range(parts))

        tracemalloc.start()
        index.build("late", **settings).create(chunks, folder)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert measure(34, tmp_path / "two") - measure(17, tmp_path / "one") < 3 << 20  # of 8.5 MiB more
    assert max(written) < 1 << 20
    assert {path.name for path in (tmp_path / "two").iterdir()} <= {"pack", "small", "images.json"}


@pytest.mark.skipif(kernels.implementation() == "numpy", reason="the kernels are not compiled")
@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_a_list_of_images_is_read_from_a_map_whose_pages_are_asked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setattr(pack_files, "LEAST", 0)  # small arrays would be read
    searcher = index.build("late", kind=kind, keep="none").create(lambda: iter([make_tokens([4] * 20)]), tmp_path)
    asked: list[tuple[bool, list[int] | None]] = []

    def note(_module, tokens, _offsets, rows):
        asked.append((isinstance(tokens, np.memmap), None if rows is None else rows.tolist()))

    monkeypatch.setattr(dispatch, "ask_pages", note)
    searcher.search(make_tokens([4], seed=1), 3, frozenset({"011", "004", "015"}))
    assert asked == [(True, [4, 11, 15])] * (3 if kind == "int8" else 1)  # codes, their steps and what to add
