import contextlib
import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from resight import plugins, recipe
from resight.encode import named_networks
from resight.errors import MissingWeights, RecipeError
from resight.recipe.expand import expand
from resight.recipe.overrides import apply
from resight.types import Branch, Choice, Recipe

TEXT = """
name = "museum"
index = "hnsw"
data = { name = "museum", direction = "photos" }
metrics = ["ap", "recall@1"]

[[branches]]
encoder = { name = "sift", features = 500 }
descriptor = "vlad"
weight = 2

[[rerankers]]
name = "geometry"
candidates = 10
"""
BRANCH = {"encoder": "sift", "descriptor": "vlad"}
EXPECTED = Recipe(
    name="museum",
    branches=(Branch(Choice("sift", {"features": 500}), Choice("vlad"), weight=2.0),),
    data=Choice("museum", {"direction": "photos"}),
    index=Choice("hnsw"),
    rerankers=(Choice("geometry", {"candidates": 10}),),
    metrics=("ap", "recall@1"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def override(text: str, table: dict) -> dict:
    changed = copy.deepcopy(table)
    apply(changed, text)
    return changed


def test_a_file_becomes_a_recipe(file: Path):
    assert recipe.load(file) == EXPECTED
    assert recipe.load(str(file)) == EXPECTED


def test_a_recipe_without_a_name_is_called_like_its_file(file: Path):
    file.write_text(TEXT.replace('name = "museum"\n', "", 1))
    assert recipe.load(file).name == "mine"


def test_what_is_left_out_has_its_default():
    made = recipe.parse({"branches": [BRANCH]})
    assert made == Recipe("unnamed", (Branch(Choice("sift"), Choice("vlad")),))
    assert (made.store, made.index, made.branches[0].weight) == (Choice("lance"), Choice("exact"), 1.0)


def test_a_recipe_survives_the_way_through_json():
    assert recipe.parse(json.loads(json.dumps(recipe.to_table(EXPECTED)))) == EXPECTED


@pytest.mark.parametrize("name", recipe.shipped())
def test_a_shipped_recipe_uses_plug_ins_and_settings_that_exist(name: str):
    chosen = []
    for made in recipe.load_all(name):
        assert made.name.partition(recipe.LABEL_SEPARATOR)[0] == name
        chosen += [("resight.index", made.index), *(("resight.search.rerankers", part) for part in made.rerankers)]
        for branch in made.branches:
            chosen += [("resight.encode.descriptors", branch.descriptor)]
            with contextlib.suppress(MissingWeights):  # of a network whose weights everybody has to bring along
                chosen += [("resight.encode.backbones", named_networks.resolve_branch(branch).encoder)]
            chosen += [("resight.encode.transforms", part) for part in branch.transforms]
            cuts = [part for part in (branch.regions, branch.query_regions) if part is not None]
            chosen += [("resight.encode.descriptors.regions", part) for part in cuts]
            chosen += [("resight.encode.photometric", branch.photometric)] if branch.photometric else []
        chosen += [("resight.data.sets", made.data)] if made.data is not None else []
    for package, choice in chosen:
        plugins.configure(plugins.find(package, choice.name).Config, choice.settings, choice.name)


def test_the_default_recipe_is_shipped():
    assert "sift" in recipe.shipped()


@pytest.mark.parametrize(
    "name",
    ["no_such", "../sift", "recipes/sift", "sift.toml", "", "craterbench", "craterbench/../sift", "craterbench//cnn"],
)
def test_an_unknown_recipe_is_answered_with_the_shipped_ones(name: str):
    with pytest.raises(RecipeError) as caught:
        recipe.load(name)
    assert "sift" in caught.value.expected


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes):
    (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(RecipeError, match=r"bad\.toml is not valid TOML"):
        recipe.load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({}, "a recipe without branches"),
        ({"branches": []}, "a recipe without branches"),
        ({"branches": "sift"}, "a recipe without branches"),
        ({"branches": ["sift"]}, "recipe 'unnamed': branches.0 does not fit"),
        ({"branches": [BRANCH, {"encoder": "sift"}]}, "recipe 'unnamed': branches.1 has no descriptor"),
        ({"branches": [{"descriptor": "vlad"}]}, "recipe 'unnamed': branches.0 has no encoder"),
        ({"branches": [{**BRANCH, "wieght": 1}]}, "recipe 'unnamed': branches.0 has no setting 'wieght'"),
        ({"name": "mine", "branches": [BRANCH], "indx": "exact"}, "recipe 'mine' has no setting 'indx'"),
        ({"branches": [BRANCH], "index": 3}, "recipe 'unnamed': index is not a plug-in"),
        ({"branches": [BRANCH], "index": {"links": 16}}, "recipe 'unnamed': index is not a plug-in"),
    ],
)
def test_a_table_that_is_no_recipe_says_why(table: dict, problem: str):
    with pytest.raises(RecipeError) as caught:
        recipe.parse(table)
    assert caught.value.problem == problem


def test_an_unknown_key_is_answered_with_the_known_ones():
    with pytest.raises(RecipeError) as caught:
        recipe.parse({"branches": [{**BRANCH, "wieght": 1}]})
    assert caught.value.expected == (
        "one of encoder, descriptor, transforms, weight, index, regions, query_regions, photometric"
    )
    assert caught.value.fix == "did you mean 'weight'?"


def test_overrides_are_put_in_from_left_to_right(file: Path):
    made = recipe.load(file, ["index=exact", "branches.0.encoder.features=2000", "index=asmk_inverted"])
    assert made.index == Choice("asmk_inverted")
    assert made.branches[0].encoder == Choice("sift", {"features": 2000})


def test_a_plug_in_given_by_bare_name_can_be_given_a_setting():
    assert override("index.links=16", {"index": "hnsw"}) == {"index": {"name": "hnsw", "links": 16}}


def test_a_setting_may_be_put_where_there_was_no_table():
    assert override("data.name=museum", {}) == {"data": {"name": "museum"}}


def test_a_whole_place_of_a_list_can_be_replaced():
    assert override("rerankers.1=geometry", {"rerankers": ["a", "b"]}) == {"rerankers": ["a", "geometry"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("hnsw", "hnsw"),
        ('"3"', "3"),
        ("[1, 2]", [1, 2]),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_a_value_is_toml_or_a_bare_word(text: str, value: object):
    assert override(f"key={text}", {}) == {"key": value}


@pytest.mark.parametrize("text", ["index", "=3", " = 3"])
def test_an_override_without_key_or_value_is_refused(text: str):
    with pytest.raises(RecipeError, match="cannot use"):
        apply({}, text)


@pytest.mark.parametrize("text", ["branches.1.weight=3", "branches.first.weight=3", "branches.-1=3", "name.x.y=3"])
def test_an_override_that_leads_nowhere_is_refused(text: str):
    with pytest.raises(RecipeError, match="leads nowhere"):
        apply({"branches": [dict(BRANCH)], "name": {"x": 5}}, text)


@pytest.mark.parametrize(
    "extra", [{"metrics": "ap"}, {"metrics": [5]}, {"rerankers": "geometry"}, {"rerankers": {"name": "geometry"}}]
)
def test_a_list_has_to_be_a_list_of_the_right_things(extra):
    with pytest.raises(RecipeError):
        recipe.parse({"branches": [{"encoder": "sift", "descriptor": "vlad"}], **extra})


@pytest.mark.parametrize("weight", ["heavy", float("nan"), -1, [1], True])
def test_a_weight_is_a_number_of_0_or_more(weight):
    with pytest.raises(RecipeError, match="weight"):
        recipe.parse({"branches": [{"encoder": "sift", "descriptor": "vlad", "weight": weight}]})


def test_a_list_of_plug_ins_makes_a_recipe_of_each(file: Path):
    file.write_text(TEXT.replace('descriptor = "vlad"', 'descriptor = ["vlad", { name = "asmk", query_words = 3 }]'))
    first, second = recipe.load_all(file)
    assert first == replace(EXPECTED, name="museum: vlad")
    assert second.branches[0].descriptor == Choice("asmk", {"query_words": 3})
    assert [recipe.label(one) for one in (first, second)] == ["vlad", "asmk"]


def test_every_combination_of_alternatives_is_made_the_last_place_changing_fastest():
    table = {"name": "r", "index": ["exact", "hnsw"], "branches": [{"encoder": "sift", "descriptor": ["vlad", "asmk"]}]}
    made = [recipe.parse(one) for one in expand(table)]
    assert [one.name for one in made] == ["r: exact, vlad", "r: exact, asmk", "r: hnsw, vlad", "r: hnsw, asmk"]
    assert [(one.index.name, one.branches[0].descriptor.name) for one in made] == [
        ("exact", "vlad"), ("exact", "asmk"), ("hnsw", "vlad"), ("hnsw", "asmk")
    ]  # fmt: skip


def test_a_label_has_the_settings_that_tell_alternatives_apart():
    options = [
        "tokens",
        {"name": "tokens", "selection": "norm", "k": 16, "seed": 1},
        {"name": "aggregated", "k": 16, "merge": "mean"},
        {"name": "aggregated", "k": 32, "merge": "mean"},
    ]
    table = {"name": "r", "branches": [{"encoder": "sift", "descriptor": options}]}
    labels = [recipe.label(recipe.parse(one)) for one in expand(table)]
    assert labels == ["tokens", "tokens selection=norm k=16 seed=1", "aggregated k=16", "aggregated k=32"]


def test_rerankers_have_alternatives_as_lists_of_lists():
    table = {"name": "r", "branches": [BRANCH], "rerankers": [[], [{"name": "late", "candidates": 5}, "geometry"]]}
    first, second = (recipe.parse(one) for one in expand(table))
    assert (first.rerankers, recipe.label(first)) == ((), "none")
    assert second.rerankers == (Choice("late", {"candidates": 5}), Choice("geometry"))
    assert recipe.label(second) == "late + geometry"
    chain = expand({"branches": [BRANCH], "rerankers": ["late", "geometry"]})
    assert len(chain) == 1  # one after the other, and no choice


def test_a_single_alternative_is_no_choice():
    (table,) = expand({"name": "r", "index": [{"name": "hnsw", "links": 8}], "branches": [BRANCH]})
    assert recipe.parse(table) == Recipe(
        "r", (Branch(Choice("sift"), Choice("vlad")),), index=Choice("hnsw", {"links": 8})
    )


def test_expanding_changes_no_table_that_was_given():
    table = {"name": "r", "branches": [{"encoder": "sift", "descriptor": ["vlad", "asmk"]}]}
    before = copy.deepcopy(table)
    expand(table)
    assert table == before


def test_alternatives_can_be_changed_and_chosen_on_the_command_line(file: Path):
    file.write_text(TEXT.replace('descriptor = "vlad"', 'descriptor = ["vlad", "asmk"]'))
    first, second = recipe.load_all(file, ["branches.0.descriptor.1.query_words=2"])
    assert (first.branches[0].descriptor, second.branches[0].descriptor) == (
        Choice("vlad"),
        Choice("asmk", {"query_words": 2}),
    )
    assert recipe.load(file, ["branches.0.descriptor=vlad"]) == EXPECTED


def test_where_one_recipe_is_needed_alternatives_are_refused_and_named(file: Path):
    file.write_text(TEXT.replace('descriptor = "vlad"', 'descriptor = ["vlad", "asmk", "local"]'))
    with pytest.raises(RecipeError, match="holds alternatives") as caught:
        recipe.load(file)
    assert caught.value.actual == "3: vlad; asmk; local"
    assert "resight eval" in caught.value.fix


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"index": []}, "index has no alternative"),
        ({"index": ["exact", 5]}, "index is not a plug-in"),
        ({"index": ["exact", "exact"]}, "the same alternative twice"),
        ({"rerankers": [["late"], "geometry"]}, "rerankers is not a list"),
        ({"rerankers": [["late"], [["geometry"]]]}, "rerankers is not a plug-in"),
    ],
)
def test_alternatives_that_make_no_sense_say_why(extra: dict, problem: str):
    with pytest.raises(RecipeError) as caught:
        expand({"branches": [BRANCH], **extra})
    assert caught.value.problem == problem


def test_a_preset_says_how_and_the_recipe_on_which_data(file: Path):
    made = recipe.load(file, ["rerankers.0.candidates=7"], preset="sift_vlad")
    preset = recipe.load("sift_vlad")
    assert (made.data, made.metrics) == (EXPECTED.data, EXPECTED.metrics)
    assert (made.branches, made.index) == (preset.branches, preset.index)
    assert made.rerankers == (Choice("geometry", {"candidates": 7}),)
    assert made.name == "museum with sift_vlad"


def test_an_index_by_override_that_no_branch_takes_is_refused():
    for override in ("index=hnsw", "index.kind=fp32"):
        with pytest.raises(RecipeError, match="used by no branch"):
            recipe.load("sift_tokens", [override] if "." not in override else ["index=maxsim", override])
    assert recipe.load("sift_tokens", ["branches.1.index.kind=fp32"]).branches[1].index.settings["kind"] == "fp32"
    assert recipe.load("tokens", ["index.kind=fp32"]).index.settings["kind"] == "fp32"


def test_a_branch_may_have_an_index_of_its_own():
    made = recipe.parse({"branches": [{**BRANCH, "index": {"name": "hnsw", "links": 16}}]})
    assert made.branches[0].index == Choice("hnsw", {"links": 16})
    assert recipe.parse(json.loads(json.dumps(recipe.to_table(made)))) == made
