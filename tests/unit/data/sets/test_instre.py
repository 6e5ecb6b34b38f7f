import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from support.samples import instre as sample

from resight.data import sets
from resight.errors import ManifestError, RecipeError
from resight.types import Dataset

S1, S2, M = sample.QUERIES
ALONE, FIRST, SECOND, AROUND = (8, 4, 48, 34), (5, 6, 25, 16), (40, 30, 70, 50), (5, 6, 70, 50)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sample.write(tmp_path, np.random.default_rng(0))
    return tmp_path


def load(root: Path, **settings: object) -> Dataset:
    return sets.build("instre", **settings).load(root)


def change(root: Path, **parts: object) -> None:
    (root / "gnd_instre.json").write_text(json.dumps({**sample.make_truth(), **parts}))


def test_positives_count_from_one(root):
    judgements = load(root).judgements
    assert set(judgements[S1].grades) == {"INSTRE-S1/01b/001.jpg", "INSTRE-S1/01b/002.jpg", "INSTRE-M/01/001.jpg"}
    assert set(judgements[S2].grades) == {"INSTRE-S2/01/001.jpg"}


def test_boxes_of_positives_are_those_of_the_querys_object(root):
    judgements = load(root).judgements
    assert judgements[S1].boxes == {
        "INSTRE-S1/01b/001.jpg": ALONE,
        "INSTRE-S1/01b/002.jpg": ALONE,
        "INSTRE-M/01/001.jpg": SECOND,  # the letter b: the second line
    }
    assert judgements[M].boxes == {"INSTRE-M/01/001.jpg": AROUND, "INSTRE-M/01/003.jpg": AROUND}


def test_a_query_is_its_box_in_either_convention(root):
    assert [ref.box for ref in load(root).queries] == [ALONE, ALONE, AROUND]


def test_a_positive_without_a_text_has_no_box(root):
    (root / "INSTRE-S2/01/001.txt").unlink()
    assert load(root).judgements[S2].boxes == {}


def test_labels_are_the_classes(root):
    assert load(root).database[0].attributes == {"label": "INSTRE-S1/01a", "set": "INSTRE-S1"}


def test_without_the_truth_queries_are_drawn_by_seed_and_m_shows_the_objects_of_s1(root):
    (root / "gnd_instre.json").unlink()
    dataset = load(root, queries_per_class=1)
    assert dataset.name == "instre, queries drawn here"
    assert (len(dataset.database), len(dataset.queries)) == (12, 4)
    (first,) = [ref for ref in dataset.queries if ref.attributes["label"] == "INSTRE-S1/01a"]
    judgement = dataset.judgements[first.id]
    assert {id.rpartition("/")[0] for id in judgement.grades} == {"INSTRE-S1/01a", "INSTRE-M/01"}
    assert len(judgement.grades) == 6
    assert {box for id, box in judgement.boxes.items() if "INSTRE-M" in id} == {FIRST}
    assert first.box == ALONE
    (third,) = [ref for ref in dataset.queries if ref.attributes["label"] == "INSTRE-S2/01"]
    assert len(dataset.judgements[third.id].grades) == 3
    assert load(root, queries_per_class=1) == dataset


@pytest.mark.parametrize("compressed", [True, False])
def test_the_matlab_file_says_the_same(root, compressed):
    truth, expected = sample.make_truth(), load(root)
    (root / "gnd_instre.json").unlink()
    gnd = np.zeros((1, 3), dtype=[("ok", object), ("bbx", object)])
    for row, table in enumerate(truth["gnd"]):
        gnd[0, row] = (np.array([table["ok"]], np.uint16), np.array([table["bbx"]], np.float64))
    names = {key: np.array([truth[key]], dtype=object) for key in ("imlist", "qimlist")}
    savemat(root / "gnd_INSTRE.mat", {**names, "gnd": gnd}, do_compression=compressed)
    assert load(root) == expected
    content = (root / "gnd_INSTRE.mat").read_bytes()
    for cut in (0, 100, 128 + 8, len(content) // 2, len(content) - 3):
        (root / "gnd_INSTRE.mat").write_bytes(content[:cut])
        with pytest.raises(ManifestError, match=r"gnd_INSTRE\.mat"):
            load(root)


GND = [{"ok": [1], "bbx": [0, 0, 1, 1]}] * 3


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"imlist": None}, "no list 'imlist'"),
        ({"qimlist": [S1, S1, S2]}, "'qimlist' names an image twice"),
        ({"imlist": ["../a.jpg"]}, "outside"),
        ({"gnd": GND[:2]}, "'gnd' does not match"),
        ({"gnd": [*GND[:2], {"ok": [0], "bbx": [0, 0, 1, 1]}]}, "out of range"),
        ({"gnd": [*GND[:2], {"ok": [14], "bbx": [0, 0, 1, 1]}]}, "out of range"),
        ({"gnd": [*GND[:2], {"ok": [1], "bbx": [5, 0, 1, 1]}]}, "has no truth"),
        ({"gnd": [*GND[:2], {"ok": [1]}]}, "has no truth"),
    ],
)
def test_a_broken_truth_is_refused(root, parts, message):
    change(root, **parts)
    with pytest.raises(ManifestError, match=message):
        load(root)


@pytest.mark.parametrize("text", ["1 2 3\n", "1 2 0 4\n", "1 2 x 4\n", "1 2 nan 4\n"])
def test_a_broken_box_is_refused_with_its_line(root, text):
    (root / "INSTRE-S2/01/001.txt").write_text("\n" + text)
    with pytest.raises(ManifestError, match=r"001\.txt, line 2"):
        load(root)


def test_settings_without_sense_are_refused():
    with pytest.raises(RecipeError):
        sets.build("instre", queries_per_class=0)
