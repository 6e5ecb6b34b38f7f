"""Images under other light: L is multiplied, the data set's truth stays."""

from pathlib import Path

import numpy as np
from PIL import Image

from resight.evaluate.brightness import change_brightness, scale_lightness
from resight.evaluate.properties import lightness
from resight.types import Dataset, ImageRef, Judgement


def test_lightness_is_multiplied_and_ends_at_white() -> None:
    grey = np.full((4, 4, 3), 119, np.uint8)  # L is 50
    assert abs(float(lightness(grey).mean()) - 50) < 0.5
    assert abs(float(lightness(scale_lightness(grey, 0.2)).mean()) - 10) < 0.5
    assert abs(float(lightness(scale_lightness(grey, 1.4)).mean()) - 70) < 0.5
    assert (scale_lightness(grey, 3) >= 254).all()
    assert (scale_lightness(grey, 1) == grey).all()


def test_a_relit_data_set_has_other_files_and_the_same_truth(tmp_path: Path) -> None:
    Image.fromarray(np.full((20, 30, 3), 119, np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    refs = (ImageRef("a", tmp_path / "a.png", (0, 0, 10, 10)), ImageRef("b", tmp_path / "broken.png"))
    dataset = Dataset("made", refs, (ImageRef("q", tmp_path / "a.png"),), {"q": Judgement({"a": 1})})
    folder = tmp_path / "dark"
    folder.mkdir()
    dark = change_brightness(dataset, 0.6, folder)
    assert [ref.id for ref in (*dark.database, *dark.queries)] == ["a", "b", "q"]
    assert dark.database[0].box == (0, 0, 10, 10)
    assert dark.judgements == dataset.judgements
    assert dark.database[0].path.parent == dark.queries[0].path.parent == folder
    assert dark.database[1].path == tmp_path / "broken.png"  # it is skipped as it would be
    with Image.open(dark.database[0].path) as copy:
        assert copy.size == (30, 20)
        assert abs(float(lightness(np.array(copy)).mean()) - 30) < 0.5
    assert change_brightness(dataset, 1, folder) is dataset
