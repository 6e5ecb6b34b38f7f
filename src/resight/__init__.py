"""resight: find the very same object in other images, see where it is, and know how sure the answer is.

    import resight

    photos = resight.open("photos.resight")
    photos.add("photos/")
    for hit in photos.search("query.jpg", k=10):
        print(hit.id, hit.probability, hit.box)

Importing the package costs nothing: each name imports its module on first use. `resight.__version__` is the installed
version.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resight.client.async_client import AsyncClient
    from resight.client.sync_client import Client
    from resight.collection import Collection
    from resight.collection import open_collection as open
    from resight.collection.add import AddReport
    from resight.collection.answer import Answer
    from resight.collection.embeddings import Embeddings
    from resight.collection.image_encoder import ImageEncoder, load_encoder
    from resight.data.image_inputs import load_image
    from resight.encode.backbones.own import wrap_encoder
    from resight.encode.backbones.precomputed import own_vectors
    from resight.errors import ResightError
    from resight.evaluate.comparison import compare
    from resight.evaluate.evaluate import evaluate
    from resight.evaluate.given_runs import judge
    from resight.recipe import load as load_recipe
    from resight.tasks.audit import audit
    from resight.tasks.dedup import dedup
    from resight.tasks.locate import locate
    from resight.tasks.lookalikes import lookalikes
    from resight.tasks.match import match
    from resight.tasks.plan import plan
    from resight.tasks.train import train
    from resight.types import Box, Evidence, Hit, ImageRef, Match, Recipe

    __version__: str

_HOMES = {
    "AddReport": ("resight.collection.add", "AddReport"),
    "Answer": ("resight.collection.answer", "Answer"),
    "AsyncClient": ("resight.client.async_client", "AsyncClient"),
    "Box": ("resight.types", "Box"),
    "Client": ("resight.client.sync_client", "Client"),
    "Collection": ("resight.collection", "Collection"),
    "Embeddings": ("resight.collection.embeddings", "Embeddings"),
    "Evidence": ("resight.types", "Evidence"),
    "Hit": ("resight.types", "Hit"),
    "ImageEncoder": ("resight.collection.image_encoder", "ImageEncoder"),
    "ImageRef": ("resight.types", "ImageRef"),
    "Match": ("resight.types", "Match"),
    "Recipe": ("resight.types", "Recipe"),
    "ResightError": ("resight.errors", "ResightError"),
    "compare": ("resight.evaluate.comparison", "compare"),
    "dedup": ("resight.tasks.dedup", "dedup"),
    "judge": ("resight.evaluate.given_runs", "judge"),
    "load_encoder": ("resight.collection.image_encoder", "load_encoder"),
    "load_image": ("resight.data.image_inputs", "load_image"),
    "load_recipe": ("resight.recipe", "load"),
    "locate": ("resight.tasks.locate", "locate"),
    "lookalikes": ("resight.tasks.lookalikes", "lookalikes"),
    "match": ("resight.tasks.match", "match"),
    "open": ("resight.collection", "open_collection"),
    "own_vectors": ("resight.encode.backbones.precomputed", "own_vectors"),
    "plan": ("resight.tasks.plan", "plan"),
    "wrap_encoder": ("resight.encode.backbones.own", "wrap_encoder"),
}
_PACKAGES = ("audit", "evaluate", "train")  # that can be called

__all__ = [
    "AddReport",
    "Answer",
    "AsyncClient",
    "Box",
    "Client",
    "Collection",
    "Embeddings",
    "Evidence",
    "Hit",
    "ImageEncoder",
    "ImageRef",
    "Match",
    "Recipe",
    "ResightError",
    "audit",
    "compare",
    "dedup",
    "evaluate",
    "judge",
    "load_encoder",
    "load_image",
    "load_recipe",
    "locate",
    "lookalikes",
    "match",
    "open",
    "own_vectors",
    "plan",
    "train",
    "wrap_encoder",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"resight.{name}")
    if name == "__version__":
        from importlib import metadata  # takes longer to import than the package

        return metadata.version("resight")
    if name not in _HOMES:
        raise AttributeError(f"module 'resight' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
