"""The curves' steps, and the recipes that they are measured with."""

import pytest

from resight import plugins
from resight.errors import InputError, RecipeError
from resight.evaluate import curves
from resight.evaluate.curves import compression, shortlist
from resight.search import rerankers
from resight.search.pipeline import Pipeline
from resight.types import Branch, Choice, Recipe

ENCODER = Choice("efficientnet_lite")
TOKENS = Branch(ENCODER, Choice("aggregated"))
TWO = Recipe("two", (TOKENS,), rerankers=(Choice("geometry"), Choice("late", {"candidates": 7, "kind": "int8"})))


@pytest.mark.parametrize(
    ("steps", "images", "counts"),
    [
        (shortlist.SHARES, 200, [2, 4, 10, 20, 40, 100, 200]),
        (shortlist.SHARES, 12, [1, 2, 6, 12]),  # 0.12, 0.24, 0.6, 1.2 are all one image
        (("10", "50", " 50"), 200, [10, 50, 200]),
        (("5%", "12.5%", "300"), 200, [10, 25, 200]),
        ((), 3, [3]),
    ],
)
def test_candidates_are_counted_from_1_to_all_each_once(steps: tuple[str, ...], images: int, counts: list[int]) -> None:
    assert shortlist.count_candidates(steps, images) == counts


@pytest.mark.parametrize("step", ["few", "0", "-3", "0%", "1.5", "%", "nan%"])
def test_what_is_no_number_of_candidates_is_refused(step: str) -> None:
    with pytest.raises(InputError, match="not a number of candidates"):
        shortlist.count_candidates((step,), 100)


def test_only_the_reranker_and_its_candidates_change() -> None:
    chain = tuple(rerankers.build(choice.name, **choice.settings) for choice in TWO.rerankers)
    pipeline = Pipeline((), None, chain, None, None)  # type: ignore[arg-type]
    way = shortlist.limit_candidates(TWO, pipeline, 1, 3)
    recipe, changed = way.recipe, way.pipeline
    assert recipe.rerankers == (TWO.rerankers[0], Choice("late", {"candidates": 3, "kind": "int8"}))
    assert changed.rerankers[0] is chain[0]
    assert [part.candidates for part in changed.rerankers] == [30, 3]
    assert TWO.rerankers[1].settings["candidates"] == 7


def test_codes_are_read_and_listed_for_the_dimensions() -> None:
    assert compression.list_steps(208) == ["fp32", "fp16", "int8", "pq104x4", "pq52x8", "pq52x4", "pq26x8"]
    assert compression.list_steps(6) == ["fp32", "fp16", "int8", "pq3x4"]
    assert compression.list_steps(7) == ["fp32", "fp16", "int8"]
    assert compression.read_step("pq52x8") == {"kind": "pq", "m": 52, "bits": 8}
    assert compression.read_step("fp16") == {"kind": "fp16"}


@pytest.mark.parametrize("step", ["pq", "pq8", "pq0x8", "pq8x5", "int4", "PQ8x8", ""])
def test_a_code_that_does_not_exist_is_refused(step: str) -> None:
    with pytest.raises(InputError, match="is not a kind of code"):
        compression.read_step(step)


def test_codes_alone_give_the_answer_and_only_pq_is_trained() -> None:
    recipe = Recipe("one", (TOKENS,), index=Choice("maxsim", {"kind": "int8", "exact": True, "train_on": "day/*"}))
    pq = compression.choose_codes(recipe, 0, compression.read_step("pq52x8")).branches[0].index
    alone = {"keep": "none", "exact": False}
    assert pq == Choice("maxsim", {"kind": "pq", "m": 52, "bits": 8, "train_on": "day/*", **alone})
    full = compression.choose_codes(recipe, 0, {"kind": "fp32"}).branches[0].index
    assert full == Choice("maxsim", {"kind": "fp32", **alone})
    for choice in (pq, full):
        assert choice is not None
        plugins.configure(plugins.find("resight.index", choice.name).Config, choice.settings, choice.name)


def test_the_branch_with_tokens_is_found_by_its_index() -> None:
    pooled = Branch(ENCODER, Choice("pooled"), index=Choice("exact"))
    assert compression.find_branch(Recipe("a", (pooled, TOKENS), index=Choice("maxsim"))) == 1
    for recipe in (Recipe("b", (TOKENS,)), Recipe("c", (TOKENS, TOKENS), index=Choice("maxsim"))):
        with pytest.raises(RecipeError, match="no tokens"):
            compression.find_branch(recipe)


def test_the_size_of_a_token_is_that_of_an_image_shared_out() -> None:
    assert compression.Size(image=3200.0, tokens=32.0).token == 100
    assert compression.Size(image=8.0, tokens=0.0).token == 0


@pytest.mark.parametrize("name", plugins.names("resight.evaluate.curves"))
def test_every_curve_takes_steps_a_loss_and_a_metric(name: str) -> None:
    assert curves.build(name, loss=0.5, metric="ap")
    assert curves.build(name)
    for loss in (-0.1, 1.5):
        with pytest.raises(RecipeError, match="out of range"):
            curves.build(name, loss=loss)
