"""Which points a grid has, what they are called, which of them are worth it, and what goes into the recipe."""

import numpy as np
import pytest
from support.builders import global_rows

from resight.errors import RecipeError
from resight.evaluate.index_grid import (
    Grid,
    GridPoint,
    choose_index,
    choose_parts,
    find_branch,
    list_choices,
    name_choices,
)
from resight.evaluate.tune_index import find_front, search_points, write_line
from resight.types import Branch, Choice, Descriptors, Ranking, Recipe

ENCODER, POOLED = Choice("efficientnet_lite"), Choice("pooled")
EXACT, TUNED = Choice("exact"), Choice("ivfpq", {"m": 8, "refine": 2})


def make(*indexes: Choice | None, index: Choice = EXACT) -> Recipe:
    return Recipe("r", tuple(Branch(ENCODER, POOLED, index=own) for own in indexes), index=index)


def test_every_combination_is_a_point_and_the_exact_one_comes_first() -> None:
    found = list_choices(Grid(m=(8, 16), nlist=(0,), nbits=(8,), nprobe=(4, 8)), EXACT, 64)
    assert found[0] == EXACT
    assert [(choice.name, choice.settings["m"], choice.settings["nprobe"]) for choice in found[1:]] == [
        ("ivfpq", 8, 4), ("ivfpq", 8, 8), ("ivfpq", 16, 4), ("ivfpq", 16, 8)
    ]  # fmt: skip
    assert name_choices(found) == ["exact", "m=8 nprobe=4", "m=8 nprobe=8", "m=16 nprobe=4", "m=16 nprobe=8"]


def test_rotation_fast_scan_and_training_multiply_the_points() -> None:
    grid = Grid(m=(8,), nprobe=(4,), rotation=True, fast=True, train_on=("L0", "2"))
    found = list_choices(grid, EXACT, 64)
    assert len(found) == 1 + 2 * 2 * 2
    assert name_choices(found)[1:3] == ["m=8 8 bits of L0", "m=8 8 bits of branch 2"]
    assert name_choices(found)[-1] == "m=8 4 bits fast OPQ of branch 2"
    assert {choice.settings["nbits"] for choice in found[1:] if choice.settings["fast"]} == {4}
    assert [choice.settings.get("train_branch") for choice in found[1:3]] == [None, 2]


def test_settings_of_the_recipe_stay_where_the_grid_says_nothing() -> None:
    exact, point = list_choices(Grid(m=(4,), nprobe=(4,)), Choice("ivfpq", {"m": 8, "refine": 2, "match": "mean"}), 64)
    assert exact == Choice("exact", {"match": "mean"})
    assert (point.settings["m"], point.settings["refine"], point.settings["match"]) == (4, 2, "mean")
    _, other = list_choices(Grid(m=(4,), nprobe=(4,)), Choice("hnsw", {"links": 8, "match": "best"}), 64)
    assert "links" not in other.settings and other.settings["match"] == "best"


def test_rows_are_cut_into_parts_that_divide_them() -> None:
    assert choose_parts(208) == [16, 26, 52]
    assert choose_parts(512) == [16, 32, 64]
    assert choose_parts(7) == [7]


def test_the_only_branch_with_vectors_is_tuned_or_the_one_that_is_chosen() -> None:
    assert find_branch(make(Choice("maxsim"), None)) == 1
    assert find_branch(make(None, TUNED), 1) == 1
    for recipe, chosen in ((make(None, None), None), (make(Choice("maxsim")), None), (make(Choice("maxsim"), None), 0)):
        with pytest.raises(RecipeError, match="to tune"):
            find_branch(recipe, chosen)
    assert choose_index(make(None, None), 1, TUNED).branches[1].index == TUNED


def test_the_front_holds_what_nothing_else_beats_in_everything() -> None:
    # quality, minus bytes, minus seconds
    points = [(0.9, -100.0, -5.0), (0.9, -100.0, -6.0), (0.8, -10.0, -5.0), (0.7, -20.0, -4.0), (0.7, -20.0, -5.5)]
    assert find_front(points) == [True, False, True, True, False]
    assert find_front([(1.0, 1.0), (1.0, 1.0)]) == [True, True]


def test_the_line_for_the_recipe_is_toml() -> None:
    choice = Choice("ivfpq", {"m": 16, "rotation": True, "train_on": "L0", "match": None})
    line = 'index = { name = "ivfpq", m = 16, rotation = true, train_on = "L0" }'
    assert write_line(make(None), 0, choice) == line
    assert write_line(make(None, TUNED), 1, choice) == f"in branch 1, counted from 0: {line}"
    assert write_line(make(None), 0, EXACT) == 'index = "exact"'


class Fixed:
    """Answers always with the same images."""

    def __init__(self, *ids: str) -> None:
        self.ids = ids

    def search(self, query: Descriptors, k: int, allowed: frozenset[str] | None = None) -> Ranking:  # noqa: ARG002
        return Ranking(query.ids[0], self.ids[:k], np.linspace(1, 0.5, k, dtype=np.float32))


def test_quality_without_truth_is_the_share_of_the_exact_answer() -> None:
    points = [
        GridPoint("exact", EXACT, Fixed("q", "a", "b", "c"), 0.0),
        GridPoint("rough", TUNED, Fixed("a", "x", "q", "b"), 0.0),
        GridPoint("blind", TUNED, Fixed("x", "y", "z"), 0.0),
    ]
    query = global_rows(["q"], [[1, 0]])
    judged = search_points(points, query, "q", 2, "recall_fraction@2", turn=1)  # q itself is left out of all answers
    assert [one.values["recall_fraction@2"] for one in judged] == [1.0, 0.5, 0.0]
    assert [one.best_id for one in judged] == ["a", "a", "x"]
    assert all(one.seconds >= 0 and one.query_id == "q" for one in judged)


def test_rows_are_cut_into_parts_of_what_whitening_leaves():
    grid = Grid(dimensions=(0, 24), nprobe=(4,))
    choices = list_choices(grid, Choice("exact"), 40)[1:]
    assert [(one.settings["dimensions"], one.settings["m"]) for one in choices] == [
        (0, 10), (0, 20), (0, 40), (24, 12), (24, 24),
    ]  # fmt: skip
    assert "whitened to 24" in name_choices(choices)[-1]
