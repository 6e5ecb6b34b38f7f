"""The loss by hand, gains by hand, training that stops in time, and the recipe that is written."""

from pathlib import Path

import numpy as np
import pytest
import torch

from resight import recipe as recipes
from resight.encode import heads as head_files
from resight.evaluate import judge
from resight.evaluate.statistics.tests import paired_interval, randomisation_test
from resight.recipe.tables import write_recipe
from resight.train import heads
from resight.train.cached_features import CachedFeatures, choose
from resight.train.fit_head import MaxSimContrast, Settings, fit, maxsim_matrix
from resight.train.head_evaluation import choose_queries, compare, measure
from resight.types import Branch, Choice, Recipe


def make_rows(things: int = 8, images: int = 4, noise: float = 3.0) -> CachedFeatures:
    """One row an image: two dimensions tell things apart, two are loud and say nothing."""
    rng = np.random.default_rng(0)
    angles = np.repeat(np.arange(things) * 2 * np.pi / things, images)
    rows = np.stack([np.cos(angles), np.sin(angles), *(noise * rng.normal(size=(2, len(angles))))], axis=1)
    labels = np.repeat(np.arange(things), images)
    ids = tuple(f"image {number}" for number in range(len(rows)))
    return CachedFeatures(ids, labels, rows.astype(np.float16), np.arange(len(rows) + 1))


def test_late_interaction_of_a_batch_leaves_out_rows_that_are_not_there() -> None:
    queries = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8], [0.0, 0.0]]])
    images = torch.tensor([[[1.0, 0.0], [0.0, 9.0]], [[0.0, 1.0], [0.8, 0.6]]])
    found = maxsim_matrix(
        queries, torch.tensor([[True, True], [True, False]]), images, torch.tensor([[True, False], [True, True]])
    )
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.9], [0.6, 0.96]]))


def test_the_loss_is_the_cross_entropy_both_ways() -> None:
    rows, mask = torch.eye(2)[:, None], torch.ones(2, 1, dtype=torch.bool)
    loss = MaxSimContrast(scale=1.0)(rows, mask, rows, mask)  # scores 1 on the diagonal, 0 elsewhere
    assert loss.item() == pytest.approx(np.log(1 + np.exp(-1)))


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_a_head_in_torch_and_its_arrays_answer_alike(name: str) -> None:
    rows = np.asarray(make_rows().vectors, np.float32)
    module = heads.build(name, rows, seed=0, dimensions=3)
    for parameter in module.parameters():
        parameter.data += 0.1
    exported = head_files.make(module.export(), head_files.Facts("", name, 0, 0))
    np.testing.assert_allclose(exported.apply(rows), module(torch.from_numpy(rows)).detach().numpy(), atol=1e-5)


def test_before_training_a_head_of_all_dimensions_keeps_cosines_of_centred_rows() -> None:
    rows = np.asarray(make_rows().vectors, np.float32)
    out = heads.build("mlp", rows, seed=0, dimensions=4)(torch.from_numpy(rows)).detach().numpy()
    centred = rows - rows.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(out @ out.T, centred @ centred.T, atol=1e-4)


def test_training_turns_down_what_says_nothing_about_the_thing() -> None:
    rows = make_rows()
    queries = choose_queries(rows, 100, np.random.default_rng(0))

    def validate(arrays: head_files.Mapping[str, np.ndarray]) -> float:
        head = head_files.make(arrays, head_files.Facts("", "linear", 0, 0))
        return float(measure(rows, head, queries, judge)["ap"].mean())

    head = heads.build("linear", np.asarray(rows.vectors, np.float32), seed=0, dimensions=2)
    settings = Settings(steps=120, instances=8, check=40, rate=0.05)
    fitted = fit(head, rows, validate, settings, np.random.default_rng(0))
    assert fitted.checks[0].score < 0.5 < 0.95 < fitted.score == validate(fitted.arrays)


def test_a_loss_that_is_no_number_ends_training_with_the_last_good_head() -> None:
    rows = make_rows()
    head = heads.build("linear", np.asarray(rows.vectors, np.float32), seed=0, dimensions=2)

    def spoil_after_the_first(arrays: head_files.Mapping[str, np.ndarray]) -> float:
        if not np.array_equal(arrays["skip"], begun):
            head.skip.data.fill_(torch.nan)
            return 0.9
        return 0.1

    begun = head.export()["skip"]
    fitted = fit(head, rows, spoil_after_the_first, Settings(steps=50, check=10), np.random.default_rng(0))
    assert "nan at step 11" in fitted.ended
    assert fitted.score == 0.9
    assert np.isfinite(fitted.arrays["skip"]).all()


def test_training_ends_when_nothing_better_comes() -> None:
    rows = make_rows()
    scores = iter([0.1, 0.5, 0.4, 0.4, 0.9])
    head = heads.build("linear", np.asarray(rows.vectors, np.float32), seed=0, dimensions=2)
    settings = Settings(steps=50, check=1, patience=2)
    fitted = fit(head, rows, lambda _: next(scores), settings, np.random.default_rng(0))
    assert (fitted.score, fitted.checks[-1].step) == (0.5, 3)


def test_things_count_alike_however_many_queries_they_have() -> None:
    before, after = np.array([0.0, 0.0, 0.5]), np.array([1.0, 0.0, 0.5])
    gain = compare(
        before,
        after,
        np.array([7, 7, 9]),
        lambda new, old, _: (min(new - old), max(new - old)),
        randomisation_test,
        None,
    )  # type: ignore[arg-type]
    assert (gain.before, gain.after, gain.difference) == (0.25, 0.5, 0.25)
    assert (gain.low, gain.high, gain.things, gain.queries) == (0.0, 0.5, 2, 3)


def test_an_image_is_no_answer_to_itself() -> None:
    vectors = np.array([[1, 0], [1, 0], [0.9, 0.1]], np.float16)
    rows = CachedFeatures(("a", "b", "c"), np.array([0, 1, 0]), vectors, np.arange(4))
    assert measure(rows, None, np.array([0]), judge)["ap"] == [0.5]  # b comes before c


def test_some_things_keep_their_images_and_rows() -> None:
    rows = CachedFeatures(
        tuple("abcd"), np.array([0, 0, 1, 2]), np.arange(7, dtype=np.float16)[:, None], np.array([0, 1, 3, 6, 7])
    )
    part = choose(rows, range(1, 3))
    assert (part.ids, part.labels.tolist(), part.offsets.tolist()) == (("c", "d"), [1, 2], [0, 3, 4])
    assert part.vectors[:, 0].tolist() == [3, 4, 5, 6]


def test_a_written_recipe_is_read_as_the_same(tmp_path: Path) -> None:
    branch = Branch(
        Choice("efficientnet_lite", {"size": 64, "fit": "squash"}),
        Choice("aggregated", {"k": 32, "blank": 0.6}),
        (Choice("head", {"file": 'a "quoted" \\ path/head.safetensors'}),),
        weight=0.5,
        index=Choice("late", {"cascade_keep": [10, 5], "exact": False}),
    )
    recipe = Recipe("mine", (branch,), rerankers=(Choice("layout"),), metrics=("ap",))
    write_recipe(recipe, tmp_path / "recipe.toml", "why\nit is so")
    assert recipes.load(tmp_path / "recipe.toml") == recipe
    assert (tmp_path / "recipe.toml").read_text().startswith("# why it is so\n")


def test_a_recipe_is_moved_with_the_files_beside_it(tmp_path: Path) -> None:
    def name_head(folder: Path) -> Recipe:
        transforms = (
            Choice("head", {"file": str(folder / "head.safetensors")}),
            Choice("head", {"file": "/else/where"}),
        )
        return Recipe("mine", (Branch(Choice("sift"), Choice("pooled"), transforms),))

    (tmp_path / "old").mkdir()
    write_recipe(name_head(tmp_path / "old"), tmp_path / "old" / "recipe.toml", "")
    (tmp_path / "old").rename(tmp_path / "new")
    assert recipes.load(tmp_path / "new" / "recipe.toml") == name_head(tmp_path / "new")


@pytest.mark.parametrize("things", [3, 6, 10, 20])
def test_a_gain_by_chance_is_seldom_sure(things: int) -> None:
    """Of heads that gain nothing, about one in 40 may pass. By the interval alone 12 % would, with three things."""
    rng = np.random.default_rng(things)
    drawn = rng.normal(0, 0.1, (400, things))
    gains = [
        compare(np.zeros(things), row, np.arange(things), paired_interval, randomisation_test, rng) for row in drawn
    ]
    assert np.mean([gain.is_sure for gain in gains]) <= 0.045  # 0.025, and 2.5 deviations of 400 draws
    if things == 3:
        assert np.mean([gain.low > 0 for gain in gains]) > 0.08


def test_a_gain_of_nearly_all_things_is_sure() -> None:
    rng = np.random.default_rng(0)
    gain = compare(
        np.zeros(6), np.array([0.2, 0.1, 0.3, 0.05, 0.2, 0.1]), np.arange(6), paired_interval, randomisation_test, rng
    )
    assert gain.is_sure and gain.chance == 1 / 64
    alike = compare(np.zeros(5), np.full(5, 0.2), np.arange(5), paired_interval, randomisation_test, rng)
    assert alike.low > 0 and alike.chance == 1 / 32 and not alike.is_sure
    many = compare(np.zeros(30), rng.normal(0.1, 0.05, 30), np.arange(30), paired_interval, randomisation_test, rng)
    assert many.is_sure and many.chance < 0.001
