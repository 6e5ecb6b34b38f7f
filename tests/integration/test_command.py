"""The command from end to end: what it finds, what it prints, and which files it writes."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import run
from support.scenes import box_around, draw_scene, hang, overlap, write_jpeg

from resight.apps.cli.search import open_to_search
from resight.collection import Collection

HIT = ["id", "path", "score", "probability", "box", "attributes", "stages", "located_by", "other_boxes"]


def test_a_slanted_view_finds_its_scene_and_the_part_of_it(indexed: Path, view: Path) -> None:
    answer = run("search", indexed, view, "--json").answer
    best, second, *_ = answer["hits"]
    assert best["id"] == "scene_07.jpg"
    assert best["probability"] > 0.5 > second["probability"]
    assert overlap(best["box"], box_around()) > 0.9


def test_a_photograph_of_a_wall_finds_the_scene_that_hangs_there(indexed: Path, tmp_path: Path) -> None:
    photo = write_jpeg(tmp_path / "wall.jpg", hang(draw_scene(3), draw_scene(99)))
    best = run("search", indexed, photo, "--json").answer["hits"][0]
    assert (best["id"], best["probability"] > 0.5) == ("scene_03.jpg", True)


def test_the_json_of_a_search_has_exactly_these_keys(indexed: Path, scenes: Path, view: Path) -> None:
    answer = run("search", indexed, view, "--json").answer
    assert list(answer) == ["query", "box", "verdict", "hits", "seconds", "proof"]
    assert (answer["query"], answer["box"]) == (str(view), None)
    assert [list(hit) for hit in answer["hits"]] == [HIT] * 10
    assert answer["hits"][0]["path"] == str(scenes / "scene_07.jpg")
    assert answer["hits"][0]["attributes"] == {"lat": 7.0, "lon": 10.0}
    assert set(answer["hits"][0]["stages"]) == {
        "asmk",
        "asmk_standout",
        "aggregated",
        "aggregated_standout",
        "best_significance",
        "layout",
        "layout_excess",
        "inliers",
        "significance",
    }
    assert set(answer["seconds"]) == {"shortlist", "layout", "standout", "geometry", "locate"}


def test_the_table_names_the_best_answer_first(indexed: Path, view: Path) -> None:
    ran = run("search", indexed, view)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "1 of 10 answers is very likely the same"
    assert "12 images" in ran.out.splitlines()[1]
    assert re.search(r"1\s+scene_07\.jpg\s+9\d\.\d%.*\b80, 60, 400, 300", ran.out.splitlines()[3])


def test_the_page_of_a_search_needs_no_other_file(indexed: Path, view: Path, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "answer.html"
    assert run("search", indexed, view, "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    sources = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)""", text)
    assert sum(source.startswith("data:image/") for source in sources) >= 12  # the query, ten answers, match lines
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert "scene_07.jpg" in text
    assert list(page.parent.iterdir()) == [page]


def test_a_box_says_what_to_look_for(indexed: Path, tmp_path: Path) -> None:
    """Two scenes side by side: the box decides which one is meant."""
    both = tmp_path / "both.jpg"
    left, right = draw_scene(1), draw_scene(2)
    write_jpeg(both, np.hstack([left, right]))
    for box, id in (("0,0,480,360", "scene_01.jpg"), ("480,0,960,360", "scene_02.jpg")):
        answer = run("search", indexed, both, "--box", box, "--json").answer
        assert answer["box"] == [float(side) for side in box.split(",")]
        assert answer["hits"][0]["id"] == id
        assert overlap(answer["hits"][0]["box"], (0, 0, 480, 360)) > 0.95


def test_conditions_and_a_circle_choose_who_takes_part(indexed: Path, view: Path) -> None:
    def ids(*options: str) -> list[str]:
        return [hit["id"] for hit in run("search", indexed, view, "--json", *options).answer["hits"]]

    assert sorted(ids("--where", "lat>=9")) == ["scene_09.jpg", "scene_10.jpg", "scene_11.jpg"]
    assert sorted(ids("--where", "lat>=9", "--where", "lat<10.5")) == ["scene_09.jpg", "scene_10.jpg"]
    assert ids("--where", "lat=none of them") == []
    # A degree of latitude is about 111 km, so 120 km around latitude 6 reach 5, 6 and 7.
    assert sorted(ids("--near", "6,10,120000")) == ["scene_05.jpg", "scene_06.jpg", "scene_07.jpg"]
    assert ids("--near", "6,10,120000")[0] == "scene_07.jpg"
    assert "nothing found" in run("search", indexed, view, "--near", "-80,0,10").out


def test_asking_for_more_than_there_is_gives_all_there_is(indexed: Path, view: Path) -> None:
    hits = run("search", indexed, view, "-k", 10**9, "--json").answer["hits"]
    assert sorted(hit["id"] for hit in hits) == [f"scene_{number:02}.jpg" for number in range(12)]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_without_rerankers_nothing_is_verified(indexed: Path, view: Path) -> None:
    answer = run("search", indexed, view, "--set", "rerankers=[]", "--json").answer
    assert answer["hits"][0]["id"] == "scene_07.jpg"
    assert all("inliers" not in hit["stages"] for hit in answer["hits"])
    assert set(answer["seconds"]) == {"shortlist", "locate"}


def test_info_tells_what_a_collection_is(indexed: Path) -> None:
    facts = run("info", indexed, "--json").answer
    assert (facts["images"], facts["format"], facts["calibration"]) == (12, 2, "shipped")
    assert facts["recipe"]["name"] == "sift_tokens"
    assert len(facts["spaces"]) == len(facts["recipe"]["branches"]) == 5
    assert facts["store_bytes"] > facts["index_bytes"] > 0
    assert "recipe        sift_tokens" in run("info", indexed).out


def test_encoders_and_data_sets_are_listed() -> None:
    encoders = {entry["name"]: entry for entry in run("encoders", "--json").answer}
    assert encoders["sift"]["ready"]
    assert encoders["sift"]["dimensions"] == 128
    names = [entry["name"] for entry in run("data", "list", "--json").answer]
    assert {"folder", "manifest", "museum", "gardens_point"} <= set(names)
    assert "museum" in run("data", "list").out


def test_a_dry_run_ends_with_1_when_an_image_cannot_be_used(scenes: Path, tmp_path: Path) -> None:
    found = run("data", "check", "folder", scenes, "--json").answer
    assert (found["ok"], found["database"], found["with_position"]) == (True, 12, 12)
    (tmp_path / "text.jpg").write_text("This is not an image.")
    write_jpeg(tmp_path / "scene.jpg", draw_scene(0))
    ran = run("data", "check", "folder", tmp_path)
    assert ran.code == 1
    assert "text.jpg: unsupported format" in ran.out


def test_a_plan_for_a_few_images_names_no_cluster(scenes: Path) -> None:
    few = run("plan", scenes, "--preset", "sift").out
    assert "On machines of" not in few and "--images NUMBER plans for more" in few
    assert "On machines of 16 cores" in run("plan", scenes, "--preset", "sift", "--images", "1e7").out
    assert "On machines of 4 cores" in run("plan", scenes, "--preset", "sift", "--node-cores", 4).out


def test_a_plan_is_for_as_many_images_as_asked(scenes: Path) -> None:
    here = run("plan", scenes, "--json").answer
    assert (here["images"], here["probed"], here["unreadable"]) == (12, 12, 0)
    many = run("plan", scenes, "--images", 1200, "--json").answer
    assert many["images"] == 1200
    assert many["store_bytes"] == pytest.approx(100 * here["store_bytes"], rel=0.01)
    assert many["seconds"] == pytest.approx(1200 * many["seconds_an_image"])


def test_what_was_deleted_is_not_found_again(own: Path, view: Path) -> None:
    ran = run("delete", own, "scene_07.jpg", "not there", "--json")
    facts = {"collection": str(own), "removed": 1, "missing": ["not there"], "images": 11}
    assert (ran.code, json.loads(ran.out)) == (2, facts)
    hits = run("search", own, view, "-k", 20, "--json").answer["hits"]
    assert len(hits) == 11
    assert "scene_07.jpg" not in [hit["id"] for hit in hits]
    assert hits[0]["probability"] < 0.5


def test_help_needs_no_heavy_package() -> None:
    """A fresh Python: this one has imported them all."""
    heavy = (
        "lance",
        "lancedb",
        "faiss",
        "cv2",
        "fastapi",
        "onnxruntime",
        "pyarrow",
        "scipy",
        "numpy",
        "PIL",
    )
    code = (
        "import sys, resight.apps.cli as cli\n"
        "for words in ([], ['search'], ['index'], ['eval'], ['demo'], ['plan']):\n"
        "    sys.argv = ['resight', *words, '--help']\n"
        "    try:\n        cli.main()\n    except SystemExit as end:\n        assert end.code == 0\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Find the very same object" in ran.stdout
    assert ran.stderr == "[]\n"


def test_a_changed_setting_opens_the_collection_once(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    make = Collection.__init__

    def count(self: Collection, *given: Any, **named: Any) -> None:
        opened.append(self)
        make(self, *given, **named)

    monkeypatch.setattr(Collection, "__init__", count)
    assert open_to_search(indexed, ["rerankers=[]"]).recipe.rerankers == ()
    assert len(opened) == 1
