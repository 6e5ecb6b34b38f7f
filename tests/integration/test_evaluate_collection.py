"""`resight.evaluate` of a collection as it is, by truths in several forms."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.scenes import draw_scene, look_at, write_jpeg

import resight
from resight.data.sets.manifest import Config, build
from resight.errors import InputError


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """photos/0.jpg to 4.jpg, views of the first two, a collection of the photos, and a manifest."""
    root = tmp_path_factory.mktemp("scenes")
    (root / "photos").mkdir()
    for number in range(5):
        write_jpeg(root / "photos" / f"{number}.jpg", draw_scene(number))
    for number in range(2):
        write_jpeg(root / f"view{number}.jpg", look_at(draw_scene(number)))
    rows = ["path,role,positives", *(f"photos/{number}.jpg,database," for number in range(4))]
    rows += [f"view{number}.jpg,query,photos/{number}.jpg" for number in range(2)]
    (root / "truth.csv").write_text("\n".join(rows))
    resight.open(root / "photos.resight", "sift").add(root / "photos")
    return root


def test_a_plain_dictionary_judges_a_collection(scenes: Path) -> None:
    photos = resight.open(scenes / "photos.resight")
    truth = {str(scenes / "view0.jpg"): ["0.jpg"], str(scenes / "view1.jpg"): {"1.jpg": 1, "0.jpg": -1}}
    found = resight.evaluate(photos, truth, metrics=["ap", "recall@1"])
    assert found.rows[0].summary.figures["ap"].mean == 1.0
    assert found.rows[0].summary.database == 5
    pytest.importorskip("pandas")
    frame = found.to_frame(per_query=True)
    assert list(frame["best"]) == ["0.jpg", "1.jpg"] and list(frame["ap"]) == [1.0, 1.0]
    assert list(found.to_frame().columns)[:6] == ["label", "data", "queries", "ap", "ap_low", "ap_high"]
    assert "indexing" not in "".join(found.table.notes) and r"\toprule" in found.to_latex()


def test_a_stored_image_is_no_answer_to_itself(scenes: Path) -> None:
    photos = resight.open(scenes / "photos.resight")
    found = resight.evaluate(photos, {"0.jpg": ["1.jpg"]}, metrics=["ap"])
    (query,) = found.rows[0].summary.queries
    assert query.first_positive is not None and query.first_positive < 5
    assert found.rows[0].summary.figures["ap"].mean == 1 / query.first_positive


def test_a_manifest_is_matched_by_file_and_other_images_are_searched_too(scenes: Path) -> None:
    photos = resight.open(scenes / "photos.resight")  # its ids lack the folder that the manifest's have
    for data in (scenes / "truth.csv", str(scenes / "truth.csv"), build(Config()).load(scenes / "truth.csv")):
        found = resight.evaluate(photos, data, metrics=["ap"])
        assert found.rows[0].summary.figures["ap"].mean == 1.0
        assert (found.rows[0].summary.database, len(found.rows[0].summary.judged)) == (5, 2)


def test_a_run_and_figures_per_part_are_written_for_a_collection(scenes: Path, tmp_path: Path) -> None:
    photos = resight.open(scenes / "photos.resight")
    found = resight.evaluate(photos, scenes / "truth.csv", run_file=tmp_path / "photos.run", split={"view0.jpg": "a"})
    assert list(found.rows[0].summary.figures) == ["ap", "recall@1", "recall@10", "precision@10"]
    assert found.rows[0].summary.strata["a"].queries == 1
    again = resight.evaluate(tmp_path / "photos.run", {"view0.jpg": ["0.jpg"], "view1.jpg": ["1.jpg"]})
    assert again.figures["ap"].value == 1.0


def test_recipes_without_data_take_a_manifest_or_a_data_set(scenes: Path) -> None:
    dataset = build(Config()).load(scenes / "truth.csv")
    verified = resight.load_recipe("sift")
    recipes = [verified, replace(verified, name="unverified", rerankers=())]
    for data in (scenes / "truth.csv", dataset):
        found = resight.evaluate(recipes, data, metrics=["ap"])
        assert [row.summary.figures["ap"].mean for row in found.rows] == [1.0, 1.0]
    pytest.importorskip("matplotlib")
    (panel,) = found.plot().axes
    assert [label.get_text() for label in panel.get_yticklabels()] == [row.label for row in found.rows]


def test_a_truth_with_unknown_ids_and_options_for_recipes_are_refused(scenes: Path) -> None:
    photos = resight.open(scenes / "photos.resight")
    with pytest.raises(InputError, match="names 1 images that the collection lacks"):
        resight.evaluate(photos, {str(scenes / "view0.jpg"): ["O.jpg"]})
    with pytest.raises(InputError, match="curve cannot be given with a collection"):
        resight.evaluate(photos, scenes / "truth.csv", curve="shortlist")


def test_a_collection_of_other_images_is_refused(scenes: Path, tmp_path: Path) -> None:
    other = resight.open(tmp_path / "other.resight", "sift")
    other.add(scenes / "view0.jpg")
    with pytest.raises(InputError, match="holds no image of"):
        resight.evaluate(other, scenes / "truth.csv")
