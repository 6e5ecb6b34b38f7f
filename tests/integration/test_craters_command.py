"""`resight craters`: a map and a catalogue become a collection, also after a kill; what is left out is counted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from support.running import run

import resight
from resight.collection import crater_index
from resight.data.maps.crater_catalogue import read_table
from resight.data.maps.crater_crops import NO_DATA, CraterCrops, CropSettings
from resight.data.maps.map_file import open_map
from resight.errors import StorageError

CRATERS = 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A map of half a globe with texture, west to east from 150 to 330, and a catalogue of craters all over it."""
    rng = np.random.default_rng(0)
    ground = cv2.GaussianBlur(rng.normal(size=(720, 720)).astype(np.float32), (0, 0), 2)
    pixels = np.clip(128 + 250 * ground, 1, 255).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "map.png"), pixels)
    lons, lats = rng.uniform(170, 310, CRATERS), rng.uniform(-60, 60, CRATERS)
    rows = [f"{lon:.3f},{lat:.3f},{80 + number}" for number, (lon, lat) in enumerate(zip(lons, lats, strict=True))]
    (tmp_path / "craters.csv").write_bytes("\r".join(["Lon,Lat,Diam_km", *rows]).encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


USUAL = (
    "--bounds",
    "150,-90,330,90",
    "--body",
    "moon",
    "--encoder",
    "sift",
    "--pixels",
    "96",
    "--least-pixels",
    "16",
    "--view",
    "3",
)


def index(*words: object) -> dict[str, Any]:
    done = run("craters", "map.png", "craters.csv", "--into", "c.resight", *USUAL, *words, "--json")
    assert done.code == 0, done.err
    answer: dict[str, Any] = json.loads(done.out)
    return answer


def test_a_collection_of_craters_that_a_search_finds(folder: Path) -> None:
    report = index("--view", 2)
    assert (report["craters"], report["crops"], report["added"]) == (CRATERS, 2 * CRATERS, 2 * CRATERS)
    assert report["left_out"] == {}
    collection = resight.open("c.resight")
    record = next(collection.records(["0007_3x"]))
    assert record.path.parent == folder / "c.resight.crops" / "00000"
    assert record.size == (96, 96)
    about = dict(record.attributes)
    assert about.pop("crater_lon") == pytest.approx(
        float((folder / "craters.csv").read_text().split("\n")[8].split(",")[0])
    )
    assert set(about) == {"label", "view", "crater_lat", "diameter_km", "radius_km", "map"}
    assert (about["label"], about["view"], about["diameter_km"], about["map"]) == ("0007", "3x", 87.0, "map")
    hits = collection.search(record.path, k=2)
    assert hits[0].id == "0007_3x"
    again = index("--view", 2)
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 0, 2 * CRATERS)


def test_a_changed_crater_or_size_is_drawn_and_encoded_again(folder: Path) -> None:
    index()
    text = (folder / "craters.csv").read_text().split("\n")
    text[5] = text[5].rpartition(",")[0] + ",200"
    (folder / "craters.csv").write_text("\n".join(text))
    report = index()
    assert (report["added"], report["updated"], report["unchanged"]) == (0, 1, CRATERS - 1)
    report = index("--pixels", 80)
    assert (report["added"], report["updated"]) == (0, CRATERS)
    next((folder / "c.resight.crops").rglob("*_3x-*.png"))


def test_what_is_left_out_is_said(folder: Path) -> None:
    pixels = cv2.imread("map.png", cv2.IMREAD_GRAYSCALE)
    pixels[:360] = 0
    cv2.imwrite("map.png", pixels)
    with (folder / "craters.csv").open("a") as file:
        file.write("\r20,10,90\rx,y,z")
    done = run("craters", "map.png", "craters.csv", "--into", "c.resight", *USUAL)
    assert done.code == 2
    assert "line 43" in done.err
    assert "--skip-bad" in done.err
    assert not (folder / "c.resight").exists()
    report = index("--skip-bad", "--no-data", 0, "--smallest-km", 85)
    north = sum(float(line.split(",")[1]) > 0 for line in (folder / "craters.csv").read_text().split("\n")[6:-2])
    assert report["left_out"]["craters smaller than asked for"] == 5
    assert report["left_out"]["crops that leave the map"] == 1
    assert north <= report["left_out"][NO_DATA] <= north + 3  # and those across the equator
    assert report["added"] == 35 - report["left_out"][NO_DATA]
    assert (report["bad"], report["unreadable"]) == (1, 0)
    again = index("--skip-bad", "--no-data", 0, "--smallest-km", 85)
    assert (again["unchanged"], again["left_out"]) == (report["added"], report["left_out"])


def test_wrong_bounds_are_an_error_that_shows_them(folder: Path) -> None:
    done = run("craters", "map.png", "craters.csv", "--into", "c.resight", "--bounds", "0,-90,90,90", "--body", "moon")
    assert done.code == 2
    assert "0 of 40 craters" in done.err
    assert "longitudes 0 to 90" in done.err
    for words, problem in (
        (["--bounds", "1,2,3"], "--bounds cannot be read"),
        ([], "which globe"),
        (["--body", "mon"], "did you mean 'moon'"),
        (["--body", "moon", "--radius", 1737], "exclude each other"),
    ):
        done = run("craters", "map.png", "craters.csv", "--into", "c.resight", *words)
        assert (done.code, problem in done.err) == (2, True), done.err
    assert not (folder / "c.resight").exists()


@pytest.mark.usefixtures("folder")
def test_another_map_does_not_replace_the_crops_of_the_first() -> None:
    index()
    done = run("craters", "map.png", "craters.csv", "--into", "c.resight", *USUAL, "--map-name", "other")
    assert done.code == 3
    assert "from another map" in done.err
    report = index("--map-name", "other", "--prefix", "other/")
    assert report["added"] == CRATERS
    assert len(resight.open("c.resight")) == 2 * CRATERS


def test_a_plan_writes_nothing(folder: Path) -> None:
    done = run("craters", "map.png", "craters.csv", *USUAL, "--view", 2, "--plan", "--json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert plan["crops"] == 2 * CRATERS
    assert min(plan["seconds"], plan["memory_bytes"], plan["crop_bytes"], plan["index"]["store_bytes"]) > 0
    assert sorted(path.name for path in folder.iterdir()) == ["craters.csv", "map.png"]
    assert "crops per second" in run("craters", "map.png", "craters.csv", *USUAL, "--plan").out
    index("--view", 2)
    written = sum(path.stat().st_size for path in (folder / "c.resight.crops").rglob("*.png"))
    assert plan["crop_bytes"] == pytest.approx(written, rel=0.1)


def test_a_code_book_is_learnt_from_the_crops(folder: Path) -> None:
    (folder / "learn.toml").write_text(
        'index = "bow_histogram"\n[[branches]]\nencoder = "sift"\n'
        'descriptor = { name = "bow", codebook = "learn", words = 16 }\n'
    )
    done = run(
        "craters", "map.png", "craters.csv", "--into", "c.resight", *USUAL[:4], "--pixels", 96,
        "--least-pixels", 16, "--view", 3, "--recipe", "learn.toml",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(resight.open("c.resight")) == CRATERS


def make_crops(folder: Path, name: str) -> CraterCrops:
    image = open_map(folder / "map.png", (150.0, -90.0, 330.0, 90.0), 1_737_400)
    settings = CropSettings(views=(2.0, 3.0), pixels=96, least_pixels=16)
    return CraterCrops(image, read_table(folder / "craters.csv"), settings, folder / name)


def test_portions_bound_the_memory_and_change_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = crater_index.index_craters("whole.resight", make_crops(folder, "one"), "sift")
    monkeypatch.setattr(crater_index, "PORTION", 13)
    done: list[tuple[int, int]] = []
    parts = crater_index.index_craters(
        "parts.resight", make_crops(folder, "two"), "sift", lambda some, total: done.append((some, total))
    )
    assert parts == whole
    assert done[-1] == (80, 80)
    assert done == sorted(done)
    assert len(resight.open("parts.resight")) == 80


def test_a_full_disk_ends_the_command_and_the_next_run_continues(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crops = make_crops(folder, "crops")
    write, written = Path.write_bytes, []

    def fill(path: Path, data: bytes) -> int:
        if "crops" in path.parts and len(written) >= 60:
            raise OSError(28, "No space left on device")
        written.append(path)
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(StorageError, match="cannot be written") as caught:
        crater_index.index_craters("c.resight", crops, "sift")
    assert "No space left" in caught.value.actual
    monkeypatch.undo()
    report = crater_index.index_craters(folder / "c.resight", make_crops(folder, "crops"), "sift")
    assert report.added + report.unchanged == 80
    assert report.unchanged >= 32


ADD = """
import sys
from resight.collection import add
add.SMALLEST_BATCH = 4
sys.argv = ["resight", *sys.argv[1:]]
from resight.apps.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_and_run_again_it_is_the_collection_that_it_would_have_been(folder: Path) -> None:
    words = ["craters", "map.png", "craters.csv", *USUAL, "--view", "2", "--json", "--into"]
    process = subprocess.Popen([sys.executable, "-c", ADD, *words, "killed.resight"], start_new_session=True)
    crops = folder / "killed.resight.crops"
    while len(list(crops.rglob("*.png"))) < 30:
        assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    stored = len(resight.open("killed.resight"))
    assert 0 < stored < 80
    damaged = sorted(crops.rglob("*.png"))[-1]
    again = run(*words, "killed.resight")
    assert again.code == 0, again.err
    report = json.loads(again.out)
    assert (report["added"], report["unchanged"]) == (80 - stored, stored)
    assert not list(crops.rglob("*.tmp"))
    assert cv2.imread(str(damaged)) is not None
    run(*words, "whole.resight")
    check_records(folder)


def check_records(folder: Path) -> None:
    killed, whole = (resight.open(folder / name) for name in ("killed.resight", "whole.resight"))
    pairs = [{record.id: (record.sha256, record.attributes) for record in one.records()} for one in (killed, whole)]
    assert pairs[0] == pairs[1]
    rows = [
        {id: part.vectors.tobytes() for id in pairs[0] for part in one.descriptors(0, [id])} for one in (killed, whole)
    ]
    assert rows[0] == rows[1]
