"""Plug-in names that collections on disk may still hold, and the names that these plug-ins have now.

In: the table of a stored recipe. Out: the same table with today's names. Only `collection.json` goes through here: a
recipe file must use today's names.
"""

from collections.abc import Mapping
from typing import Any

INDEXES = {"late": "maxsim", "inverted": "asmk_inverted", "histogram": "bow_histogram"}
RERANKERS = {"closer": "patch_refine", "local": "pair_transformer"}
FUSIONS = {"standout": "robust_zscore"}
REGIONS = {"joined": "union"}
RENAMED: Mapping[str, Mapping[str, str]] = {  # key of a recipe → old name → new name
    "index": INDEXES,
    "inner": INDEXES,  # of ray_shards
    "rerankers": RERANKERS,
    "fusion": FUSIONS,
    "regions": REGIONS,
    "query_regions": REGIONS,
    "sources": REGIONS,  # of union
}


def rename_plugins(table: Mapping[str, Any]) -> dict[str, Any]:
    """`table` with every plug-in under its present name; tables inside it are searched, too."""
    return {key: _rename(value, RENAMED.get(key, {})) for key, value in table.items()}


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    """`value` is a plug-in by name, one with settings, or a list of these; anything else is left as it is."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (list, tuple)):
        return [_rename(item, names) for item in value]
    if isinstance(value, Mapping):
        found = rename_plugins(value)
        if isinstance(found.get("name"), str):
            found["name"] = names.get(found["name"], found["name"])
        return found
    return value
