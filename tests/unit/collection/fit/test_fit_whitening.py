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
from resight.collection.fit.fit_whitening import format_setting, learn_whitening
from resight.errors import InputError
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
