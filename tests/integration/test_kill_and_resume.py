"""Indexing killed at random moments and begun again, and a reader beside a writer in another process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.killing import check_equal, kill_after, open_plain
from support.scenes import draw_scene, write_jpeg, write_scenes

# Small batches, so that there are many moments between two commits; a line for every report of progress.
ADD = """
import sys
import resight
from resight.collection import add
add.SMALLEST_BATCH = 4
photos = resight.open(sys.argv[2], "sift")
print("ready", flush=True)
photos.add(sys.argv[1], progress=lambda done, total: print(done, flush=True))
"""


def start_adding(folder: Path, collection: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", ADD, str(folder), str(collection)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_three_times_and_resumed_it_is_the_collection_that_it_would_have_been(tmp_path: Path) -> None:
    rng = np.random.default_rng()  # another three moments each time
    write_scenes(tmp_path / "photos", 60, size=(160, 120))
    killed = tmp_path / "killed.resight"
    stored = 0
    for new in (int(moment) for moment in rng.integers(0, 4, 3)):
        moment = (stored + new, float(rng.uniform(0, 0.1)))  # what is there already is reported once each
        kill_after(start_adding(tmp_path / "photos", killed), *moment)
        before, stored = stored, len(open_plain(killed))
        assert stored >= before, f"lost after a kill at {moment}"
    report = open_plain(killed).add(tmp_path / "photos")
    assert (report.added, report.updated, report.unchanged, report.skipped) == (60 - stored, 0, stored, ())

    whole = open_plain(tmp_path / "whole.resight")
    whole.add(tmp_path / "photos")
    check_equal(open_plain(killed), whole)
    query = write_jpeg(tmp_path / "query.jpg", draw_scene(33, 160, 120))
    assert open_plain(killed).search(query) == whole.search(query)


def test_a_reader_finds_its_way_while_another_process_adds(tmp_path: Path) -> None:
    query = write_jpeg(tmp_path / "first.jpg", draw_scene(99, 160, 120))
    photos = open_plain(tmp_path / "c.resight")
    photos.add(query)
    write_scenes(tmp_path / "more", 24, size=(160, 120))
    process = start_adding(tmp_path / "more", tmp_path / "c.resight")
    sizes = [1]
    while process.poll() is None:
        hits = photos.search(query, k=100)
        assert hits[0].id == "first.jpg"
        sizes.append(len(hits))
    assert process.stdout is not None
    process.stdout.close()
    assert process.returncode == 0
    assert sizes == sorted(sizes)
    assert len(photos.search(query, k=100)) == 25
