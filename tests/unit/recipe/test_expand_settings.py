"""Lists of values for one setting."""

import pytest

from resight.errors import RecipeError
from resight.recipe.expand import expand, expand_settings


def labels(table: dict) -> list[str]:
    return [made["name"].partition(": ")[2] for made in expand({"name": "r", **table})]


def branch(**parts: object) -> dict:
    return {"branches": [{"encoder": "efficientnet_lite", "descriptor": "pooled", **parts}]}


def test_a_list_where_one_value_is_taken_makes_one_plugin_for_each():
    made = expand_settings({"name": "pooled", "pooling": ["cls", "mean"], "p": 4.0}, "descriptor")
    assert made == [{"name": "pooled", "pooling": pooling, "p": 4.0} for pooling in ("cls", "mean")]


def test_several_lists_make_every_combination_the_last_changing_fastest():
    made = expand_settings({"name": "aggregated", "k": [8, 16], "assignment": ["hard_top1", "soft_top2"]}, "descriptor")
    assert [(one["k"], one["assignment"]) for one in made] == [
        (8, "hard_top1"),
        (8, "soft_top2"),
        (16, "hard_top1"),
        (16, "soft_top2"),
    ]


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("transforms", {"name": "multiscale", "scales": [0.5, 1.0]}),
        ("transforms", {"name": "multiscale", "query_scales": [1.0]}),  # a list or nothing
        ("encoder", {"name": "onnx_vit", "mean": [0.5, 0.5, 0.5]}),
        ("encoder", {"name": "dino_vits16", "size": [224, 448]}),  # a name of the catalogue is no plug-in
        ("descriptor", {"name": "pooled", "unknown": [1, 2]}),  # refused by whoever builds it
        ("descriptor", "pooled"),
    ],
)
def test_what_is_a_list_itself_stays_one(key: str, option: object):
    assert expand_settings(option, key) == [option]


def test_an_empty_list_is_refused():
    with pytest.raises(RecipeError, match="pooling has no value"):
        expand_settings({"name": "pooled", "pooling": []}, "descriptor")


def test_a_recipe_with_such_lists_stands_for_all_of_them():
    found = labels(branch(descriptor={"name": "pooled", "pooling": ["mean", "max"]}))
    assert found == ["pooled pooling=mean", "pooled pooling=max"]


def test_lists_multiply_with_alternatives_and_names():
    table = branch(descriptor=["tokens", {"name": "aggregated", "k": [8, 16]}])
    assert labels(table) == ["tokens", "aggregated k=8", "aggregated k=16"]
    named = branch(
        descriptor={
            "GeM": {"name": "pooled", "pooling": "gem", "p": [3.0, 4.0]},
            "CLS": {"name": "pooled", "pooling": "cls"},
        }
    )
    assert labels(named) == ["GeM p=3.0", "GeM p=4.0", "CLS"]


def test_plugins_in_a_chain_spread_too():
    table = {**branch(), "rerankers": [{"name": "late", "candidates": [10, 20]}, "layout"]}
    assert labels(table) == ["late candidates=10 + layout", "late candidates=20 + layout"]
    made = expand({"name": "r", **table})
    assert made[1]["rerankers"] == [{"name": "late", "candidates": 20}, "layout"]


def test_a_list_with_one_value_is_that_value():
    made = expand({"name": "r", **branch(descriptor={"name": "pooled", "pooling": ["max"]})})
    assert [one["name"] for one in made] == ["r"]
    assert made[0]["branches"][0]["descriptor"] == {"name": "pooled", "pooling": "max"}
