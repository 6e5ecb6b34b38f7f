"""`resight tune` on a data set with truth, and on a collection without."""

import json
from pathlib import Path

import pytest
from support.running import Ran, run
from support.scenes import draw_scene, write_jpeg

RECIPE = """
name = "scenes"
data = "manifest"
metrics = ["ap", "recall@1"]
index = "exact"
[[branches]]
encoder = { name = "efficientnet_lite", size = 64, block = 3 }
descriptor = "pooled"
regions = { name = "grid", level = 3 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    lines = ["path,role,positives"]
    for number in range(12):
        write_jpeg(folder / f"{number}.jpg", draw_scene(number))
        lines.append(f"{number}.jpg,database,")
    for number in range(2):
        write_jpeg(folder / f"q{number}.jpg", draw_scene(number)[8:, 8:])
        lines.append(f"q{number}.jpg,query,{number}.jpg")
    (folder / "views.csv").write_text("\n".join(lines))
    (folder / "r.toml").write_text(RECIPE)
    return folder


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Ran:
    """A data set that was tuned on; its images are kept as c.resight."""
    return run(
        "tune", folder / "r.toml", "--data", folder / "views.csv", "--keep", folder / "c.resight", "--m", "4,7",
        "--nprobe", "1,8", "-k", 5, "--json", folder / "t.json", "--html", folder / "t.html",
    )  # fmt: skip


def test_a_grid_is_measured_beside_the_exact_index(folder: Path, tuned: Ran) -> None:
    ran = tuned
    assert ran.code == 0, ran.err
    values = json.loads((folder / "t.json").read_text())
    labels = [row["label"] for row in values["rows"]]
    assert labels[0] == "exact" == values["reference"] and "m=4 nprobe=1" in labels
    assert any("7" in reason for reason in values["missing"].values())  # the rows have no seven equal parts
    exact, *others = values["rows"]
    assert exact["evaluation"]["metrics"]["recall@1"]["mean"] == 1.0
    assert all(row["bytes an image"] < exact["bytes an image"] for row in others)
    assert len({row["s to build"] for row in others}) == 1  # one index, searched in two ways
    assert any(row["front"] for row in values["rows"])
    assert values["line"] and ran.out.rstrip().endswith(values["line"])
    assert "ap against bytes per image" in (folder / "t.html").read_text()


@pytest.mark.usefixtures("tuned")
def test_a_collection_is_asked_about_itself(folder: Path) -> None:
    grid = ("--m", 4, "--nprobe", 8, "--json", folder / "u.json")
    ran = run("tune", folder / "c.resight", "--sample", 3, "-k", 4, *grid)
    assert ran.code == 0, ran.err
    values = json.loads((folder / "u.json").read_text())
    exact, point = values["rows"]
    assert exact["evaluation"]["metrics"]["recall_fraction@4"]["mean"] == 1.0
    assert 0 < point["evaluation"]["metrics"]["recall_fraction@4"]["mean"] <= 1.0
    assert exact["evaluation"]["queries"] == 3
    asked = run("tune", folder / "c.resight", folder / "q0.jpg", *grid)
    assert asked.code == 0, asked.err
    assert json.loads((folder / "u.json").read_text())["rows"][0]["evaluation"]["queries"] == 1


@pytest.mark.usefixtures("tuned")
@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("r.toml", "q0.jpg", "--data", "views.csv"), 2, "its own queries"),
        (("c.resight", "--metric", "ap"), 2, "no ground truth"),
        (("c.resight", "--nprobe", "many"), 2, "--nprobe takes whole numbers"),
        (("c.resight", "--branch", "3"), 2, "branch 3 has no index to tune"),
        (("nowhere.resight",), 3, "nowhere.resight"),
    ],
)
def test_what_cannot_be_tuned_is_refused(folder: Path, words: tuple[str, ...], code: int, complaint: str) -> None:
    ran = run("tune", *(folder / word if "." in word else word for word in words))
    assert (ran.code, complaint in ran.err) == (code, True), ran.err
