"""`resight dedup --apply` takes duplicates out, and `--undo` brings files and images back."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from support.running import run, state_of
from support.scenes import draw_scene

import resight
from resight.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A scene, its exact copy, a smaller JPEG of it, another scene, and a collection of all."""
    photos = tmp_path / "photos"
    (photos / "more").mkdir(parents=True)
    Image.fromarray(draw_scene(0)).save(photos / "scene.png")
    shutil.copyfile(photos / "scene.png", photos / "more" / "scene.png")
    Image.fromarray(draw_scene(0)).resize((300, 225)).save(photos / "small.jpg", quality=90)
    Image.fromarray(draw_scene(1)).save(photos / "other.png")
    opened = resight.open(tmp_path / "c.resight", "sift")
    opened.add(photos)
    return tmp_path


def copies(folder: Path, *words: object) -> list[str]:
    ran = run("dedup", folder / "c.resight", *words)
    assert ran.code == 0, ran.err
    return ran.out.splitlines()


def test_groups_are_printed_with_the_image_to_keep_first(folder: Path) -> None:
    kept = next(iter(resight.dedup(folder / "c.resight").groups.values()))[0]
    lines = copies(folder)
    assert lines[0] == f"group 1: keep {kept}"
    assert sorted(line.split()[-1] for line in lines[1:3]) == sorted(
        {"more/scene.png", "scene.png", "small.jpg"} - {kept}
    )
    assert {line.split()[0] for line in lines[1:3]} == {"copy", "near"}


def test_moved_files_leave_the_collection_and_come_back(folder: Path) -> None:
    before = state_of(folder / "photos")
    lines = copies(folder, "--apply", "move", "--to", folder / "out")
    undo = folder / "c.resight.undo.jsonl"
    assert lines[-1] == f"to undo: resight dedup --undo {undo}"
    photos = resight.open(folder / "c.resight")
    assert len(photos) == 2 and "other.png" in photos
    assert len(state_of(folder / "out")) == 2 and len(state_of(folder / "photos")) == 2
    ran = run("dedup", "--undo", undo)
    assert (ran.code, ran.out) == (0, "2 files and images are back; 0 could not be brought back\n")
    assert state_of(folder / "photos") == before and state_of(folder / "out") == {}
    assert sorted(photos) == ["more/scene.png", "other.png", "scene.png", "small.jpg"]
    assert run("dedup", "--undo", undo).code == 0  # once more changes nothing
    assert state_of(folder / "photos") == before


def test_only_equal_bytes_are_deleted_and_come_back(folder: Path) -> None:
    before = state_of(folder / "photos")
    found = resight.dedup(folder / "c.resight")
    applied = found.apply("delete", undo_list=folder / "list.jsonl")
    assert len(applied.removed) == 1
    assert [Path(one.path).name for one in applied.skipped] == ["small.jpg"]
    assert "its bytes differ" in applied.skipped[0].reason
    assert len(state_of(folder / "photos")) == 3
    assert applied.undo() == 1
    assert state_of(folder / "photos") == before and len(resight.open(folder / "c.resight")) == 4


def test_a_changed_file_a_shared_file_and_other_views_stay(folder: Path) -> None:
    found = resight.dedup(folder / "c.resight", kinds=["copy"])
    (lost,) = (name for name in next(iter(found.groups.values()))[1:])
    (folder / "photos" / lost).write_bytes(b"changed since")
    applied = found.apply("move", folder / "out", undo_list=folder / "list.jsonl")
    assert not applied.removed and "has changed" in applied.skipped[0].reason
    assert not (folder / "list.jsonl").exists()


def test_with_another_collection_only_its_images_go(folder: Path) -> None:
    other = folder / "others"
    other.mkdir()
    shutil.copyfile(folder / "photos" / "other.png", other / "again.png")
    resight.open(folder / "d.resight", "sift").add(other)
    before = state_of(folder / "photos")
    lines = copies(folder, "--against", folder / "d.resight", "--apply", "move", "--to", folder / "out")
    assert lines[-2].startswith("moved 1 files")
    assert state_of(folder / "photos") == before and state_of(other) == {}
    assert len(resight.open(folder / "d.resight")) == 0 and len(resight.open(folder / "c.resight")) == 4


def test_an_undo_list_is_never_replaced_and_a_wrong_one_is_refused(folder: Path) -> None:
    found = resight.dedup(folder / "c.resight")
    (folder / "list.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="exists"):
        found.apply("move", folder / "out", undo_list=folder / "list.jsonl")
    ran = run("dedup", "--undo", folder / "list.jsonl")
    assert ran.code == InputError.exit_code and "is no list of" in ran.err
    assert run("dedup", folder / "c.resight", "--apply", "move").code == InputError.exit_code
    assert run("dedup", folder / "c.resight", "--to", folder / "out").code == InputError.exit_code
    assert run("dedup").code == InputError.exit_code


def test_a_moved_file_that_was_changed_is_not_brought_back(folder: Path) -> None:
    applied = resight.dedup(folder / "c.resight", kinds=["copy"]).apply("move", folder / "out")
    Path(applied.removed[0].now).write_bytes(b"another picture")
    ran = run("dedup", "--undo", applied.undo_list, "--json")
    assert ran.code == InputError.exit_code
    answer = json.loads(ran.out)
    assert answer["returned"] == 0 and "has changed since" in answer["skipped"][0]["reason"]
