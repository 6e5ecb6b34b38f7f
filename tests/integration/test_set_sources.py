"""`resight index` and `resight audit` on data sets by name, and on files without endings."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from support.running import run
from support.samples import gldv2, revisited, sfm120k
from support.scenes import draw_scene, look_at, write_jpeg

from resight.collection import open_collection

SIFT = ("--encoder", "sift")


def test_index_takes_a_data_set_with_its_ids_and_attributes(tmp_path: Path) -> None:
    gldv2.write(tmp_path, np.random.default_rng(0))
    collection = tmp_path / "c.resight"
    answer = run("index", f"gldv2,which=clean:{tmp_path}", "--into", collection, *SIFT, "--json").answer
    assert (answer["added"], answer["skipped"], answer["not_images"]) == (4, [], 0)
    records = {record.id: record.attributes for record in open_collection(collection).records()}
    assert records == {id: {"label": label} for label, ids in gldv2.TRAIN.items() for id in ids}
    again = run("index", f"gldv2,which=clean:{tmp_path}", "--into", collection, "--json").answer
    assert (again["added"], again["unchanged"]) == (0, 4)


def test_ids_without_endings_and_files_without_endings_can_be_searched(tmp_path: Path) -> None:
    sfm120k.write(tmp_path, np.random.default_rng(0))
    collection = tmp_path / "c.resight"
    assert "5 added" in run("index", f"sfm120k:{tmp_path}", "--into", collection, *SIFT).out
    cid = sfm120k.make_truth()["train"]["cids"][3]  # type: ignore[index]
    image = tmp_path / "ims" / "ff" / "ee" / "dd" / cid
    assert run("search", collection, image, "--json").answer["hits"][0]["id"] == cid


def test_index_finds_images_without_endings_in_a_folder_and_counts_the_rest(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for number in range(3):
        write_jpeg(tmp_path / "photos" / f"{number}.jpg", draw_scene(number)).rename(tmp_path / "photos" / str(number))
    (tmp_path / "photos" / "README").write_text("three photos")
    (tmp_path / "photos" / "list.txt").write_text("0 1 2")
    ran = run("index", tmp_path / "photos", "--into", tmp_path / "c.resight", *SIFT)
    assert "3 images (3 added" in ran.out
    assert "left out 2 files that are not images" in ran.out


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("gldv3:photos", "did you mean"),
        ("gldv2:nowhere", "train_clean.csv"),
        ("gldv2,which=best:nowhere", "which"),
        ("gldv2:", "names no folder"),
        ("no:where", "there is nothing at no:where"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_before_a_collection_is_made(
    source: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("index", source, "--into", "c.resight", *SIFT)
    assert ran.code == 2 and words in ran.err
    assert not Path("c.resight").exists()


def test_an_audit_suggests_the_name_of_a_data_set(tmp_path: Path) -> None:
    ran = run("audit", "gldv3:train", tmp_path, "--out", tmp_path / "leaks", *SIFT)
    assert ran.code == 2 and "did you mean 'gldv2'" in ran.err
    assert not (tmp_path / "leaks").exists()


def test_a_folder_with_a_colon_in_its_name_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("gldv2:mine", "trip 10:30"):
        Path(folder).mkdir()
    write_jpeg(Path("gldv2:mine/a.jpg"), draw_scene(0))
    write_jpeg(Path("trip 10:30/b.jpg"), draw_scene(1))
    assert "2 added" in run("index", "gldv2:mine", "trip 10:30", "--into", "c.resight", *SIFT).out


def test_an_audit_of_two_data_sets_finds_the_planted_leak(tmp_path: Path) -> None:
    """The training image of landmark 47378 shows what one query of RParis6k shows, seen from elsewhere."""
    (tmp_path / "gldv2").mkdir()
    gldv2.write(tmp_path / "gldv2", np.random.default_rng(0))
    revisited.write(tmp_path, np.random.default_rng(1))
    leak = gldv2.TRAIN["47378"][0]
    write_jpeg(tmp_path / "gldv2" / "train" / leak[0] / leak[1] / leak[2] / f"{leak}.jpg", draw_scene(0))
    truth = pickle.loads((tmp_path / "rparis6k" / "gnd_rparis6k.pkl").read_bytes())
    query = truth["qimlist"][1]
    truth["gnd"][1]["bbx"] = [0, 0, 400, 300]
    (tmp_path / "rparis6k" / "gnd_rparis6k.pkl").write_bytes(pickle.dumps(truth))
    write_jpeg(tmp_path / "rparis6k" / "jpg" / f"{query}.jpg", look_at(draw_scene(0)))
    out = tmp_path / "leaks"
    sources = (f"gldv2,which=clean:{tmp_path}", f"revisited,which=rparis6k:{tmp_path}")
    ran = run("audit", *sources, "--out", out, *SIFT, "--json")
    assert ran.code == 0, ran.err
    evaluated = {record.id for record in open_collection(out / "eval.resight").records()}
    assert evaluated == set(truth["qimlist"])  # the queries, not the database
    assert "47378" in json.dumps(ran.answer)
    assert (out / "evidence.csv").read_text().count("confirmed") == 1
