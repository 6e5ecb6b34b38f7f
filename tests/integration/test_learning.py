"""What the command learns from one's own images: visual words, and the probability."""

import shutil
from pathlib import Path

import pytest
from support.running import run, state_of
from support.scenes import draw_scene, look_at, write_jpeg


def test_a_code_book_of_ones_own_is_learnt_and_used(scenes: Path, view: Path, tmp_path: Path) -> None:
    book, collection = tmp_path / "words.npz", tmp_path / "own_words.resight"
    learnt = run("codebook", scenes, "--words", 64, "--out", book, "--json").answer
    assert (learnt["file"], learnt["words"]) == (str(book), 64)
    setting = f"branches.0.descriptor.codebook={book}"
    assert run("index", scenes, "--into", collection, "--set", setting).code == 0
    assert learnt["fingerprint"] in run("info", collection, "--json").answer["spaces"][0]
    assert run("search", collection, view, "--json").answer["hits"][0]["id"] == "scene_07.jpg"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of six scenes, each whole and in a slanted view, with the scene as label."""
    folder = tmp_path_factory.mktemp("labelled")
    lines = ["path,label"]
    for seed in range(6):
        write_jpeg(folder / f"{seed}_whole.jpg", draw_scene(seed))
        write_jpeg(folder / f"{seed}_view.jpg", look_at(draw_scene(seed)))
        lines += [f"{seed}_whole.jpg,scene {seed}", f"{seed}_view.jpg,scene {seed}"]
    (folder / "manifest.csv").write_text("\n".join(lines))
    assert run("index", folder / "manifest.csv", "--into", folder / "c.resight").code == 0
    return folder


def test_labels_calibrate_the_probability(labelled: Path, view: Path, tmp_path: Path) -> None:
    collection = Path(shutil.copytree(labelled / "c.resight", tmp_path / "c.resight"))
    fitted = run("calibrate", collection, "--json").answer
    assert (fitted["pairs"], fitted["same"]) == (12 * 11, 12)  # every image with every other
    assert min(fitted["weights"].values()) >= 0
    assert run("info", collection, "--json").answer["calibration"] == "its own"
    known = run("search", collection, labelled / "3_view.jpg", "--json").answer["hits"]
    assert [hit["attributes"]["label"] for hit in known[:2]] == ["scene 3", "scene 3"]
    assert known[1]["probability"] > 0.5 > known[2]["probability"]
    assert run("search", collection, view, "--json").answer["hits"][0]["probability"] < 0.5  # scene 7 is not there


def test_pairs_of_ones_own_calibrate_the_probability(labelled: Path, tmp_path: Path) -> None:
    collection = Path(shutil.copytree(labelled / "c.resight", tmp_path / "c.resight"))
    pairs = [(a, b) for a in range(6) for b in range(6)]
    lines = [f"{a}_view.jpg,{b}_whole.jpg,{int(a == b)}" for a, b in pairs]
    file = labelled / "pairs.csv"  # queries are relative to it
    file.write_text("\n".join(["query,id,same", *lines]))
    fitted = run("calibrate", collection, "--pairs", file, "--json").answer
    assert (fitted["pairs"], fitted["same"]) == (36, 6)
    file.write_text("\n".join(["query,id,same", *lines[:8]]))
    before = state_of(collection)
    ran = run("calibrate", collection, "--pairs", file)
    assert ran.code == 2
    assert "too few labelled pairs" in ran.err
    assert state_of(collection) == before


def test_votes_as_they_are_exported_calibrate_the_probability(labelled: Path, tmp_path: Path) -> None:
    collection = Path(shutil.copytree(labelled / "c.resight", tmp_path / "c.resight"))
    rows = []
    for a in range(6):
        for b in range(6):
            verdict = "same" if a == b else "different"
            rows += [f"{a}_view.jpg,{b}_whole.jpg,ada,{verdict}", f"{a}_view.jpg,{b}_whole.jpg,bob,unsure"]
    rows += ["0_view.jpg,1_view.jpg,ada,same", "0_view.jpg,1_view.jpg,bob,different"]  # a tie decides nothing
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(["a,b,reviewer,verdict", *rows]))
    fitted = run("calibrate", collection, "--pairs", file, "--json").answer
    assert (fitted["pairs"], fitted["same"]) == (36, 6)
    file.write_text("a,b,reviewer,verdict\n0_view.jpg,1_view.jpg,ada,unsure\n")
    ran = run("calibrate", collection, "--pairs", file)
    assert ran.code == 2 and "decides no pair" in ran.err


def test_words_are_learnt_from_the_images_that_are_indexed(scenes: Path, view: Path, tmp_path: Path) -> None:
    recipe, collection = tmp_path / "bow.toml", tmp_path / "bow.resight"
    recipe.write_text(
        'index = { name = "bow_histogram", tf_idf = false }\n[[branches]]\nencoder = "sift"\n'
        'descriptor = { name = "bow", codebook = "learn", words = 200, assignment = "soft" }\n'
    )
    assert run("index", scenes, "--into", collection, "--recipe", recipe).code == 0
    assert run("search", collection, view, "--json").answer["hits"][0]["id"] == "scene_07.jpg"
    again = run("index", scenes, "--into", collection, "--recipe", recipe, "--json").answer
    assert again["added"] == 0 and again["unchanged"] > 0
    many = "branches.0.descriptor.words=9999999"
    refused = run("index", scenes, "--into", tmp_path / "many.resight", "--recipe", recipe, "--set", many)
    assert refused.code == 2
    assert "too few local features" in refused.err
