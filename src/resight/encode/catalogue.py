"""The list of encoders: what is known about each without running it, and how fast it runs here.

`list_encoders`: plug-ins, whose modules describe their default settings in `ABOUT`, and networks of models.toml, each a
plug-in with settings. An encoder is ready when it can be imported and, where its plug-in has `find_weights`, when its
weights are on this machine; no network is loaded, and nothing is requested from the hub.

`describe`: the encoder of a recipe, with its settings → the same, without importing torch (20 seconds of CPU with timm
and transformers) where the hub's cache and the installed packages decide.

`measure`: the name of an encoder → pictures per second through the loop that indexing uses, on all cores, without
decoding. A network without weights here is timed with random ones, which take the same time.
"""

import importlib.util
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from resight import plugins
from resight.encode import backbones, named_networks
from resight.encode.backbones import About, Backbone
from resight.encode.extract import extract
from resight.encode.named_networks import BACKBONES, Cost, Model
from resight.errors import MissingWeights, ResightError
from resight.types import Choice, Descriptors, ImageRef, Picture, Skipped

PACKAGES = {  # that a plug-in imports
    "timm": ("torch", "timm"),
    "transformers": ("torch", "transformers"),
    "place": ("torch", "timm"),
}
UNKNOWN = About("", 0, "", "", "")  # of an installed plug-in that says nothing about itself
SIZE = 640, 480  # of the pictures that `measure` encodes


@dataclass(frozen=True)
class Entry:
    name: str  # in a recipe: encoder = "name"
    family: str = ""
    dimensions: int = 0  # 0: depends on its settings or parts
    tokens: int = 0  # rows per picture at the default size
    rows: str = ""  # what a row represents
    weights: str = ""  # their source
    licence: str = ""
    gated: bool = False
    ready: bool = False
    missing: str = ""  # what it lacks and the fix, when not ready
    title: str = ""
    parameters: float | None = None  # millions
    training: str = ""
    images_a_second: float | None = None  # on this machine, where measured
    parts: tuple[Cost, ...] = ()  # of its network, where measured and its plug-in counts them


def list_encoders(names: Sequence[str] = ()) -> list[Entry]:
    """All encoders, plug-ins first; or those with the given names, in that order."""
    known = names or [*plugins.names(BACKBONES), *named_networks.catalogue()]
    return [_describe(Choice(name)) for name in known]


def count_parts(name: str) -> tuple[Cost, ...]:
    """Parameters and operations of each part, with random weights; empty where the plug-in does not count them."""
    choice = named_networks.resolve(Choice(name))
    module = plugins.find(BACKBONES, choice.name)
    if not hasattr(module, "count_parts"):
        return ()
    return tuple(module.count_parts(plugins.configure(module.Config, choice.settings, name)))


def describe(choice: Choice) -> Entry:
    """The encoder of a recipe, and what it lacks here with its settings."""
    return _describe(choice, light=True)


def _describe(choice: Choice, light: bool = False) -> Entry:
    found = named_networks.find(choice.name)
    entry = _describe_model(found) if isinstance(found, Model) else Entry(found)
    try:
        resolved = named_networks.resolve(choice)
        if not (light and isinstance(found, Model) and _is_cached(resolved, found.gated)):
            module = plugins.find(BACKBONES, resolved.name)
            if isinstance(found, str):
                entry = _describe_plugin(found, getattr(module, "ABOUT", UNKNOWN))
            if hasattr(module, "find_weights"):
                module.find_weights(plugins.configure(module.Config, resolved.settings, entry.name))
    except ResightError as error:
        return replace(entry, missing="; ".join(text for text in (error.problem, error.fix) if text))
    except Exception as error:  # a module of another package may raise anything, and the others are listed all the same
        if choice.name not in plugins.find_installed(BACKBONES):
            raise
        return replace(entry, missing=f"its find_weights failed: {type(error).__name__}: {error}")
    return replace(entry, ready=True)


def _is_cached(choice: Choice, gated: bool) -> bool:
    """Whether the hub's cache has the network; MissingWeights if it has not; False if only the plug-in can tell."""
    if not all(map(importlib.util.find_spec, ("huggingface_hub", *PACKAGES[choice.name]))):
        return False
    from resight.encode.networks import weight_files  # imports huggingface_hub

    here = weight_files.has_weights(choice.name, choice.settings)
    if here is False:
        raise weight_files.refuse_absent(str(choice.settings["model"]), gated=gated)
    return here is True


def _describe_plugin(name: str, about: About) -> Entry:
    return Entry(name, about.family, about.dimensions, about.tokens, about.rows, about.weights, about.licence)


def _describe_model(model: Model) -> Entry:
    source = str(model.encoder.settings["model"])
    hub = f"hub timm/{source}" if model.encoder.name == "timm" else f"hub {source}"
    return Entry(
        name=model.name,
        family=model.family,
        dimensions=model.dimensions,
        tokens=model.tokens,
        rows="patch or cell",
        weights=model.source or ("a file of your own" if model.own_weights else hub),
        licence=model.licence,
        gated=model.gated,
        title=model.title,
        parameters=model.parameters,
        training=model.training,
    )


def measure(name: str, seconds: float = 3.0) -> float:
    """Pictures per second, after a first picture that pays for the set-up."""
    (picture,) = _draw(1)
    backbone = build(name, picture)
    started = time.perf_counter()
    done = 0

    def endless() -> Iterator[Picture]:
        for number in count():
            if number >= 2 and time.perf_counter() - started > seconds:
                return
            yield picture

    def encode(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        return [() for _ in list(backbone.extract(pictures))]

    def tally(batch: list[tuple[Picture, tuple[Descriptors, ...]]]) -> None:
        nonlocal done
        done += len(batch)

    extract(endless(), _take, encode, tally, _ignore, batch=1, together=backbone.batch)
    return done / (time.perf_counter() - started)


def build(name: str, picture: Picture) -> Backbone:
    """The backbone, after its first picture."""
    try:
        backbone = backbones.build(name)
        list(backbone.extract([picture]))
    except MissingWeights:
        choice = named_networks.resolve(Choice(name, {"untrained": True}))
        backbone = backbones.build(choice.name, **choice.settings)
        list(backbone.extract([picture]))
    return backbone


def _draw(number: int) -> Iterator[Picture]:
    generator = np.random.default_rng(0)
    for each in range(number):
        coarse = generator.integers(0, 255, (SIZE[1] // 8, SIZE[0] // 8, 3), dtype=np.uint8)
        pixels = np.kron(coarse, np.ones((8, 8, 1), np.uint8))
        yield Picture(ImageRef(str(each), Path(str(each))), pixels, SIZE)


def _take(picture: Picture) -> Picture:
    return picture


def _ignore(_: Skipped) -> None:
    pass
