"""`resight whiten`: learnt from labels, from pairs and from images alone, and used by a collection."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from support.running import run, state_of
from support.scenes import draw_scene, look_at, write_jpeg

from resight.collection import open_collection

THINGS = 12
RECIPE = """
[[branches]]
encoder = {{ name = "efficientnet_lite", variant = "lite2", block = 15, size = 64 }}
descriptor = {descriptor}
index = "{index}"
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve scenes, each whole and in a slanted view: with labels in labelled.csv, without in plain.csv."""
    folder = tmp_path_factory.mktemp("whitening")
    names = []
    for seed in range(THINGS):
        names += [f"{seed:02}_view.jpg", f"{seed:02}_whole.jpg"]
        write_jpeg(folder / names[-1], draw_scene(seed))
        write_jpeg(folder / names[-2], look_at(draw_scene(seed)))
    (folder / "labelled.csv").write_text("\n".join(["path,label", *(f"{name},{name[:2]}" for name in names)]))
    (folder / "plain.csv").write_text("\n".join(["path", *names]))
    (folder / "pooled.toml").write_text(RECIPE.format(descriptor='"pooled"', index="exact"))
    (folder / "tokens.toml").write_text(RECIPE.format(descriptor='"tokens"', index="maxsim"))
    (folder / "aggregated.toml").write_text(RECIPE.format(descriptor='{ name = "aggregated", k = 3 }', index="maxsim"))
    made = (("labelled", "pooled"), ("plain", "pooled"), ("labelled", "tokens"), ("plain", "aggregated"))
    for images, recipe in made:
        collection = folder / f"{images}_{recipe}.resight"
        ran = run("index", folder / f"{images}.csv", "--into", collection, "--recipe", folder / f"{recipe}.toml")
        assert ran.code == 0, ran.err
    return folder


def test_labels_teach_a_whitening_that_a_collection_uses(photos: Path, tmp_path: Path) -> None:
    before = state_of(photos / "labelled_pooled.resight")
    out, collection = tmp_path / "w.npz", tmp_path / "white.resight"
    learnt = run("whiten", photos / "labelled_pooled.resight", "--out", out, "--dimensions", 100, "--json").answer
    assert (learnt["kind"], learnt["images"], learnt["pairs"], learnt["dimensions"]) == ("lw", 24, 12, 100)
    assert 0 < learnt["shrinkage"] <= 1
    assert "pooled(" in learnt["space"]
    assert state_of(photos / "labelled_pooled.resight") == before
    index = ("index", photos / "labelled.csv", "--into", collection, "--recipe", photos / "pooled.toml")
    assert run(*index, "--set", learnt["set"]).code == 0
    assert learnt["fingerprint"] in run("info", collection, "--json").answer["spaces"][0]
    out.unlink()  # the collection has a copy
    hits = run("search", collection, photos / "07_view.jpg", "-k", 3, "--json").answer["hits"]
    assert hits[0]["id"] == "07_view.jpg"
    assert hits[0]["stages"]["pooled"] == pytest.approx(1, abs=1e-4)
    again = run("whiten", collection, "--out", tmp_path / "twice.npz")
    assert (again.code, "whitened already" in again.err) == (2, True)


def test_pairs_from_a_file_teach_the_same_as_labels(photos: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    lines = [f"{number:02}_view.jpg,{number:02}_whole.jpg,1" for number in range(THINGS)]
    pairs.write_text("\n".join(["a,b,same", *lines, "00_view.jpg,05_whole.jpg,0"]))
    by_file = run("whiten", photos / "plain_pooled.resight", "--pairs", pairs, "--out", tmp_path / "f.npz", "--json")
    by_label = run("whiten", photos / "labelled_pooled.resight", "--out", tmp_path / "l.npz", "--json")
    assert by_file.answer["kind"] == "lw"
    assert by_file.answer["fingerprint"] == by_label.answer["fingerprint"]


def test_images_alone_teach_pca(photos: Path, tmp_path: Path) -> None:
    ran = run("whiten", photos / "plain_pooled.resight", "--out", tmp_path / "w.npz", "--dimensions", 8)
    assert ran.code == 0, ran.err
    assert "pca from 24 images, 8 dimensions" in ran.out
    words = shlex.split(ran.out.rpartition("use it with: ")[2])
    assert words[:2] == ["resight", "index"]
    ran = run(
        "index", photos / "plain.csv", "--into", tmp_path / "c.resight", "--recipe", photos / "pooled.toml", *words[3:]
    )
    assert ran.code == 0, ran.err


def test_tokens_are_whitened_by_pca(photos: Path, tmp_path: Path) -> None:
    tokens = photos / "labelled_tokens.resight"
    learnt = run("whiten", tokens, "--out", tmp_path / "w.npz", "--json").answer
    assert (learnt["kind"], learnt["images"], learnt["rows"]) == ("pca", 24, 24 * 4)
    index = ("index", photos / "plain.csv", "--into", tmp_path / "c.resight", "--recipe", photos / "tokens.toml")
    assert run(*index, "--set", learnt["set"]).code == 0
    hits = run("search", tmp_path / "c.resight", photos / "03_whole.jpg", "--json").answer["hits"]
    assert hits[0]["id"] == "03_whole.jpg"
    refused = run("whiten", tokens, "--kind", "lw", "--out", tmp_path / "lw.npz")
    assert (refused.code, "one vector per image" in refused.err) == (2, True)


def test_patches_explain_an_answer_through_a_whitening_of_aggregated_tokens(photos: Path, tmp_path: Path) -> None:
    aggregated = photos / "plain_aggregated.resight"
    learnt = run("whiten", aggregated, "--out", tmp_path / "w.npz", "--json").answer
    index = ("index", photos / "plain.csv", "--into", tmp_path / "c.resight", "--recipe", photos / "aggregated.toml")
    assert run(*index, "--set", learnt["set"]).code == 0
    answer = open_collection(tmp_path / "c.resight").ask(photos / "03_whole.jpg", k=1)
    assert answer.hits[0].id == "03_whole.jpg"
    evidence = answer.explain(answer.hits[0])
    assert evidence.heat is not None
    assert evidence.heat.max() > 0


@pytest.mark.parametrize("block", [10, 16])  # of 88 dimensions, and of 208 as block 15
def test_a_whitening_of_other_vectors_is_refused(photos: Path, tmp_path: Path, block: int) -> None:
    learnt = run("whiten", photos / "plain_pooled.resight", "--out", tmp_path / "w.npz", "--json").answer
    index = ("index", photos / "plain.csv", "--into", tmp_path / "c.resight", "--recipe", photos / "pooled.toml")
    ran = run(*index, "--set", f"branches.0.encoder.block={block}", "--set", learnt["set"])
    assert ran.code == 3
    assert "was learnt from descriptors of another kind" in ran.err and f"block={block}" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("--kind", "lw"), 2, "no two with the same label"),
        (("--dimensions", 209), 2, "209 dimensions"),
        (("--branch", 1), 3, "no branch 1"),
        (("--pairs", "unknown.csv"), 2, "'nowhere.jpg'"),
        (("--pairs", "none.csv"), 2, "no pair in"),
        (("--pairs", "missing.csv"), 2, "cannot be read"),
        (("--kind", "pca", "--pairs", "none.csv"), 2, "pca takes no pairs"),
        (("--kind", "zca"), 2, "zca"),
        (("--power", 2), 2, "--power"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    photos: Path, tmp_path: Path, words: tuple[object, ...], code: int, complaint: str
) -> None:
    (tmp_path / "unknown.csv").write_text("a,b\n00_view.jpg,nowhere.jpg\n")
    (tmp_path / "none.csv").write_text("a,b,same\n00_view.jpg,00_whole.jpg,0\n")
    words = tuple(tmp_path / word if str(word).endswith(".csv") else word for word in words)
    ran = run("whiten", photos / "plain_pooled.resight", "--out", tmp_path / "w.npz", *words)
    assert ran.code == code, ran.err
    assert complaint in ran.err
    assert not (tmp_path / "w.npz").exists()


def test_codes_cannot_be_whitened(indexed: Path, tmp_path: Path) -> None:
    for branch in (0, 2):  # asmk and local
        ran = run("whiten", indexed, "--branch", branch, "--out", tmp_path / "w.npz")
        assert ran.code == 2
        assert "pooled, tokens, aggregated" in ran.err


def test_a_collection_of_one_image_teaches_nothing(photos: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.resight"
    assert run("index", photos / "00_view.jpg", "--into", one, "--recipe", photos / "pooled.toml").code == 0
    ran = run("whiten", one, "--out", tmp_path / "w.npz")
    assert (ran.code, "too few images" in ran.err) == (2, True)


def test_a_folder_that_is_not_there_is_refused_before_the_work(photos: Path, tmp_path: Path) -> None:
    ran = run("whiten", photos / "plain_pooled.resight", "--out", tmp_path / "no" / "w.npz")
    assert (ran.code, "there is no folder" in ran.err) == (4, True)


def test_the_file_tells_what_it_was_learnt_from(photos: Path, tmp_path: Path) -> None:
    assert run("whiten", photos / "labelled_pooled.resight", "--out", tmp_path / "w.npz", "--power", 0.25).code == 0
    with np.load(tmp_path / "w.npz") as file:
        facts = json.loads(str(file["facts"]))
    assert (facts["kind"], facts["pairs"], facts["power"], facts["dimensions"]) == ("lw", 12, 0.25, 208)
    assert facts["found_before"] > 0 and facts["found_after"] > 0


def test_without_shrinkage_as_published(photos: Path, tmp_path: Path) -> None:
    words = ("whiten", photos / "labelled_pooled.resight", "--out", tmp_path / "w.npz", "--shrinkage", "none")
    learnt = run(*words, "--json").answer
    assert (learnt["kind"], learnt["shrinkage"], learnt["found_after"]) == ("lw", 0, None)
    shown = run(*words).out
    assert "no shrinkage" in shown and "fewer pairs than dimensions" in shown
