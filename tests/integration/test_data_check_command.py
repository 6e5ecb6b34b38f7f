"""`resight data check` on data sets of which something was published."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.running import run, state_of
from support.samples import gldv2, revisited


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    revisited.write(folder, np.random.default_rng(0))
    (folder / "gldv2").mkdir()
    gldv2.write(folder / "gldv2", np.random.default_rng(1))
    return folder


def test_what_differs_from_the_published_facts_is_shown_and_ends_with_1(folder: Path):
    before = state_of(folder)
    ran = run("data", "check", "revisited", folder)
    assert ran.code == 1
    assert "database 6, NOT as published: 4,993" in ran.out
    assert "queries 2, NOT as published: 70" in ran.out
    assert "gnd_roxford5k.pkl sha256:" in ran.out
    assert "oxbuild_images-v1.tgz of https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/" in ran.out
    assert ran.out.rstrip().endswith("all images can be used")
    assert state_of(folder) == before


def test_settings_choose_the_part_and_the_facts_that_belong_to_it(folder: Path):
    ran = run("data", "check", "gldv2", folder, "--set", "which=retrieval", "--set", "usage=both", "--quick", "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert (found["ok"], found["decoded"], found["missing"]) == (False, False, [])
    assert found["facts"] == [
        {"name": "database", "published": 761757, "found": 3, "ok": False},
        {"name": "queries", "published": 1129, "found": 2, "ok": False},
    ]
    assert len(found["published"]["downloads"]) == 4


def test_quick_says_that_nothing_was_decoded(folder: Path):
    assert "all images exist; none was decoded" in run("data", "check", "gldv2", folder, "--quick").out


def test_a_data_set_that_is_not_there_says_what_to_download(tmp_path: Path):
    ran = run("data", "check", "sfm120k", tmp_path, "--set", "split=val")
    assert ran.code == 2
    assert "retrieval-SfM-120k.pkl of http://cmp.felk.cvut.cz" in ran.err
    assert "ims.tar.gz" in ran.err


@pytest.mark.parametrize("setting", ["which=other", "colour=red", "which"])
def test_settings_that_do_not_exist_are_refused(folder: Path, setting: str):
    ran = run("data", "check", "revisited", folder, "--set", setting)
    assert ran.code == 2
    assert "expected" in ran.err


def test_true_boxes_are_written_as_a_box_file(tmp_path: Path):
    rows = ["path,role,positives,positive_boxes", "a.jpg,database,,", "q.jpg,query,a.jpg,a.jpg:1 2 30 40.5"]
    (tmp_path / "views.csv").write_text("\n".join(rows))
    answer = run("data", "boxes", "manifest", tmp_path / "views.csv", "--out", tmp_path / "b.csv", "--json").answer
    assert (answer["images"], answer["boxes"]) == (1, 1)
    assert (tmp_path / "b.csv").read_text() == "id,x0,y0,x1,y1\na.jpg,1,2,30,40.5\n"
    (tmp_path / "views.csv").write_text("\n".join([*rows[:2], "q.jpg,query,a.jpg,"]))
    ran = run("data", "boxes", "manifest", tmp_path / "views.csv", "--out", tmp_path / "c.csv")
    assert ran.code == 2 and "has no boxes" in ran.err
    assert not (tmp_path / "c.csv").exists()
