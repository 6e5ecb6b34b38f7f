"""Retrieval on held-out classes, by hand-worked numbers, and what the images are put into the network as."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.samples import gldv2, sfm120k
from support.tiny_training import INPUT, QUICK, TinyNetwork, list_examples, write_classes

from resight.data import sets
from resight.errors import InputError
from resight.evaluate import judge
from resight.train.examples import choose_examples, read_sizes
from resight.train.held_out import Validation, measure
from resight.train.leakage_guard import find_left_out
from resight.types import ImageRef


def turn(degrees: float) -> list[float]:
    return [np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]


def test_the_measure_is_the_mean_average_precision_of_all_who_have_a_partner():
    rows = np.array([turn(angle) for angle in (0, 10, 15, 100)], np.float32)
    # a at 0° finds b (10°) first and its partner at 15° second: 1/2; the one at 15° finds b (5° off) first: 1/2;
    # b at 10° finds two of a before its partner at 100°: 1/3; b at 100° finds a at 15°, then its partner: 1/2
    assert measure(rows, ["a", "b", "a", "b"], judge) == pytest.approx((1 / 2 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    # the lone one asks for nothing; the others find partners at ranks 1 and 3, 2 and 3, 2 and 3
    assert measure(rows, ["a", "a", "lone", "a"], judge) == pytest.approx((5 / 6 + 7 / 12 + 7 / 12) / 3)


def test_validation_changes_nothing_and_leaves_out_what_cannot_be_read(tmp_path: Path):
    folder = write_classes(tmp_path, classes=3, each=3)
    (folder / "c0" / "0.png").write_bytes(b"nothing")
    seen: list[torch.Size] = []

    class Watched(TinyNetwork):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(images.shape)
            return super().forward(images)

    validate = Validation(list_examples(folder), None, QUICK, INPUT, judge)
    network = Watched().eval()
    assert validate(network) == validate(network)
    assert seen == [(8, 3, 16, 16), (8, 3, 16, 16)]
    assert validate.unreadable == ("c0/0.png",)


def test_where_nobody_has_a_partner_that_can_be_read_it_is_refused(tmp_path: Path):
    folder = write_classes(tmp_path, classes=2, each=2)
    for label in ("c0", "c1"):
        (folder / label / "0.png").write_bytes(b"nothing")
    with pytest.raises(InputError, match="nothing to validate on") as caught:
        Validation(list_examples(folder), None, QUICK, INPUT, judge)(TinyNetwork().eval())
    assert caught.value.actual.startswith("2 of 4 held-out images cannot be read, such as c0/0.png, c1/0.png")


def test_a_network_that_says_what_is_no_number_has_no_score(tmp_path: Path):
    network = TinyNetwork().eval()
    torch.nn.init.constant_(network.pool[2].bias, float("nan"))
    validate = Validation(list_examples(write_classes(tmp_path, classes=2, each=2)), None, QUICK, INPUT, judge)
    assert np.isnan(validate(network))


def test_images_of_a_group_are_validated_in_its_size(tmp_path: Path):
    folder = write_classes(tmp_path, classes=2, each=3, shape=(16, 32))
    examples, settings = list_examples(folder), replace(QUICK, sampling="group")
    sizes = read_sizes(examples.refs, tmp_path / "sizes.json")
    seen: list[torch.Size] = []
    network = TinyNetwork()
    network.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape))
    Validation(examples, sizes, settings, INPUT, judge)(network.eval())
    assert seen == [(6, 3, 12, 24)]  # 16 · √½ = 11.3 and 16 · √2 = 22.6, in whole cells of 4


def test_sizes_are_upright_of_the_box_and_read_once(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20)).save(tmp_path / "turned.jpg", exif=exif)
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    refs = [
        ImageRef("turned", tmp_path / "turned.jpg"),
        ImageRef("part", tmp_path / "turned.jpg", box=(0, 0, 15, 5)),
        ImageRef("broken", tmp_path / "broken.jpg"),
        ImageRef("gone", tmp_path / "gone.jpg"),
    ]
    expected = [[20, 40], [15, 5], [1, 1], [1, 1]]
    assert read_sizes(refs, tmp_path / "sizes.json").tolist() == expected
    (tmp_path / "turned.jpg").unlink()
    assert read_sizes(refs, tmp_path / "sizes.json").tolist() == expected


def test_training_sets_give_their_classes(tmp_path: Path):
    for module in (sfm120k, gldv2):
        module.write(tmp_path, np.random.default_rng(0))
    settings = replace(QUICK, single="keep")
    sfm = choose_examples(sets.build("sfm120k").load(tmp_path), settings)
    assert (sfm.train.classes, len(sfm.train.refs)) == (("3", "8"), 5)
    clean = sets.build("gldv2", which="clean").load(tmp_path)
    with pytest.raises(InputError, match="also in the evaluation set"):
        find_left_out(clean, settings)
    assert not find_left_out(sets.build("gldv2", which="rgldv2_clean").load(tmp_path), settings)
