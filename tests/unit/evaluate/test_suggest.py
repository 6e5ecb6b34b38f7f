"""The preset that suits a sample of images, tried on drawn ones."""

import cv2
import numpy as np
import pytest
from support.builders import draw_texture

from resight.errors import InputError
from resight.evaluate.suggest import Trial, _compare, sample_truth, sample_views, suggest
from resight.recipe import load
from resight.types import Dataset, ImageRef, Judgement


@pytest.fixture(scope="module")
def refs(tmp_path_factory: pytest.TempPathFactory) -> list[ImageRef]:
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(4)
    found = []
    for number in range(9):
        path = folder / f"{number}.png"
        cv2.imwrite(str(path), draw_texture(rng, 320, 240))
        found.append(ImageRef(path.name, path))
    (folder / "broken.png").write_bytes(b"no image")
    return [*found, ImageRef("broken.png", folder / "broken.png")]


def test_views_are_made_of_readable_images_half_flat_and_half_places(refs: list[ImageRef]):
    sample = sample_views(refs, 10, 4, np.random.default_rng(1))
    assert sample.synthetic and len(sample.database) == 9
    assert "broken.png" not in {ref.id for ref in sample.database}
    assert [query.size[0] for query, _ in sample.queries] == [700, 640, 700, 640]
    assert all(len(answers) == 1 for _, answers in sample.queries)


def test_a_preset_is_suggested_with_its_figures(refs: list[ImageRef]):
    sample = sample_views(refs, 10, 8, np.random.default_rng(1))
    done: list[tuple[int, int]] = []
    found = suggest(sample, [load("sift"), load("tokens")], lambda *each: done.append(each))
    assert done == [(1, 2), (2, 2)]
    assert {trial.preset for trial in found.trials} == {"sift", "tokens"}
    assert found.trials[0].recall >= found.trials[1].recall
    assert found.trials[0].recall > 0.6
    assert found.preset in {trial.preset for trial in found.trials if trial.as_good_as_the_best}
    assert all(trial.bytes_per_image > 1000 and trial.milliseconds > 0 for trial in found.trials)


def test_own_truth_keeps_every_answer_in_the_sample(refs: list[ImageRef]):
    queries = [ImageRef(f"q{number}", refs[number].path) for number in range(9)]
    truth = {query.id: Judgement({refs[number].id: 1}) for number, query in enumerate(queries)}
    dataset = Dataset("own", tuple(refs), tuple(queries), truth)
    sample = sample_truth(dataset, 4, 8, np.random.default_rng(0))
    ids = {ref.id for ref in sample.database}
    assert not sample.synthetic and len(sample.queries) == 8
    assert all(answers <= ids for _, answers in sample.queries)


def test_too_few_queries_are_refused(refs: list[ImageRef]):
    with pytest.raises(InputError, match="too few readable images"):
        sample_views(refs[:3], 10, 4, np.random.default_rng(1))


def test_a_preset_that_is_clearly_worse_is_not_as_good():
    best, worse, near = np.ones(40), np.r_[np.ones(20), np.zeros(20)], np.r_[np.ones(39), 0.0]
    trials: list[Trial] = [_compare("x", values, best, (1.0, 1.0)) for values in (best, worse, near)]
    assert [trial.as_good_as_the_best for trial in trials] == [True, False, True]
