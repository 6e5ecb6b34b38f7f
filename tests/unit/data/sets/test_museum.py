import json
import os
from pathlib import Path

import pytest

from resight.data import sets
from resight.errors import ManifestError, RecipeError
from resight.types import Dataset


def write_museum(root: Path, photos: list[dict], paintings: int = 4) -> None:
    for folder in ("paintings", "photos"):
        (root / folder).mkdir(parents=True)
    for number in range(paintings):
        (root / "paintings" / f"bbdd_{number:05d}.jpg").touch()
    for photo in photos:
        (root / photo["file"]).touch()
    (root / "truth.json").write_text(json.dumps(photos))


def photo(name: str, *objects: tuple[int | None, list[float]], set: str = "one", **more: object) -> dict:
    found = [{"db_id": number, "bbox": box} for number, box in objects]
    facts = {"file": f"photos/{name}.jpg", "width": 100, "height": 80, "year": "2024", "set": set}
    return {**facts, "boxes_ok": True, "same_bytes_as": None, "objects": found, **more}


BOX = [10.0, 10.0, 50.0, 60.0]
PHOTOS = [
    photo("a", (0, BOX), (2, [60.0, 0.0, 100.4, 80.2])),
    photo("b", (2, BOX), boxes_ok=False),
    photo("c", (-1, BOX), set="two"),
    photo("d", (None, BOX), set="two"),
    photo("e", (0, BOX), (None, BOX), set="two"),
    photo("f", (0, BOX), same_bytes_as="photos/e.jpg"),
]


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("museum", **settings).load(root)


def test_photos_look_for_their_paintings(tmp_path):
    write_museum(tmp_path, PHOTOS)
    dataset = load(tmp_path)
    assert [ref.id for ref in dataset.database] == ["bbdd_00000", "bbdd_00001", "bbdd_00002", "bbdd_00003"]
    assert {id: dict(judgement.grades) for id, judgement in dataset.judgements.items()} == {
        "a": {"bbdd_00000": 1, "bbdd_00002": 1},
        "b": {"bbdd_00002": 1},
        "c": {},  # its painting is not here; d, of which nothing is known, is left out; f is a copy of e
        "e": {"bbdd_00000": 1},
    }
    assert [ref.id for ref in dataset.queries] == ["a", "b", "c", "e"]
    assert dataset.queries[0].attributes == {"set": "one", "year": "2024"}


def test_paintings_look_for_photos_and_know_where_they_hang(tmp_path):
    write_museum(tmp_path, PHOTOS)
    dataset = load(tmp_path, direction="painting_to_photos")
    assert [ref.id for ref in dataset.database] == ["a", "b", "c", "d", "e"]
    assert [ref.id for ref in dataset.queries] == ["bbdd_00000", "bbdd_00002"]
    first, second = dataset.judgements["bbdd_00000"], dataset.judgements["bbdd_00002"]
    assert first.grades == {"a": 1, "e": 1}
    assert first.boxes == {"a": (10, 10, 50, 60), "e": (10, 10, 50, 60)}
    assert first.ignored == {"d"}  # e shows something unknown too, but it is a positive
    assert second.grades == {"a": 1, "b": 1}
    assert second.boxes == {"a": (60, 0, 100, 80)}  # clipped; the boxes of b are not to be used
    assert second.ignored == {"d", "e"}


def test_sets_select_photos(tmp_path):
    write_museum(tmp_path, PHOTOS)
    assert [ref.id for ref in load(tmp_path, sets=["two"]).queries] == ["c", "e"]
    assert [ref.id for ref in load(tmp_path, sets=["one"]).queries] == [
        "a",
        "b",
        "f",
    ]  # e is not loaded, so f is no copy


def test_a_set_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    write_museum(tmp_path, PHOTOS)
    with pytest.raises(RecipeError, match="one, two"):
        load(tmp_path, sets=["three"])


def test_an_empty_folder_is_refused_with_what_was_expected(tmp_path):
    with pytest.raises(ManifestError, match=r"bbdd_00000\.jpg"):
        load(tmp_path)


def test_missing_or_broken_truth_is_refused(tmp_path):
    write_museum(tmp_path, PHOTOS)
    (tmp_path / "truth.json").write_text("{")
    with pytest.raises(ManifestError, match="valid JSON"):
        load(tmp_path)
    (tmp_path / "truth.json").write_text('[{"file": "photos/a.jpg"}]')
    with pytest.raises(ManifestError, match="another form"):
        load(tmp_path)
    (tmp_path / "truth.json").unlink()
    with pytest.raises(ManifestError, match="no ground truth"):
        load(tmp_path)


def test_a_missing_photo_or_painting_is_refused(tmp_path):
    write_museum(tmp_path, PHOTOS)
    (tmp_path / "paintings" / "bbdd_00002.jpg").unlink()
    with pytest.raises(ManifestError, match="bbdd_00002"):
        load(tmp_path)
    (tmp_path / "photos" / "a.jpg").unlink()
    with pytest.raises(ManifestError, match=r"a\.jpg"):
        load(tmp_path)


@pytest.mark.skipif("RESIGHT_DATA" not in os.environ, reason="RESIGHT_DATA does not name the real data")
def test_the_real_museum_has_140_photos_with_truth_and_92_paintings_that_are_shown():
    root = Path(os.environ["RESIGHT_DATA"]) / "museum"
    photos, paintings = load(root), load(root, direction="painting_to_photos")
    assert (len(photos.database), len(photos.queries)) == (287, 150)
    assert sum(bool(judgement.grades) for judgement in photos.judgements.values()) == 140
    assert (len(paintings.database), len(paintings.queries)) == (150, 92)
    assert sum(len(judgement.boxes) for judgement in paintings.judgements.values()) == 158
