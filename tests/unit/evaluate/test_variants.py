"""Which variants share a collection, and how each finds its branches; what is told of those that cannot run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.evaluations import make_result

from resight.errors import MissingExtra, MissingFile, MissingWeights, RecipeError, SpaceMismatch
from resight.evaluate import variants as compared
from resight.evaluate.measure import SearchVariant, hide_branches
from resight.evaluate.results import RunResult
from resight.evaluate.variants import group, join, measure_variants, weigh
from resight.types import Branch, Choice, Dataset, Descriptors, Query, Recipe

A, B = Choice("efficientnet_lite", {"size": 64}), Choice("efficientnet_lite", {"size": 96})
POOLED, TOKENS = Choice("pooled"), Choice("tokens")


def make(*branches: Branch, rerankers: tuple[str, ...] = ()) -> Recipe:
    return Recipe("r", branches, rerankers=tuple(Choice(name) for name in rerankers))


def test_variants_with_the_same_encoders_share_a_collection() -> None:
    variants = [make(Branch(A, POOLED)), make(Branch(B, POOLED)), make(Branch(A, TOKENS)), make(Branch(A, POOLED))]
    assert group(variants) == [[0, 2, 3], [1]]


def test_variants_with_rerankers_share_one_only_when_their_branches_are_the_same() -> None:
    both = (Branch(A, POOLED), Branch(A, TOKENS, weight=0))
    other = (Branch(A, POOLED), Branch(A, Choice("aggregated"), weight=0))
    variants = [
        make(*both, rerankers=("late",)),
        make(*other, rerankers=("late",)),
        make(*both, rerankers=("geometry",)),
    ]
    assert group(variants) == [[0, 2], [1]]


def test_joined_branches_are_the_distinct_encodings_of_all() -> None:
    variants = [make(Branch(A, POOLED)), make(Branch(A, TOKENS, weight=2)), make(Branch(A, POOLED), Branch(A, POOLED))]
    assert [branch.descriptor for branch in join(variants)] == [POOLED, TOKENS, POOLED]
    assert {branch.weight for branch in join(variants)} == {0.0}


def test_a_variant_gives_weight_to_its_own_branches_alone() -> None:
    own = Branch(A, TOKENS, weight=2, index=Choice("maxsim"))
    branches = join([make(Branch(A, POOLED)), make(own)])
    weighed, positions = weigh(make(own), branches)
    assert (weighed.branches, positions) == ((branches[0], own), {1})
    assert [branch.weight for branch in weighed.branches] == [0, 2]


def test_an_index_that_learns_from_another_branch_is_told_where_that_is_now() -> None:
    learning = Choice("ivfpq", {"train_branch": 1})
    own = (Branch(A, TOKENS, index=learning), Branch(A, POOLED, weight=0))
    branches = join([make(Branch(A, Choice("aggregated"))), make(Branch(A, POOLED)), make(*own)])
    weighed, positions = weigh(replace(make(*own), index=learning), branches)
    assert positions == {1, 2} and branches[1].descriptor == POOLED
    assert weighed.branches[2].index == weighed.index == learning  # which is number 1 here, too
    weighed, _ = weigh(make(*own), (*branches[:1], *branches[2:], branches[1]))
    assert weighed.branches[1].index == Choice("ivfpq", {"train_branch": 2})


def test_a_branch_that_a_variant_has_twice_is_found_twice() -> None:
    twice = make(Branch(A, POOLED), Branch(A, POOLED, index=Choice("hnsw")))
    weighed, positions = weigh(twice, join([twice]))
    assert (weighed.branches, positions) == (twice.branches, {0, 1})


def test_a_query_shows_a_variant_nothing_of_other_branches() -> None:
    boxes = np.zeros((2, 4), np.float32)
    rows = Descriptors(("q",), np.ones((2, 3), np.float32), np.zeros(2, np.int32), boxes=boxes, space="s")
    query = Query("q", (10, 10), (0, 0, 10, 10), (rows, rows))
    first, second = hide_branches(query, frozenset({1})).descriptors
    assert (first.boxes, len(first), first.space) == (None, 0, "s")
    assert second is rows
    assert hide_branches(query, None) is query


class FakeCollection:
    """Two images, each with a vector of 8 bytes a branch."""

    def __len__(self) -> int:
        return 2

    def descriptors(self, branch: int) -> list[Descriptors]:  # noqa: ARG002
        return [Descriptors(("a", "b"), np.ones((2, 2), np.float32), np.arange(2, dtype=np.int32))]


@contextmanager
def fake_prepare(recipe: Recipe, dataset: Dataset, **how: Any) -> Iterator[Any]:  # noqa: ARG001
    for branch in recipe.branches:
        if branch.encoder.name == "gated":
            raise MissingWeights("no weights", expected="a file", actual="none", fix="ask for them")
        if branch.encoder.name == "extra":
            raise MissingExtra("no package")
        if branch.encoder.name == "broken":
            raise RecipeError("no such setting")
        if branch.regions is not None:
            raise MissingFile("no such file", fix="make it")
    yield SimpleNamespace(collection=FakeCollection(), pipeline=fake_pipeline)


def fake_pipeline(recipe: Recipe) -> None:
    if Choice("pipeline") in recipe.rerankers:
        raise RecipeError("no pipeline")


def fake_measure(encoded: Any, variants: Sequence[SearchVariant], *_: object) -> list[RunResult]:  # noqa: ARG001
    quality = {"good": 1.0, "fair": 0.5}
    if any(Choice("search") in variant.recipe.rerankers for variant in variants):
        raise SpaceMismatch("no search")
    return [
        make_result({"ap": [quality[variant.recipe.branches[0].encoder.name]]}, recipe=variant.recipe)
        for variant in variants
    ]


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "prepare", fake_prepare)
    monkeypatch.setattr(compared, "measure", fake_measure)


DATASET = Dataset("walls", (), (), {})


def line_up(*encoders: str) -> list[Recipe]:
    return [
        replace(make(Branch(Choice(encoder), POOLED)), name=f"zoo: {number} {encoder}", metrics=("ap",))
        for number, encoder in enumerate(encoders)
    ]


@pytest.mark.usefixtures("faked")
def test_rows_that_cannot_run_are_told_and_the_others_run() -> None:
    found = measure_variants(line_up("gated", "good", "extra", "fair", "gated"), DATASET)
    assert [row.label for row in found.rows] == ["1 good", "3 fair"]
    assert [(row.label, row.after, row.reason) for row in found.absent] == [
        ("0 gated", 0, "no weights; ask for them"),
        ("2 extra", 1, "no package"),
        ("4 gated", 2, "no weights; ask for them"),
    ]
    assert found.reference_label == "1 good"  # the first that ran
    assert found.title == "zoo: walls, 40 images"
    facts = {name: fact.value for name, fact in found.rows[0].facts.items()}
    assert facts["bytes an image"] == 8 and facts["megabytes"] == 40 * 8 / 1e6
    assert (facts["rows an image"], facts["compression"]) == (1, 1)
    assert found.table.columns[1:3] == ("bytes per image", "ms to encode")  # the others are in the file alone
    assert found.rows[0].facts["ms to encode"].text == "500"


@pytest.mark.usefixtures("faked")
def test_where_no_row_can_run_the_first_error_says_so() -> None:
    with pytest.raises(MissingWeights) as caught:
        measure_variants(line_up("gated", "extra"), DATASET)
    assert caught.value.problem == "none of 2 rows could run; the first: no weights"
    assert (caught.value.expected, caught.value.actual, caught.value.fix) == ("a file", "none", "ask for them")


@pytest.mark.usefixtures("faked")
def test_a_row_with_a_bad_setting_takes_no_other_with_it() -> None:
    found = measure_variants(line_up("good", "broken", "fair"), DATASET)
    assert [row.label for row in found.rows] == ["0 good", "2 fair"]
    assert [(row.label, row.reason) for row in found.absent] == [("1 broken", "no such setting")]


@pytest.mark.usefixtures("faked")
def test_a_region_source_that_is_missing_costs_the_rows_that_use_it() -> None:
    """Three rows share an encoder, and so a collection; one has regions from a file that is not there."""
    rows = line_up("good", "good", "good")
    lost = replace(rows[1].branches[0], regions=Choice("file", {"path": "absent.csv"}))
    found = measure_variants([rows[0], replace(rows[1], branches=(lost,)), rows[2]], DATASET)
    assert [row.label for row in found.rows] == ["0 good", "2 good"]
    assert [(row.label, row.after, row.reason) for row in found.absent] == [("1 good", 1, "no such file; make it")]


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize("where", ["pipeline", "search"])
def test_a_reranker_that_fails_costs_its_own_row(where: str) -> None:
    rows = [replace(row, rerankers=(Choice("late"),)) for row in line_up("good", "good", "good", "good")]
    rows[2] = replace(rows[2], rerankers=(Choice(where),))
    found = measure_variants(rows, DATASET)
    assert [row.label for row in found.rows] == ["0 good", "1 good", "3 good"]
    assert [(row.label, row.reason) for row in found.absent] == [("2 good", f"no {where}")]


@pytest.mark.usefixtures("faked")
def test_the_bar_is_told_which_rows_are_evaluated() -> None:
    told: list[str] = []
    measure_variants(line_up("good", "gated", "good", "fair"), DATASET, report=told.append)
    assert told == [
        "evaluating 0 good and 1 more, 1 of 3", "evaluating 1 gated, 2 of 3", "evaluating 3 fair, 3 of 3"
    ]  # fmt: skip
    told.clear()
    measure_variants(line_up("good", "good"), DATASET, report=told.append)
    assert told == []


@pytest.mark.usefixtures("faked")
def test_many_recipes_have_the_name_that_is_given_and_labels_of_their_own() -> None:
    one, other = line_up("good")[0], line_up("fair")[0]
    rows = [replace(one, name="a: x"), replace(other, name="b: x")]
    found = measure_variants(rows, DATASET, name="a, b")
    assert found.title == "a, b: walls, 40 images"
    assert [row.label for row in found.rows] == ["a: x", "b: x"]
