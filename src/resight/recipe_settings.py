"""A setting that lists several values where its plug-in takes one → one plug-in for each of them.

    { name = "pooled", pooling = ["cls", "mean"], p = [3, 4] }     four: every combination
    { name = "multiscale", scales = [0.5, 1.0] }                   one: this setting is a list

Which it is, the plug-in's Config says; its module is asked only where there is a list.
"""

import itertools
import types
import typing
from collections.abc import Mapping
from typing import Any

from resight import plugins
from resight.errors import MissingExtra, RecipeError

PACKAGES = {
    "encoder": "resight.encode.backbones",
    "descriptor": "resight.encode.descriptors",
    "regions": "resight.encode.descriptors.regions",
    "query_regions": "resight.encode.descriptors.regions",
    "transforms": "resight.encode.transforms",
    "index": "resight.index",
    "fusion": "resight.search.fusions",
    "rerankers": "resight.search.rerankers",
}


def spread(option: Any, key: str) -> list[Any]:
    """A plug-in of the place `key` (a name, or a table) → all that its lists make of it; itself where it has none."""
    if not isinstance(option, Mapping) or not isinstance(option.get("name"), str):
        return [option]
    lists = {
        name: value
        for name, value in option.items()
        if isinstance(value, list) and not _takes_list(PACKAGES[key], option["name"], name)
    }
    for name, values in lists.items():
        if not values:
            raise RecipeError(f"{name} has no value", expected="a value, or a list of them", actual="[]", fix="add one")
    return [{**option, **dict(zip(lists, values, strict=True))} for values in itertools.product(*lists.values())]


def _takes_list(package: str, plugin: str, setting: str) -> bool:
    """Also true where nothing is known of the setting: whoever builds the plug-in complains then."""
    if plugin not in plugins.names(package):
        return True
    try:
        hint = typing.get_type_hints(plugins.find(package, plugin).Config).get(setting)
    except MissingExtra:
        return True
    options = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    return hint is None or any(typing.get_origin(option) is tuple for option in options)
