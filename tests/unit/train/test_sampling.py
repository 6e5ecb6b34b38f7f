from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from resight.train.sampling import choose_size, count_steps, find_groups, plan_epoch
from resight.train.train_config import Settings

LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
SIZES = np.array([[400, 400]] * 4 + [[800, 400]] * 3 + [[400, 800]] * 3)
GROUPED = Settings(batch=2, size=128)


def test_a_group_is_a_step_of_the_logarithm_of_width_by_height():
    sizes = np.array([[400, 400], [440, 400], [800, 400], [400, 800], [9000, 100]])
    assert find_groups(sizes, Settings(ratio_step=0.5)).tolist() == [0, 0, 2, -2, 4]


def test_a_group_has_its_own_size_of_about_the_same_area():
    settings = Settings(size=224, ratio_step=0.5)
    assert choose_size(0, settings, 32) == (224, 224)
    assert choose_size(2, settings, 32) == (320, 160)  # 224 √2 = 316.8 and 158.4, in whole cells
    assert choose_size(-2, settings, 32) == (160, 320)
    assert choose_size(2, replace(settings, sampling="fixed"), 32) == (224, 224)


def test_every_image_is_in_an_epoch_and_batches_are_full():
    batches = plan_epoch(LABELS, SIZES, GROUPED, 32, 0)
    assert len(batches) == count_steps(LABELS, GROUPED) == 5
    assert all(len(batch.images) == 2 for batch in batches)
    assert Counter(image for batch in batches for image in batch.images) == Counter(range(10))


def test_images_of_a_shape_share_batches_of_that_shape():
    inputs = {(400, 400): (128, 128), (800, 400): (192, 96), (400, 800): (96, 192)}
    batches = plan_epoch(LABELS, SIZES, GROUPED, 32, 3)
    pure = [batch for batch in batches if len({tuple(SIZES[image]) for image in batch.images}) == 1]
    assert len(pure) >= 3  # the third of three tall images is left, and goes with the next wider ones
    for batch in pure:
        assert inputs[tuple(SIZES[batch.images[0]])] == (batch.width, batch.height)


def test_the_last_batch_is_filled_with_images_of_the_epoch():
    batches = plan_epoch(LABELS, None, replace(GROUPED, batch=4), 32, 0)
    shown = Counter(image for batch in batches for image in batch.images)
    assert len(batches) == 3 and sum(shown.values()) == 12
    assert set(shown) == set(range(10)) and max(shown.values()) == 2


def test_an_epoch_follows_from_the_seed_and_its_number():
    assert plan_epoch(LABELS, SIZES, GROUPED, 32, 4) == plan_epoch(LABELS, SIZES, GROUPED, 32, 4)
    assert plan_epoch(LABELS, SIZES, GROUPED, 32, 4) != plan_epoch(LABELS, SIZES, GROUPED, 32, 5)
    assert plan_epoch(LABELS, SIZES, GROUPED, 32, 4) != plan_epoch(LABELS, SIZES, replace(GROUPED, seed=1), 32, 4)


def test_balanced_epochs_show_every_class_equally_often():
    labels = np.array([0] * 10 + [1] * 2)
    settings = replace(GROUPED, balance="classes")
    batches = plan_epoch(labels, None, settings, 32, 0)
    shown = Counter(int(labels[image]) for batch in batches for image in batch.images)
    assert shown == {0: 6, 1: 6}
    assert len(batches) == count_steps(labels, settings) == 6


@pytest.mark.parametrize("epoch", range(3))
def test_images_of_a_class_come_together(epoch: int):
    settings = replace(GROUPED, batch=4, together=2)
    batches = plan_epoch(LABELS, SIZES, settings, 32, epoch)
    assert len(batches) == count_steps(LABELS, settings) == 3  # 4 + 4 + 4 images: three classes, in whole runs
    for batch in batches:
        labels = LABELS[list(batch.images)]
        assert labels[0] == labels[1] and labels[2] == labels[3]
    assert {image for batch in batches for image in batch.images} == set(range(10))
