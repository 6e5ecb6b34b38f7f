from pathlib import Path

import numpy as np
import pytest

from resight.boxes import crop, iou
from resight.errors import BoxError
from resight.types import ImageRef, Picture


def numbered(width: int, height: int, reduced: int = 1) -> Picture:
    """A picture whose pixels hold their column and row."""
    rows, columns = np.mgrid[0 : height // reduced, 0 : width // reduced].astype(np.uint8)
    return Picture(ImageRef("n", Path("n")), np.dstack([columns, rows, rows]), (width, height))


def test_a_crop_is_the_pixels_in_the_box():
    part = crop(numbered(100, 50), (10, 20, 30, 40))
    assert part.size == (20, 20)
    assert part.pixels.shape == (20, 20, 3)
    assert part.pixels[0, 0].tolist() == [10, 20, 20]
    assert part.pixels[-1, -1].tolist() == [29, 39, 39]
    assert part.ref.box == (10, 20, 30, 40)


def test_a_crop_is_widened_to_whole_pixels():
    assert crop(numbered(100, 50), (10.6, 20.2, 29.1, 39.5)).ref.box == (10, 20, 30, 40)


def test_a_crop_of_a_reduced_picture_is_in_pixels_of_the_original():
    part = crop(numbered(100, 80, reduced=4), (40, 20, 80, 60))
    assert part.size == (40, 40)
    assert part.pixels.shape == (10, 10, 3)
    assert part.pixels[0, 0].tolist() == [10, 5, 5]


def test_a_box_partly_outside_is_clipped():
    part = crop(numbered(100, 50), (-20, -5, 30, 500))
    assert (part.ref.box, part.size) == ((0, 0, 30, 50), (30, 50))


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ((30, 10, 10, 40), "not a box"),
        ((10, 10, 10, 40), "not a box"),
        ((0, 0, float("nan"), 10), "not a box"),
        ((0, 0, float("inf"), 10), "not a box"),
        ((100, 0, 120, 20), "outside"),
        ((-20, 0, 0, 20), "outside"),
        ((0, 0, 7, 40), "too small"),
        ((95, 0, 120, 40), "too small"),
    ],
)
def test_a_box_that_cannot_be_cut_is_refused_with_the_size_of_the_image(box, problem):
    with pytest.raises(BoxError) as caught:
        crop(numbered(100, 50), box)
    assert problem in caught.value.problem
    assert "100 × 50" in caught.value.problem


def test_a_crop_leaves_the_picture_alone():
    picture = numbered(100, 50)
    part = crop(picture, (0, 0, 20, 20))
    part.pixels[:] = 255
    assert picture.pixels[0, 0].tolist() == [0, 0, 0]
    assert picture.ref.box is None


def test_iou_of_pairs_and_of_all_with_all():
    square = np.array([0.0, 0.0, 10.0, 10.0])
    others = np.array(
        [[0, 0, 10, 10], [0, 0, 10, 5], [5, 5, 15, 15], [10, 0, 20, 10], [3, 3, 3, 9], [8, 8, 2, 2]], float
    )
    assert iou(square, others) == pytest.approx([1, 1 / 2, 25 / 175, 0, 0, 0])
    assert iou(others[:, None], others).shape == (6, 6)
    assert np.array_equal(iou(others[:, None], others), iou(others[:, None], others).T)
    assert iou(np.zeros((0, 4)), np.zeros((0, 4))).shape == (0,)
