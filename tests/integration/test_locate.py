"""Where photos were taken: the command, the answer of a search, and GPS in the ranking. Scene i lies at latitude i."""

from pathlib import Path

import pytest
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg

import resight
from resight.collection import open_collection
from resight.collection.geo import follow_order


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slanted photographs of the scenes 4, 5 and 6, and one of something else."""
    folder = tmp_path_factory.mktemp("frames")
    for number in (4, 5, 6, 90):
        write_jpeg(folder / f"frame_{number:02}.jpg", look_at(draw_scene(number)))
    return folder


def test_a_photo_is_placed_where_its_scene_was_taken(indexed: Path, view: Path):
    (answer,) = run("locate", indexed, view, "--json").answer
    assert answer["image"] == str(view)
    assert answer["position"]["known"] is True
    assert (answer["position"]["lat"], answer["position"]["lon"]) == pytest.approx((7, 10), abs=1e-6)
    assert answer["position"]["metres"] == pytest.approx(53.6, abs=0.1)
    assert answer["position"]["support"] == ["scene_07.jpg"]


def test_the_table_says_what_is_not_known(indexed: Path, frames: Path):
    ran = run("locate", indexed, frames)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["frame_04.jpg", "frame_05.jpg", "frame_06.jpg", "frame_90.jpg"]
    assert "4.000000" in lines[2] and "10.000000" in lines[2]
    assert "don't know" in lines[5]
    assert "90% of cases" in lines[6]


def test_frames_of_a_sequence_are_placed_in_the_order_given(indexed: Path, frames: Path):
    names = [frames / f"frame_{number:02}.jpg" for number in (4, 5, 6)]
    found = run("locate", indexed, *names, "--sequence", "--json").answer
    assert [round(row["position"]["lat"], 3) for row in found] == [4, 5, 6]


def test_an_answer_has_the_position_and_a_query_its_own(indexed: Path, view: Path, scenes: Path):
    photos = resight.open(indexed)
    answer = photos.ask(view)
    assert answer.position is not None and answer.position.support == ("scene_07.jpg",)
    assert dict(photos.encode_query(scenes / "scene_03.jpg").attributes) == {"lat": 3.0, "lon": 10.0}


def test_positions_follow_the_state_of_the_collection(own: Path):
    photos = open_collection(own)
    before = photos.view().positions()
    assert before.ids == tuple(f"scene_{number:02}.jpg" for number in range(12))
    assert photos.view().positions() is before
    photos.delete("scene_00.jpg")
    assert len(photos.view().positions()) == 11


def test_the_oracle_keeps_what_is_near_and_b_keeps_a_sure_answer(indexed: Path, scenes: Path, view: Path):
    found = run("search", indexed, view, "--json", "--set", 'rerankers=[{name="gps"}, {name="geometry"}]').answer
    assert found["hits"][0]["id"] == "scene_07.jpg"
    assert found["hits"][0]["probability"] > 0.5
    only = 'rerankers=[{name="gps", variant="oracle", radius=250000}, {name="geometry"}]'
    found = run("search", indexed, scenes / "scene_03.jpg", "--json", "--set", only).answer
    assert {hit["id"] for hit in found["hits"]} == {f"scene_{number:02}.jpg" for number in range(1, 6)}


def test_gps_without_positions_is_an_error_that_says_so(tmp_path: Path, scenes: Path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for number in range(3):
        write_jpeg(bare / f"{number}.jpg", draw_scene(number))
    collection = tmp_path / "bare.resight"
    assert run("index", bare, "--into", collection, "--encoder", "sift").code == 0
    ran = run("search", collection, scenes / "scene_00.jpg", "--set", 'rerankers=[{name="gps"}]')
    assert ran.code == 2 and "no image of the collection has a position" in ran.err
    ran = run("locate", collection, scenes / "scene_00.jpg")
    assert ran.code == 2 and "has a position" in ran.err
    assert open_collection(collection).ask(scenes / "scene_00.jpg").position is None
    # Frames are still found, by the order of the images.
    found = run("locate", collection, bare, "--sequence", "--json").answer
    assert [row["found"] for row in found] == ["0.jpg", "1.jpg", "2.jpg"]
    (first,) = follow_order(open_collection(collection), [bare / "2.jpg"])
    assert first.ids[0] == "2.jpg"


def test_an_evaluation_tells_distances(tmp_path: Path, scenes: Path, view: Path):
    rows = [f"{scenes / f'scene_{number:02}.jpg'},{number},{number},10,database" for number in range(12)]
    table = tmp_path / "manifest.csv"
    table.write_text("\n".join(["path,id,lat,lon,role", *rows, f"{view},q,7,10,query"]))
    recipe = tmp_path / "recipe.toml"
    lines = ('data = "manifest"', 'index = "asmk_inverted"', 'metrics = ["recall@1"]')
    recipe.write_text("\n".join([*lines, "[[branches]]", 'encoder = "sift"', 'descriptor = "asmk"']))
    ran = run("eval", recipe, "--data", table, "--distances", "--no-cache")
    assert ran.code == 0, ran.err
    assert "metres from the queries" in ran.out
    assert any(line.split()[:3] == ["1-NN", "1", "0.00"] for line in ran.out.splitlines())
    assert any(line.startswith("answer:") and line.split()[-5:] == ["0.00"] * 5 for line in ran.out.splitlines())
