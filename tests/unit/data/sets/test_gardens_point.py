import os
from pathlib import Path

import pytest

from resight.data import sets
from resight.errors import ManifestError, RecipeError


def write_walks(root: Path, frames: int = 6) -> None:
    for walk in ("day_left", "day_right", "night_right"):
        (root / walk).mkdir(parents=True)
        for number in range(frames):
            (root / walk / f"Image{number:03d}.jpg").touch()


def test_frames_within_the_tolerance_show_the_same_place(tmp_path):
    write_walks(tmp_path)
    dataset = sets.build("gardens_point").load(tmp_path)
    assert [ref.id for ref in dataset.database] == [f"day_left/Image{number:03d}" for number in range(6)]
    assert dataset.queries[3].id == "night_right/Image003"
    assert dataset.queries[3].path == tmp_path / "night_right" / "Image003.jpg"
    assert list(dataset.judgements["night_right/Image003"].grades) == [f"day_left/Image00{n}" for n in (1, 2, 3, 4, 5)]
    assert list(dataset.judgements["night_right/Image000"].grades) == [f"day_left/Image00{n}" for n in (0, 1, 2)]


def test_walks_and_tolerance_are_settings(tmp_path):
    write_walks(tmp_path)
    (tmp_path / "day_right" / "readme.txt").touch()
    dataset = sets.build("gardens_point", queries="day_left", database="day_right", tolerance=0).load(tmp_path)
    assert dataset.judgements["day_left/Image004"].grades == {"day_right/Image004": 1}
    assert len(dataset.database) == 6


def test_a_missing_walk_is_refused_with_what_was_expected_where(tmp_path):
    write_walks(tmp_path)
    with pytest.raises(ManifestError) as caught:
        sets.build("gardens_point", queries="dusk").load(tmp_path)
    assert str(tmp_path / "dusk" / "Image000.jpg") in caught.value.expected


@pytest.mark.parametrize("settings", [{"queries": "day_left"}, {"tolerance": -1}])
def test_settings_without_sense_are_refused(settings):
    with pytest.raises(RecipeError):
        sets.build("gardens_point", **settings)


@pytest.mark.skipif("RESIGHT_DATA" not in os.environ, reason="RESIGHT_DATA does not name the real data")
def test_the_real_walks_have_200_frames_each():
    dataset = sets.build("gardens_point").load(Path(os.environ["RESIGHT_DATA"]) / "gardenspoint")
    assert (len(dataset.database), len(dataset.queries)) == (200, 200)
    assert sum(len(judgement.grades) for judgement in dataset.judgements.values()) == 200 * 5 - 2 * (2 + 1)
