"""Named rows, many recipes at once, and overrides that reach both."""

from pathlib import Path
from typing import Any

import pytest

from resight import recipe
from resight.errors import RecipeError
from resight.recipe.expand import expand as expand_tables
from resight.recipe.overrides import apply
from resight.types import Branch, Choice, Recipe

POOLED = {"name": "pooled", "pooling": "gem"}
LINE = {"encoder": "resnet18", "descriptor": POOLED}
ROWS = """
metrics = ["ap"]

[rows]
"ResNet-18" = { encoder = "resnet18", descriptor = "pooled" }
"ViT v1.5" = { encoder = { name = "vit", size = 224 }, descriptor = { name = "pooled", pooling = "cls" } }
"reranked" = { branches = [{ encoder = "sift", descriptor = "vlad" }], rerankers = ["geometry"], index = "hnsw" }
"""
WITH_DATA = """
data = { name = "manifest", within_metres = 5 }
metrics = ["recall@1", "ap"]
[[branches]]
encoder = "sift"
descriptor = "asmk"
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write_recipe(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_recipe


def expand(table: dict[str, Any]) -> list[Recipe]:
    return [recipe.parse(one) for one in expand_tables(table)]


def labels(found: list[Recipe]) -> list[str]:
    return [recipe.label(one) for one in found]


def test_each_line_is_a_recipe_with_a_name_in_the_order_of_the_file(write) -> None:
    found = recipe.load_all(write("zoo", ROWS))
    assert labels(found) == ["ResNet-18", "ViT v1.5", "reranked"]
    assert found[0] == Recipe("zoo: ResNet-18", (Branch(Choice("resnet18"), Choice("pooled")),), metrics=("ap",))
    assert found[1].branches[0].descriptor == Choice("pooled", {"pooling": "cls"})
    assert (found[2].branches[0].encoder, found[2].index) == (Choice("sift"), Choice("hnsw"))
    assert found[2].rerankers == (Choice("geometry"),)


def test_a_line_that_is_a_branch_takes_the_place_of_all_branches() -> None:
    table = {"branches": [{"encoder": "sift", "descriptor": "vlad", "weight": 3}, LINE], "rows": {"own": LINE}}
    (found,) = expand(table)
    assert found.branches == (Branch(Choice("resnet18"), Choice("pooled", {"pooling": "gem"})),)


def test_what_a_line_lacks_is_that_of_the_only_branch() -> None:
    table = {"branches": [{"descriptor": POOLED, "weight": 3}], "rows": {"a": {"encoder": "resnet18"}}}
    assert expand(table)[0].branches == (Branch(Choice("resnet18"), Choice("pooled", {"pooling": "gem"})),)
    with pytest.raises(RecipeError, match=r"branches\.0 has no descriptor"):
        expand({"branches": [LINE, LINE], "rows": {"a": {"encoder": "resnet18"}}})


def test_a_line_may_leave_the_branches_and_change_the_rest() -> None:
    found = expand({"branches": [LINE], "rows": {"as it is": {}, "checked": {"rerankers": ["geometry"]}}})
    assert [len(one.rerankers) for one in found] == [0, 1]
    assert {one.branches[0].encoder.name for one in found} == {"resnet18"}


def test_alternatives_inside_a_row_and_outside_multiply_it() -> None:
    rows = {"a": {"encoder": "x", "descriptor": ["vlad", "asmk"]}, "b": {"encoder": "y", "descriptor": "vlad"}}
    found = expand({"name": "r", "index": ["exact", "hnsw"], "rows": rows})
    assert labels(found) == [
        "a, exact, vlad",
        "a, exact, asmk",
        "a, hnsw, vlad",
        "a, hnsw, asmk",
        "b, exact",
        "b, hnsw",
    ]
    assert found[3].name == "r: a, hnsw, asmk"
    assert (found[3].index, found[3].branches[0].descriptor) == (Choice("hnsw"), Choice("asmk"))


def test_alternatives_may_have_names_of_their_own() -> None:
    named = {"CLS": {"name": "pooled", "pooling": "cls"}, "GeM": POOLED}
    found = expand({"branches": [{"encoder": "vit", "descriptor": named}]})
    assert labels(found) == ["CLS", "GeM"]
    assert found[1].branches[0].descriptor == Choice("pooled", {"pooling": "gem"})
    assert labels(expand({"branches": [{"descriptor": named}], "rows": {"S": {"encoder": "vit"}}})) == [
        "S, CLS",
        "S, GeM",
    ]
    with pytest.raises(RecipeError, match="descriptor is not a plug-in"):
        expand({"branches": [{"encoder": "vit", "descriptor": {"pooling": "cls", "p": 3}}]})


def test_a_setting_that_is_a_table_keeps_labels_whole() -> None:
    parts = [{"name": "fused", "parts": [{"encoder": "a"}]}, {"name": "fused", "parts": [{"encoder": "b"}]}]
    found = expand({"branches": [{"encoder": parts, "descriptor": "pooled"}]})
    assert labels(found) == ["fused parts=[{encoder=a}]", "fused parts=[{encoder=b}]"]


@pytest.mark.parametrize(
    ("rows", "problem", "expected"),
    [
        ({}, "a recipe without rows", "[rows]"),
        ([], "a recipe without rows", "[rows]"),
        ("ResNet", "rows is not a table", "[rows]"),
        ({"a": "resnet18"}, "the row 'a' is not a table", "encoder"),
        (
            {"a": {**LINE, "sise": 3}},
            "the row 'a', which is one branch, has no setting 'sise'",
            "one of encoder, descriptor",
        ),
        (
            {"a": {**LINE, "rerankers": []}},
            "the row 'a', which is one branch, has no setting 'rerankers'",
            "weight, index",
        ),
        (
            {"a": {"metrics": ["ap"]}},
            "the row 'a' has no setting 'metrics'",
            "branches, fusion, store, index, rerankers",
        ),
        ({"a: b": LINE}, "not a label", "': '"),
        ({" ": LINE}, "not a label", "words"),
        ({"a": {"fusion": "rank"}}, "a recipe without branches", "[[branches]]"),
    ],
)
def test_rows_that_make_no_sense_say_why(rows: Any, problem: str, expected: str) -> None:
    with pytest.raises(RecipeError) as caught:
        expand({"rows": rows})
    assert caught.value.problem == problem
    assert expected in caught.value.expected


def test_where_one_recipe_is_needed_rows_are_refused_and_named(write) -> None:
    with pytest.raises(RecipeError, match="holds alternatives") as caught:
        recipe.load(write("zoo", ROWS))
    assert caught.value.actual == "3: ResNet-18; ViT v1.5; reranked"
    assert recipe.load(write("one", '[rows]\nonly = { encoder = "sift", descriptor = "vlad" }')).name == "one: only"


def test_an_override_reaches_a_row_by_its_label(write) -> None:
    settings = ["rows.ResNet-18.encoder.size=320", 'rows."ViT v1.5".encoder.size=448', "rows.'ViT v1.5'.weight = 2"]
    first, second, _ = recipe.load_all(write("zoo", ROWS), settings)
    assert first.branches[0].encoder == Choice("resnet18", {"size": 320})
    assert second.branches[0].encoder == Choice("vit", {"size": 448})
    assert second.branches[0].weight == 2


def test_a_star_reaches_every_row_and_gives_each_a_value_of_its_own(write) -> None:
    path = write(
        "zoo",
        ROWS.replace("reranked", "Bob's").replace("branches = [{ ", "").replace(' }], rerankers = ["geometry"]', ""),
    )
    found = recipe.load_all(path, ["rows.*.encoder.mean=[0.5]", "rows.Bob's.encoder.mean.0=0.1"])
    assert [one.branches[0].encoder.settings["mean"] for one in found] == [[0.5], [0.5], [0.1]]
    table: dict[str, Any] = {"branches": [{"weight": 1}, {"weight": 2}]}
    apply(table, "branches.*.weight=0")
    assert table == {"branches": [{"weight": 0}, {"weight": 0}]}


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("rows.ResNet-19.encoder.size=3", "there is no row 'ResNet-19'"),
        ("rows.ViT v1.5.encoder.size=3", "there is no row 'ViT v1'"),
        ('rows."ViT v1.5.encoder.size=3', "cannot use"),
        ("rows.=3", "cannot use"),
        ("rerankers.*.candidates=3", "leads nowhere"),
    ],
)
def test_an_override_that_reaches_no_row_is_refused(write, override: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        recipe.load_all(write("zoo", ROWS), [override])


def test_a_row_can_be_added_by_an_override(write) -> None:
    found = recipe.load_all(write("zoo", ROWS), ['rows.mine={encoder="sift", descriptor="vlad"}'])
    assert labels(found)[-1] == "mine"


def test_recipes_without_data_take_those_of_the_first_that_has_them(write) -> None:
    found = recipe.load_many([write("zoo", ROWS), write("walls", WITH_DATA)], ["data.within_metres=9"])
    assert labels(found) == ["ResNet-18", "ViT v1.5", "reranked", "walls"]
    assert {one.metrics for one in found} == {("recall@1", "ap")}
    assert all(one.data == Choice("manifest", {"within_metres": 9}) for one in found)


def test_an_override_that_names_a_row_is_for_the_recipes_that_have_it(write) -> None:
    paths = [write("walls", WITH_DATA), write("zoo", ROWS)]
    found = recipe.load_many(paths, ["rows.ResNet-18.encoder.size=320", "rows.ResNet-18.weight=2"])
    assert found[0].branches[0].encoder == Choice("sift")
    assert found[1].branches[0].encoder == Choice("resnet18", {"size": 320})
    with pytest.raises(RecipeError, match="there is no row 'VGG'"):
        recipe.load_many(paths, ["rows.VGG.encoder.size=320"])


@pytest.mark.parametrize(
    ("other", "differs", "first", "second"),
    [
        (WITH_DATA.replace("= 5", "= 6"), "data", "within_metres = 5", "within_metres = 6"),
        (WITH_DATA.replace('"recall@1", ', ""), "metrics", "['recall@1', 'ap']", "['ap']"),
    ],
)
def test_recipes_on_different_data_are_refused_and_both_are_shown(
    write, other: str, differs: str, first: str, second: str
) -> None:
    with pytest.raises(RecipeError, match=f"differ in their {differs}") as caught:
        recipe.load_many([write("one", WITH_DATA), write("two", other)])
    assert caught.value.expected.startswith("one: ") and first in caught.value.expected
    assert caught.value.actual.startswith("two: ") and second in caught.value.actual


def test_many_presets_are_measured_on_the_data_of_one_recipe(write) -> None:
    found = recipe.load_many([write("walls", WITH_DATA)], [], ["sift_vlad", write("zoo", ROWS)])
    assert [one.name for one in found] == ["sift_vlad", "zoo: ResNet-18", "zoo: ViT v1.5", "zoo: reranked"]
    assert all(one.data is not None and one.metrics == ("recall@1", "ap") for one in found)
    with pytest.raises(RecipeError, match="several recipes, and presets"):
        recipe.load_many(["sift", "sift_vlad"], [], ["tokens"])


def test_labels_that_clash_are_whole_names() -> None:
    made = [recipe.parse({"name": name, "branches": [LINE]}) for name in ("a: x", "b: x", "b: y", "c")]
    assert recipe.label_all(made) == ["a: x", "b: x", "y", "c"]
    with pytest.raises(RecipeError, match="same name"):
        recipe.label_all([made[3], made[3]])


# Rows of the tables: CraterBench-R 5, 6 and 7; the study of MSLS London 7 and 12; Patchify 4, 8 and 9.
@pytest.mark.parametrize(
    ("name", "count", "encoders"),
    [
        ("craterbench/backbones", 30, 30),
        ("craterbench/pooling", 22 * 4, 22),
        ("craterbench/cnn", 11, 8),
        ("msls_london/backbones", 5 + 4 + 5 + 4 + 1, 19),
        ("msls_london/pooling", 13 * 5, 13),
        ("patchify/encoders", 8 * 4, 8),
    ],
)
def test_every_row_of_a_papers_table_is_a_row_of_its_recipe(name: str, count: int, encoders: int) -> None:
    found = recipe.load_all(name)
    assert (len(found), len(set(labels(found)))) == (count, count)
    assert len({repr(one.branches[0].encoder) for one in found}) == encoders
    assert all(len(one.branches) == 1 and one.branches[0].descriptor.name == "pooled" for one in found)
    assert recipe.load_all("gardens_point", preset=name)[0].data == recipe.load("gardens_point").data


@pytest.mark.parametrize(
    ("name", "label", "encoder", "settings"),
    [
        ("craterbench/backbones", "ViT-B/8 DINO", "dino_vitb8", {"pooling": "gem"}),
        ("craterbench/backbones", "ViT-7B/16 DINOv3 sat", "dinov3_vit7b16_sat", {"pooling": "max"}),
        ("craterbench/pooling", "DeiT3-S/16, Mean", "deit3_s16", {"pooling": "mean"}),
        ("craterbench/cnn", "ResNet-50, GeM", "resnet50", {"pooling": "gem"}),
        ("msls_london/backbones", "CLIP-B/16 (Mean)", "clip_vitb16", {"pooling": "mean_all"}),
        ("msls_london/backbones", "CLIP-L/14 (Mean-noCLS)", "clip_vitl14", {"pooling": "mean"}),
        ("msls_london/pooling", "vitl16, Max", "dinov3_vitl16", {"pooling": "max", "include_cls": True}),
        ("msls_london/pooling", "convnext-tiny, WoCLS", "dinov3_convnext_tiny", {"pooling": "mean"}),
        ("patchify/encoders", "DINOv2, grid level=2", "dinov2_vitl14", {"pooling": "cls"}),
    ],
)
def test_a_row_is_the_network_and_the_pooling_of_the_paper(
    name: str, label: str, encoder: str, settings: dict[str, Any]
) -> None:
    (branch,) = next(one for one in recipe.load_all(name) if recipe.label(one) == label).branches
    assert (branch.encoder, branch.descriptor) == (Choice(encoder), Choice("pooled", settings))
