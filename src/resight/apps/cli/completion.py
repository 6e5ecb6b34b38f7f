"""What the shell completes: names of presets, recipes, networks, data sets, plug-ins, and of a collection's own.

In: the kind of a name, and the parameters that are typed already. Out: names. Nothing here imports a network or decodes
an image; of a collection only the store is opened, and the attributes of its first images are read.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resight.store import Reader

MOST = 200  # names that are offered
READ = 500  # images whose attributes are read
CONDITIONS = ("=", "!=", ">=", "<=", ">", "<")


def list_names(kind: str, given: Mapping[str, Any], incomplete: str) -> list[str]:
    """The names of a kind that begin as the word does; none where they cannot be known."""
    try:
        names = KINDS[kind](given)
    except Exception:
        return []
    return list(islice((name for name in names if name.startswith(incomplete)), MOST))


def list_presets(_: Mapping[str, Any]) -> list[str]:
    from resight.recipe import NETWORKS, PRESETS

    return [*PRESETS, *NETWORKS]


def list_recipes(given: Mapping[str, Any]) -> list[str]:
    from resight.recipe import shipped

    return list(dict.fromkeys([*list_presets(given), *shipped()]))


def list_networks(_: Mapping[str, Any]) -> list[str]:
    from resight import plugins
    from resight.encode import named_networks

    return sorted({*plugins.own_names("resight.encode.backbones"), *named_networks.catalogue()})


def list_sets(_: Mapping[str, Any]) -> list[str]:
    from resight import plugins

    return plugins.names("resight.data.sets")


def list_kinds(_: Mapping[str, Any]) -> list[str]:
    from resight.plugin_catalogue import PACKAGES, name_kind

    return [name_kind(package) for package in PACKAGES]


def list_ids(given: Mapping[str, Any]) -> list[str]:
    return list(_open(given).stamps)


def list_attributes(given: Mapping[str, Any]) -> list[str]:
    """Conditions that can follow --where: an attribute, and the beginning of a comparison."""
    reader = _open(given)
    first = list(islice(reader.stamps, READ))
    names = dict.fromkeys(name for record in reader.metadata(first) for name in record.attributes)
    return [f"{name}{sign}" for name in names for sign in CONDITIONS]


def _open(given: Mapping[str, Any]) -> "Reader":
    """The store of the collection that the command line names, without all that searching needs."""
    from resight import store

    store.skip_pandas()
    folder = Path(given.get("collection") or next(_find_collections()))
    recipe = json.loads((folder / "collection.json").read_text(encoding="utf-8"))["recipe"]
    choice = recipe.get("store") or "lance"
    name, settings = (choice, {}) if isinstance(choice, str) else (choice["name"], {**choice})
    settings.pop("name", None)
    return store.build(name, folder=folder, **settings).snapshot()


def _find_collections() -> Iterator[str]:
    """Words of the command line that name one: behind an option without its value, the parser has read none of them."""
    words = os.environ.get("COMP_WORDS", "") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    for word in words.split():
        if (Path(word) / "collection.json").is_file():
            yield word


KINDS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "presets": list_presets,
    "recipes": list_recipes,
    "networks": list_networks,
    "sets": list_sets,
    "kinds": list_kinds,
    "ids": list_ids,
    "attributes": list_attributes,
}
