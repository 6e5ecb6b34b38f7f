"""Crops of craters with the places of a catalogue: `resight match` by crater, `resight dedup` by circle."""

import csv
import json

import cv2
import numpy as np
import pytest
from PIL import Image
from support.builders import draw_texture
from support.running import run

from resight.audit.match.match_probability import find_calibration
from resight.collection import open_collection

RADIUS = 1737.4
KM = 2.0  # per pixel of the ground
DEGREE = float(np.radians(1)) * RADIUS
CRATERS = [(x, y, 60.0 + 4 * (x % 7)) for x in (200, 420, 640) for y in (200, 420, 640)]  # pixels of the ground


def write_catalogue(ground, folder, craters, views=(3.0,)):
    """Crops with a manifest; a crater is (label, x, y, diameter) in pixels of the ground."""
    folder.mkdir()
    rows = []
    for label, x, y, diameter in craters:
        for view in views:
            side = view * diameter
            onto = np.array([[160 / side, 0, 80 - 160 * x / side], [0, 160 / side, 80 - 160 * y / side]])
            name = f"{label}_{view:g}x.png"
            Image.fromarray(cv2.warpAffine(ground, onto, (160, 160), flags=cv2.INTER_AREA)).save(folder / name)
            place = {"crater_lat": -KM * y / DEGREE, "crater_lon": KM * x / DEGREE, "diameter_km": KM * diameter}
            rows.append({"id": name, "path": name, "label": label, "view": f"{view:g}x", "radius_km": RADIUS, **place})
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = run("index", folder / "manifest.jsonl", "--into", folder / "c.resight", "--encoder", "sift")
    assert ran.code == 0, ran.err
    return folder / "c.resight"


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """A: nine craters at two scales. B: seven of them by another camera, and one that is not in A."""
    root = tmp_path_factory.mktemp("maps")
    ground = draw_texture(np.random.default_rng(5), 860, 860)
    other = np.clip(cv2.GaussianBlur(ground, (0, 0), 0.7).astype(float) * 0.8 + 30, 0, 255).astype(np.uint8)
    names = [f"c{number}" for number in range(len(CRATERS))]
    first = [(name, *crater) for name, crater in zip(names, CRATERS, strict=True)]
    a = write_catalogue(ground, root / "a", first, (3.0, 2.0))
    b = write_catalogue(other, root / "b", [*first[:7], ("new", 310.0, 530.0, 70.0)])
    return a, b


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_craters_match_as_craters_and_are_measured_by_their_labels(maps, tmp_path):
    page, review = tmp_path / "m.html", tmp_path / "review"
    options = ("--mutual", "--truth", "--html", page, "--review", review, "--json")
    ran = run("match", *maps, "--out", tmp_path / "m.csv", *options)
    assert ran.code == 0, ran.err
    rows = read(tmp_path / "m.csv")
    assert len(rows) == 9  # one per crater, of 18 crops
    right = [row for row in rows if row["label_b"]]
    assert len(right) >= 6
    assert all(row["label_a"] == row["label_b"] and row["mutual"] == "yes" for row in right)
    assert all(float(row["offset_km"]) == 0 and float(row["diameter_ratio"]) == 1 for row in right)
    assert (ran.answer["quality"]["present"], ran.answer["quality"]["precision"]) == (7, 1.0)
    assert "Reliability" in page.read_text()
    assert len(read(review / "pairs.csv")) >= len(right)
    assert not (tmp_path / "m.csv.work").exists()


def test_a_prior_leaves_only_what_lies_near(maps, tmp_path):
    ran = run("match", *maps, "--out", tmp_path / "m.csv", "--within", "1km", "--least", "0")
    assert ran.code == 0, ran.err
    rows = {row["label_a"]: row["label_b"] for row in read(tmp_path / "m.csv")}
    assert rows == {f"c{number}": f"c{number}" if number < 7 else "" for number in range(9)}
    none = run("match", *maps, "--out", tmp_path / "n.csv", "--diameter-ratio", "1.0001", "--within", "100m")
    assert none.code == 0
    assert run("match", *maps, "--out", tmp_path / "n.csv", "--within", "30").code == 2


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    """Six craters, of which one was measured three times; a neighbour shares its ground, and another lies in it."""
    ground = draw_texture(np.random.default_rng(6), 860, 860)
    listed = [("one", 300, 300, 100.0), ("again", 304, 297, 104.0), ("third", 297, 303, 97.0)]
    others = [("near", 380, 300, 90.0), ("inside", 310, 300, 50.0), ("far", 600, 600, 100.0)]
    return write_catalogue(ground, tmp_path_factory.mktemp("doubled") / "d", [*listed, *others])


@pytest.mark.parametrize("way", ["auto", "alignment"])
def test_entries_are_duplicates_if_their_circles_coincide(doubled, tmp_path, way):
    merged, page = tmp_path / "merged.csv", tmp_path / "p.html"
    ran = run("dedup", doubled, "--out", tmp_path / "p.csv", "--by", way, "--merged", merged, "--html", page)
    assert ran.code == 0, ran.err
    rows = read(tmp_path / "p.csv")
    assert {frozenset((row["label_a"], row["label_b"])) for row in rows} == {
        frozenset(pair) for pair in (("one", "again"), ("one", "third"), ("again", "third"))
    }
    assert {row["keep"] for row in rows} == {"one_3x.png"}
    row = next(row for row in rows if {row["label_a"], row["label_b"]} == {"one", "again"})
    assert (row["label_a"], row["group"]) == ("one", "1")
    assert float(row["scale_ratio"]) == pytest.approx(1.04, abs=0.02)
    assert float(row["offset"]) == pytest.approx(5 / 104, abs=0.01)
    assert float(row["iou"]) == pytest.approx(0.88, abs=0.05)
    kept = {row["id"]: row for row in read(merged)}
    assert set(kept) == {"one", "near", "inside", "far"}
    assert kept["one"]["merged"] == "one;again;third"
    assert (kept["one"]["entries"], kept["far"]["entries"]) == ("3", "1")
    assert float(kept["far"]["diameter_km"]) == 200
    if way == "auto":
        assert float(row["offset_km"]) == pytest.approx(
            9.63, abs=0.05
        )  # 8 km of longitude at 20° south, 6 km of latitude
        assert float(kept["one"]["diameter_km"]) == pytest.approx(KM * (100 + 104 + 97) / 3, abs=1e-3)
        assert float(kept["one"]["lon"]) == pytest.approx(KM * (300 + 304 + 297) / 3 / DEGREE, abs=1e-3)
        assert "--by image" in ran.out
    assert 'alt="again_3x.png"' in page.read_text()


def test_pictures_are_compared_as_before_when_asked(doubled, tmp_path):
    ran = run("dedup", doubled, "--out", tmp_path / "p.csv", "--by", "image")
    assert ran.code == 0, ran.err
    assert (tmp_path / "p.csv").read_text().startswith("a,b,kind,probability,group,keep\n".replace("\n", ""))
    assert "compared by" not in ran.out


def test_options_that_do_not_fit_are_refused(doubled, tmp_path):
    for options in (("--kinds", "copy"), ("--by", "name"), ("--by", "image", "--merged", tmp_path / "m.csv")):
        assert run("dedup", doubled, "--out", tmp_path / "p.csv", *options).code == 2


def test_the_shipped_probabilities_belong_to_the_shipped_preset(tmp_path):
    """Fails if the preset changes: fit them again with `benchmarks/match_craters.py --fit`."""
    view = open_collection(tmp_path / "c.resight", "craters").view()
    for both in (False, True):
        assert find_calibration(view, craters=True, both=both) is not None
    assert find_calibration(view, craters=False, both=False) is None
