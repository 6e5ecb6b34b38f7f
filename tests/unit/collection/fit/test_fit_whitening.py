"""Learning from a collection that is a small fake: rows and labels in memory, two images at a time."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from support.builders import global_rows

from resight.collection import Collection
from resight.collection.fit import fit_whitening
from resight.collection.fit import fit_whitening as known
from resight.collection.fit.fit_whitening import format_setting, learn_whitening, pair_by_labels, read_pairs
from resight.errors import InputError, ManifestError
from resight.types import Branch, Choice, Descriptors

POOLED = Branch(Choice("efficientnet_lite"), Choice("pooled"))


class FakeCollection:
    path = Path("fake.resight")
    recipe = SimpleNamespace(branches=(POOLED,))
    metadata = SimpleNamespace(spaces=("a space",))

    def __init__(self, vectors: Any, labels: Sequence[object] = ()) -> None:
        self._rows = {f"{number:03}": vector for number, vector in enumerate(np.asarray(vectors, np.float32))}
        self._labels = dict(zip(self._rows, labels, strict=False))

    def __len__(self) -> int:
        return len(self._rows)

    def records(self) -> Iterator[Any]:
        for name in self._rows:
            label = self._labels.get(name)
            yield SimpleNamespace(id=name, attributes={} if label is None else {"label": label})

    def descriptors(self, branch: int, ids: Sequence[str] | None = None) -> Iterator[Descriptors]:
        assert branch == 0
        names = list(self._rows if ids is None else ids)
        for start in range(0, len(names), 2):
            part = names[start : start + 2]
            yield global_rows(part, [self._rows[name] for name in part])


def learn(vectors: Any, labels: Sequence[object] = (), **settings: Any) -> Any:
    return learn_whitening(cast(Collection, FakeCollection(vectors, labels)), **settings)


def draw(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, 4))


def test_labels_decide_the_kind():
    assert learn(draw(6)).facts.kind == "pca"
    assert learn(draw(6), ["x", "y"]).facts.kind == "pca"
    assert learn(draw(6), ["x", "y", "x"]).facts.kind == "lw"
    assert learn(draw(6), ["x", "y", "x"], kind="pca").facts.kind == "pca"


def test_the_facts_tell_images_pairs_and_space():
    facts = learn(draw(7), ["x", "x", "x", "y", "y"]).facts
    assert (facts.images, facts.rows, facts.pairs, facts.space) == (7, 7, 4, "a space")


def test_images_without_features_are_left_out():
    rows = draw(8)
    rows[[1, 6]] = 0
    learnt = learn(rows, ["x", "x", "y", "y"])
    assert (learnt.facts.images, learnt.facts.rows, learnt.facts.pairs) == (8, 6, 1)
    np.testing.assert_allclose(learnt.mean, rows[[0, 2, 3, 4, 5, 7]].mean(axis=0), atol=1e-6)
    with pytest.raises(InputError, match="no pair has a vector"):
        learn(rows, ["x", "x"])


def test_vectors_that_are_not_numbers_are_named():
    rows = draw(6)
    rows[3, 1] = np.nan
    with pytest.raises(InputError, match="003"):
        learn(rows)


def test_very_many_pairs_are_drawn_from(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fit_whitening, "MOST_PAIRS", 3)
    labels = [number // 2 for number in range(20)]
    first, again, other = (learn(draw(20), labels, seed=seed) for seed in (0, 0, 1))
    assert first.facts.pairs == 3
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_progress_goes_from_the_first_image_to_twice_all_of_them():
    steps: list[tuple[int, int]] = []
    learn(draw(5), progress=lambda done, total: steps.append((done, total)))
    assert steps == [(2, 10), (4, 10), (5, 10), (7, 10), (9, 10), (10, 10)]


def test_the_setting_keeps_the_transforms_that_a_branch_has():
    branch = Branch(Choice("e"), Choice("d"), (Choice("multiscale", {"scales": [0.5, 1.0], "plain": True}),))
    key, _, value = format_setting(branch, 1, Path("my whitening.npz")).partition("=")
    assert key == "branches.1.transforms"
    assert tomllib.loads(f"value = {value}")["value"] == [
        {"name": "multiscale", "scales": [0.5, 1.0], "plain": True},
        {"name": "whiten", "file": "my whitening.npz"},
    ]


IDS = frozenset("abcd")


def write(folder: Path, *lines: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def draw_pairs(labels: dict[str, object], seed: int = 0) -> list[tuple[str, str]]:
    return pair_by_labels(labels, np.random.default_rng(seed))


def test_images_with_the_same_label_make_all_their_pairs():
    assert draw_pairs({"a": 1, "b": 2, "c": 1, "d": 1, "e": None, "f": None}) == [("a", "c"), ("a", "d"), ("c", "d")]


def test_a_label_with_many_images_gives_a_draw_of_different_pairs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known, "MOST_OF_A_LABEL", 20)
    labels: dict[str, object] = {f"{number:03}": "crowd" for number in range(200)}
    found = draw_pairs({**labels, "x": "few", "y": "few"})
    assert len(found) == len(set(found)) == 21
    assert all(first < second for first, second in found)
    assert (
        found
        == draw_pairs({**labels, "x": "few", "y": "few"})
        != draw_pairs({**labels, "x": "few", "y": "few"}, seed=1)
    )


def test_numbers_count_every_pair_once():
    pairs = [known._unrank(number) for number in range(4950)]
    assert pairs[:4] == [(0, 1), (0, 2), (1, 2), (0, 3)]
    assert set(pairs) == {(a, b) for b in range(100) for a in range(b)}
    for second in (10**5, 10**6, 3 * 10**6):  # where a root in floating point could be one off
        first = second * (second - 1) // 2
        assert (known._unrank(first), known._unrank(first - 1)) == ((0, second), (second - 2, second - 1))


def test_a_file_gives_each_pair_once_and_none_that_differ(tmp_path: Path):
    path = write(tmp_path, "a,b,same,note", "b,a,1,x", "a,b,1,y", "c,d,0,z", "c,a,1,", "d,d,1,")
    assert read_pairs(path, IDS) == [("a", "b"), ("a", "c")]


def test_the_column_same_may_be_missing(tmp_path: Path):
    assert read_pairs(write(tmp_path, "a,b", "a,d"), IDS) == [("a", "d")]


def test_ids_that_do_not_exist_are_listed(tmp_path: Path):
    with pytest.raises(ManifestError) as caught:
        read_pairs(write(tmp_path, "a,b", "a,v", "w,x", "y,z"), IDS)
    assert "5 images" in caught.value.problem
    assert caught.value.actual == "'v', 'w', 'x', …"


@pytest.mark.parametrize(
    "lines", [("a,c", "a,b"), ("",), ("a,b,same", "a,b,yes"), ("a,b,same", "a,b"), ("a,b", "a")], ids=str
)
def test_a_file_that_breaks_the_format_is_refused(tmp_path: Path, lines: tuple[str, ...]):
    with pytest.raises(ManifestError):
        read_pairs(write(tmp_path, *lines), IDS)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path):
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    for name in ("binary.csv", "missing.csv"):
        with pytest.raises(ManifestError, match=name):
            read_pairs(tmp_path / name, IDS)


def test_shrinkage_is_chosen_or_given():
    labels = [str(number // 2) for number in range(60)]
    assert learn(draw(60), labels).facts.shrinkage != 0
    assert learn(draw(60), labels, shrinkage=0.0).facts.shrinkage == 0
    assert learn(draw(60), kind="pca", shrinkage=0.0).facts.shrinkage == 0
