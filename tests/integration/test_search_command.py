"""`resight search` with many images, `resight ls`, and how both and `delete` refuse what they do not know."""

import io
import json
from pathlib import Path

import pytest
from support.running import run


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_many_images_have_one_line_each_in_their_order(indexed: Path, scenes: Path, view: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7")
    (folder / "three.jpg").write_bytes((scenes / "scene_03.jpg").read_bytes())
    ran = run("search", indexed, view, folder, tmp_path / "gone.jpg", "--id", "scene_05.jpg", "--json", "-k", 2)
    found = rows(ran.out)
    assert ran.code == 2 and "pdftoppm" in ran.err
    assert [row["query"] for row in found] == [
        *(str(view), str(folder / "three.jpg"), str(tmp_path / "gone.jpg"), "scene_05.jpg")
    ]
    assert [row["hits"][0]["id"] for row in found if "hits" in row] == ["scene_07.jpg", "scene_03.jpg", "scene_05.jpg"]
    assert "there is no such file" in found[2]["error"]["problem"]
    assert found[1]["verdict"] == "1 of 2 answers is very likely the same"
    text = run("search", indexed, view, scenes / "scene_03.jpg", "-k", 2)
    assert text.out.splitlines()[1].endswith("1 of 2 answers is very likely the same: scene_03.jpg (>99%)")


def test_a_list_on_standard_input_names_images_and_ids(
    indexed: Path, view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{view}\n\nscene_02.jpg\n"))
    found = rows(run("search", indexed, "-", "--json", "-k", 1).out)
    assert [row["hits"][0]["id"] for row in found] == ["scene_07.jpg", "scene_02.jpg"]


def test_only_answers_of_at_least_a_probability(indexed: Path, view: Path) -> None:
    answer = run("search", indexed, view, "--least", 0.5, "--json").answer
    assert [hit["id"] for hit in answer["hits"]] == ["scene_07.jpg"]
    assert answer["verdict"] == "the answer is very likely the same"


def test_an_image_that_is_not_there_is_probably_not_among_them(indexed: Path, tmp_path: Path) -> None:
    from support.scenes import draw_scene, write_jpeg

    other = write_jpeg(tmp_path / "other.jpg", draw_scene(77))
    assert run("search", indexed, other).out.splitlines()[0] == "probably not among these 12 images"
    nothing = run("search", indexed, other, "--least", 0.99)
    assert nothing.out.splitlines() == ["no answer of at least 99%: probably not among these 12 images"]


def test_swapped_arguments_are_recognised(indexed: Path, view: Path) -> None:
    ran = run("search", view, indexed)
    assert ran.code == 2
    assert "swapped" in ran.err and f"write {indexed} {view}" in ran.err


def test_a_misspelt_attribute_is_one_error_also_for_many_images(indexed: Path, view: Path) -> None:
    ran = run("search", indexed, view, view, "--where", "lati>3")
    assert ran.code == 2 and ran.out == ""
    assert "no image has the attribute 'lati'" in ran.err and "did you mean 'lat'?" in ran.err


def test_ids_are_listed_and_filtered(indexed: Path, scenes: Path) -> None:
    assert run("ls", indexed).out.splitlines() == [f"scene_{number:02}.jpg" for number in range(12)]
    assert run("ls", indexed, "--where", "lat>=10").out.split() == ["scene_10.jpg", "scene_11.jpg"]
    (row,) = run("ls", indexed, "scene_07.jpg", "--json").answer
    assert (row["id"], row["path"]) == ("scene_07.jpg", str(scenes / "scene_07.jpg"))
    assert row["attributes"] == {"lat": 7.0, "lon": 10.0}
    table = run("ls", indexed, "scene_07.jpg", "--csv").out.splitlines()
    assert table[0] == "id,path,width,height,bytes,lat,lon" and table[1].endswith(",7.0,10.0")
    assert "lat=7, lon=10" in run("ls", indexed, "--long").out
    summary = run("ls", indexed, "--attributes").out
    assert "0 to 11" in summary and "number" in summary


def test_ids_that_are_not_there_are_an_error_with_those_that_are_close(indexed: Path) -> None:
    for command in ("ls", "delete"):
        ran = run(command, indexed, "scene_7.jpg")
        assert ran.code == 2
        assert "scene_7.jpg" in ran.err and "did you mean 'scene_07.jpg'" in ran.err
    assert len(run("ls", indexed).out.splitlines()) == 12


def test_files_that_all_cannot_be_used_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no image")
    ran = run("index", tmp_path, "--into", tmp_path / "c.resight", "--json")
    assert ran.code == 2
    assert json.loads(ran.out)["added"] == 0 and "none of the 1 files can be used" in ran.err
