"""Bad input to the command: an exit code, a message that says what was expected, what came and what to do, on stderr
alone, and nothing changed on disk."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.odd_images import write_unreadable
from support.running import Ran, run, state_of
from support.scenes import write_scenes

from resight.collection import metadata
from resight.files.lock import writer_lock

UNREADABLE = ["empty.jpg", "text.jpg", "truncated.jpg", "bomb.png", "folder.jpg", "broken_link.jpg", "missing.jpg"]


def check_message(ran: Ran, code: int, *words: str) -> None:
    """The exit code, and a message of four parts, one a line."""
    assert (ran.code, ran.out) == (code, ""), ran
    lines = ran.err.splitlines()
    assert lines[0].startswith("error: ")
    assert [line.partition(":")[0] for line in lines[1:]] == ["  expected", "  actual", "  fix"], ran.err
    for word in words:
        assert word in ran.err


def test_a_wrong_path_to_index_leaves_nothing_behind(tmp_path: Path) -> None:
    check_message(run("index", tmp_path / "nowhere", "--into", tmp_path / "c.resight"), 2, "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_refused_and_the_collection_stays_as_it_was(own: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    before = state_of(own)
    check_message(run("index", tmp_path / "empty", "--into", own), 2, "no images in")
    assert state_of(own) == before


@pytest.mark.parametrize("command", ["search", "info", "delete", "calibrate"])
def test_a_collection_that_is_not_there_is_not_made(view: Path, tmp_path: Path, command: str) -> None:
    words = {"search": [view], "delete": ["id"]}.get(command, [])
    check_message(run(command, tmp_path / "c.resight", *words), 3, "there is no collection", "resight index")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_other_things_is_not_turned_into_a_collection(scenes: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("Monday")
    check_message(run("index", scenes, "--into", tmp_path), 3, "not empty", "choose another name")
    assert state_of(tmp_path).keys() == {"diary.txt"}


def test_another_encoding_is_refused_by_its_space(own: Path, scenes: Path, view: Path) -> None:
    before = state_of(own)
    ran = run("index", scenes, "--into", own, "--encoder", "sift_vlad")
    check_message(ran, 3, "asmk(", "vlad(", "leave out --preset")
    ran = run("search", own, view, "--set", "branches.0.descriptor=vlad", "--set", "index=exact")
    check_message(ran, 3, "asmk(", "vlad(")
    assert state_of(own) == before


@pytest.mark.parametrize("version", [0, 3, 99])
def test_another_format_is_refused_and_left_alone(own: Path, scenes: Path, view: Path, version: int) -> None:
    table = metadata.read_table(own, metadata.FILE)
    metadata.write_table(own, {**table, "format": version, "made_by": "resight 9.9"})
    before = state_of(own)
    for words in (["search", own, view], ["index", scenes, "--into", own], ["info", own], ["delete", own, "x"]):
        check_message(run(*words), 3, "expected: format 1 or 2", f"format {version}, made by resight 9.9")
    assert state_of(own) == before


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_query_that_is_not_an_image_is_refused(indexed: Path, tmp_path: Path, name: str) -> None:
    write_unreadable(tmp_path / "odd")
    before = state_of(indexed)
    words = "there is no image to look for" if name == "folder.jpg" else f"cannot read {tmp_path / 'odd' / name}"
    check_message(run("search", indexed, tmp_path / "odd" / name), 2, words)
    assert state_of(indexed) == before


@pytest.mark.parametrize("box", ["400,0,500,100", "-50,-50,0,0", "10,10,5,5", "0,0,4,4", "nan,0,9,9", "0,0,inf,9"])
def test_a_box_that_is_none_or_outside_the_image_is_refused(indexed: Path, view: Path, box: str) -> None:
    check_message(run("search", indexed, view, "--box", box), 2, "400 × 300 pixels")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--box", "1,2,3"),
        ("--box", "a,b,c,d"),
        ("--near", "48,2"),
        ("--near", "nan,2,100"),
        ("--near", "91,0,100"),
        ("--near", "0,0,-1"),
        ("--near", "0,0,nan"),
        ("--where", "no sign"),
        ("--set", "index=nonsense"),
        ("--set", "rerankers.0.nonsense=1"),
        ("--set", "rerankers.0.candidates=many"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused(indexed: Path, view: Path, option: str, value: str) -> None:
    check_message(run("search", indexed, view, option, value), 2)


def test_a_recipe_that_is_not_there_is_refused(scenes: Path, tmp_path: Path) -> None:
    ran = run("index", scenes, "--into", tmp_path / "c.resight", "--encoder", "shift")
    check_message(ran, 2, "no recipe 'shift'", "sift_vlad")
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_is_turned_away(own: Path, scenes: Path, view: Path) -> None:
    with writer_lock(own):
        check_message(run("index", scenes, "--into", own), 3, "another process is writing", "since")
        check_message(run("delete", own, "scene_00.jpg"), 3, "another process is writing")
        assert run("search", own, view, "--json").answer["hits"][0]["id"] == "scene_07.jpg"
    assert run("info", own, "--json").answer["images"] == 12


def test_unreadable_files_are_listed_and_do_not_stop_the_others(tmp_path: Path) -> None:
    photos, collection = tmp_path / "photos", tmp_path / "c.resight"
    write_scenes(photos, 3)
    write_unreadable(photos)
    ran = run("index", photos, "--into", collection)
    assert ran.code == 0
    assert "3 images (3 added, 0 updated, 0 unchanged, 18 skipped)" in ran.out
    assert "text.jpg: unsupported format; convert it" in ran.err
    shutil.rmtree(collection)
    skipped = run("index", photos, "--into", collection, "--json").answer["skipped"]
    odd = {path.name for path in photos.iterdir() if not path.name.startswith("scene_") and not path.is_dir()}
    assert {Path(item["path"]).name for item in skipped} == odd
    assert all(item["reason"] for item in skipped)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_disk_that_takes_no_more_loses_nothing(own: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the write fails in the same place."""
    write_scenes(tmp_path / "more", 20)
    before = run("info", own, "--json").answer["images"]
    code = (
        "import resource, sys\n"
        "import resight.store.lance, resight.collection\n"
        "from resight.apps.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "main()"
    )
    words = ["index", str(tmp_path / "more"), "--into", str(own)]
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    message = ran.stderr[ran.stderr.find("error: ") :]  # after the progress that a slow machine prints
    check_message(Ran(ran.returncode, ran.stdout, message), 4, "nothing that was reported as stored is lost")
    assert run("info", own, "--json").answer["images"] == before
    added = run("index", tmp_path / "more", "--into", own, "--json").answer
    assert (added["added"], added["images"]) == (20, 32)


def test_ctrl_c_ends_with_a_word_and_its_own_exit_code(scenes: Path, tmp_path: Path):
    command = [sys.executable, "-m", "resight", "index", str(scenes), "--into", str(tmp_path / "c.resight")]

    def heed() -> None:
        """Where a shell has started the tests in the background, it has them ignore the key."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as process:
        while not (tmp_path / "c.resight" / "writer.lock").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again to continue" in said


def test_an_index_that_no_branch_takes_is_refused(own: Path, view: Path) -> None:
    ran = run("search", own, view, "--set", "index=hnsw")
    assert ran.code == 2
    assert "'hnsw' is used by no branch" in ran.err and "branches.1.index" in ran.err
