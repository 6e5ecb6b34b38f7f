"""Weights of networks on this machine, found without importing torch, timm or transformers and without the hub.

`find_pretrained`: an id of the hub or a folder → the files of a network of transformers. `has_weights`: a plug-in and
its settings → whether its weights are here, or None where only its library can tell. For networks of the catalogue
that is rare: timm keeps them at "timm/<name>" of the hub, and older copies in torch's own cache.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from resight.encode import named_networks
from resight.encode.networks import releases
from resight.errors import MissingWeights, RecipeError
from resight.files.documents import read_table
from resight.files.inside import resolve_inside

TIMM_FILES = ("model.safetensors", "pytorch_model.bin")  # in the order that timm tries them
PRETRAINED_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# Names of timm whose weights lie in the repository of another name.
SHARED = {"vit_base_patch32_clip_quickgelu_224.laion400m_e32": "vit_base_patch32_clip_224.laion400m_e32"}
PLAIN: Mapping[str, tuple[type, range]] = {"size": (int, range(8, 4097)), "projection": (bool, range(2))}


def find_pretrained(model: str) -> list[Path]:
    """The files of a network of transformers in a folder or in the hub's cache; empty where one is missing."""
    from resight.encode.networks import hub  # imports the library's client, which the lists seldom need

    folder = Path(model)
    if folder.is_dir():
        first = next((folder / name for name in PRETRAINED_FILES if (folder / name).is_file()), None)
        return [] if first is None else list_shards(first)
    first = hub.find(model, PRETRAINED_FILES)
    if first is None:
        return []
    shards = [hub.find(model, [path.name]) for path in list_shards(first)]
    return [path for path in shards if path is not None] if all(shards) else []


def list_shards(first: Path) -> list[Path]:
    """The file itself, or the files that an index.json names."""
    if first.suffix != ".json":
        return [first]
    names = read_table(first, error=RecipeError, fix="fetch the model again").get("weight_map", {}).values()
    what = f"a file of {first.name}"
    # The hub's cache is made of links.
    return [
        resolve_inside(first.parent, str(name), what=what, error=RecipeError, links=True) for name in sorted(set(names))
    ]


def has_weights(plugin: str, settings: Mapping[str, Any]) -> bool | None:
    """Whether the weights of a network of the catalogue are here; None: only the plug-in can tell.

    Settings are not validated, so that any but the model's name, `size` and `projection` are left to the plug-in.
    """
    model = settings.get("model")
    own = {key: value for key, value in settings.items() if key != "model"}
    if not isinstance(model, str) or not all(key in PLAIN and _fits(value, *PLAIN[key]) for key, value in own.items()):
        return None
    if plugin == "timm":
        return has_timm_weights(model)
    if plugin == "place":
        return True if releases.find(model) else None
    if plugin != "transformers":
        return None
    return (Path(model).is_dir() or _has_repository(model)) and bool(find_pretrained(model))


def has_timm_weights(model: str) -> bool | None:
    """Whether the makers' weights of a network of timm are here; None: only timm can tell."""
    if model not in {each.encoder.settings["model"] for each in named_networks.catalogue().values()}:
        return None  # timm may have no such model, or its weights elsewhere
    repository = f"timm/{SHARED.get(model, model)}"
    if _has_repository(repository):
        from resight.encode.networks import hub

        if hub.find(repository, TIMM_FILES) is not None:
            return True
    return None if _has_checkpoints() else False


def refuse_absent(model: str, actual: str = "neither", gated: bool = False) -> MissingWeights:
    """The error for weights that are not here."""
    consent = "accept the licence on the model's page, `hf auth login`, then " if gated else ""
    return MissingWeights(
        f"the weights of {model} are not on this machine",
        expected="the weights in the cache of the Hugging Face hub, or the setting weights with the path of a file",
        actual=actual,
        fix=f"{consent}use it once with a network connection, or set `weights` to the path of a file",
    )


def _has_repository(repository: str) -> bool:
    """Whether the hub's cache has a folder for it, be it without weights."""
    return Path(constants.HF_HUB_CACHE, f"models--{repository.replace('/', '--')}").is_dir()


def _fits(value: Any, kind: type, values: range) -> bool:
    return type(value) is kind and value in values


def _has_checkpoints() -> bool:
    """Whether torch's cache has files; timm knows which of its networks they belong to."""
    folder = releases.find_checkpoints()
    return folder.is_dir() and any(folder.iterdir())
