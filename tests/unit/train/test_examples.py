from dataclasses import replace
from pathlib import Path

import pytest

from resight.errors import InputError
from resight.train.examples import choose_examples, hold_out
from resight.train.leakage_guard import find_left_out
from resight.train.train_config import Settings
from resight.types import Dataset, ImageRef

PLAIN = Settings(held_out=0)


def make(counts: dict[str, int], name: str = "made", unlabelled: int = 0) -> Dataset:
    refs = [
        ImageRef(f"{label}/{number}", Path(label), attributes={"label": label})
        for label, count in counts.items()
        for number in range(count)
    ]
    refs += [ImageRef(f"none/{number}", Path("none")) for number in range(unlabelled)]
    return Dataset(name, tuple(refs), (), {})


def write_audit(folder: Path, classes: list[str]) -> Path:
    rows = "".join(f"{name},,3,matches,q1\n" for name in classes)
    (folder / "removal.csv").write_text(f"class,name,images,why,evaluation\n{rows}")
    return folder


def test_no_class_is_both_trained_on_and_validated_on():
    parts = choose_examples(make({f"c{number}": 3 for number in range(40)}), replace(PLAIN, held_out=0.25))
    assert len(parts.held_out.classes) == 10 and len(parts.train.classes) == 30
    assert not set(parts.train.classes) & set(parts.held_out.classes)
    assert len(parts.train.refs) == 90


def test_what_is_held_out_follows_from_the_seed_and_is_bounded():
    labels = [label for number in range(40) for label in [f"c{number}"] * 10]
    settings = replace(PLAIN, held_out=0.5, held_out_images=65)
    assert hold_out(labels, settings) == hold_out(labels, settings) != hold_out(labels, replace(settings, seed=1))
    assert len(hold_out(labels, settings)) == 6


def test_classes_with_one_image_are_refused_left_out_or_kept():
    dataset = make({"a": 2, "b": 3, "lone": 1})
    with pytest.raises(InputError) as caught:
        choose_examples(dataset, PLAIN)
    assert "1 of 3 classes" in caught.value.problem and caught.value.actual == "lone"
    left = choose_examples(dataset, replace(PLAIN, single="leave_out"))
    assert left.train.classes == ("a", "b") and left.notes == ("1 class with one image left out",)
    assert choose_examples(dataset, replace(PLAIN, single="keep")).train.classes == ("a", "b", "lone")


def test_images_without_a_label_are_counted():
    assert choose_examples(make({"a": 2, "b": 2}, unlabelled=3), PLAIN).notes == ("3 images without a label left out",)


def test_a_set_without_classes_is_refused():
    with pytest.raises(InputError, match="nothing to train on"):
        choose_examples(make({}, unlabelled=3), PLAIN)


def test_classes_that_an_audit_found_are_refused(tmp_path: Path):
    settings = replace(PLAIN, audit=write_audit(tmp_path, ["b", "elsewhere"]))
    dataset = make({"a": 2, "b": 2, "c": 2})
    with pytest.raises(InputError) as caught:
        find_left_out(dataset, settings)
    assert caught.value.problem == "made has classes that are also in the evaluation set: 1"
    assert caught.value.actual.startswith("b (by ")
    left_out = find_left_out(dataset, replace(settings, overlap="leave_out"))
    assert left_out == {"b"}
    assert choose_examples(dataset, settings, left_out).train.classes == ("a", "c")
    assert not find_left_out(dataset, replace(settings, overlap="allow"))


def test_an_image_that_an_audit_found_without_a_class_stands_for_its_class(tmp_path: Path):
    settings = replace(PLAIN, overlap="leave_out", audit=write_audit(tmp_path, ["b/1", "none/0", "c"]))
    assert find_left_out(make({"a": 2, "b": 2, "c": 2}, unlabelled=1), settings) == {"b", "c"}


def test_a_clean_audit_refuses_nothing(tmp_path: Path):
    assert not find_left_out(make({"a": 2}), replace(PLAIN, audit=write_audit(tmp_path, ["z"])))


def test_the_published_landmarks_are_refused_in_gldv2_alone():
    counts = {"6190": 2, "1": 2}  # 6190: Radcliffe Camera
    with pytest.raises(InputError, match="gldv2 clean has classes"):
        find_left_out(make(counts, name="gldv2 clean"), PLAIN)
    assert not find_left_out(make(counts), PLAIN)


def test_a_folder_that_is_no_audit_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"removal\.csv cannot be read"):
        find_left_out(make({"a": 2}), replace(PLAIN, audit=tmp_path))
