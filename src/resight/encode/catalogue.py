"""Which encoders there are, and what is known about each without running it.

Two kinds: the plug-ins, of which a module says in `ABOUT` what its default settings give, and the networks of
models.toml, each a plug-in with settings. One can run here when it can be imported and, where its plug-in has
`find_weights`, when they are on this machine; no network is loaded, and nothing is asked of the hub.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from resight import plugins
from resight.encode import models
from resight.encode.backbones import About, Cost
from resight.encode.models import BACKBONES, Model
from resight.errors import MissingExtra
from resight.types import Choice


@dataclass(frozen=True)
class Entry:
    name: str  # what a recipe says: encoder = "name"
    family: str = ""
    dimensions: int = 0  # 0: as its settings or parts make it
    tokens: int = 0  # rows of a picture at the default size
    rows: str = ""  # what a row stands for
    weights: str = ""  # where they come from
    licence: str = ""
    gated: bool = False
    ready: bool = False
    missing: str = ""  # what it lacks and what to do, when not ready
    title: str = ""
    parameters: float | None = None  # millions
    training: str = ""
    images_a_second: float | None = None  # on this machine, when it was asked for
    parts: tuple[Cost, ...] = ()  # of its network, where its plug-in counts them and it was asked for


def list_encoders(names: Sequence[str] = ()) -> list[Entry]:
    """All, plug-ins first; or those of some names, in that order."""
    known = names or [*plugins.names(BACKBONES), *models.catalogue()]
    return [_describe(models.find(name)) for name in known]


def count_parts(name: str) -> tuple[Cost, ...]:
    """Parameters and operations of each part, with random weights; empty where the plug-in does not count them."""
    choice = models.resolve(Choice(name))
    module = plugins.find(BACKBONES, choice.name)
    if not hasattr(module, "count_parts"):
        return ()
    return tuple(module.count_parts(plugins.configure(module.Config, choice.settings, name)))


def _describe(found: str | Model) -> Entry:
    entry = _describe_model(found) if isinstance(found, Model) else Entry(found)
    try:
        choice = models.resolve(Choice(entry.name))
        module = plugins.find(BACKBONES, choice.name)
        if isinstance(found, str):
            entry = _describe_plugin(found, module.ABOUT)
        if hasattr(module, "find_weights"):
            module.find_weights(plugins.configure(module.Config, choice.settings, entry.name))
    except MissingExtra as error:
        return replace(entry, missing="; ".join(text for text in (error.problem, error.fix) if text))
    return replace(entry, ready=True)


def _describe_plugin(name: str, about: About) -> Entry:
    return Entry(name, about.family, about.dimensions, about.tokens, about.rows, about.weights, about.licence)


def _describe_model(model: Model) -> Entry:
    source = str(model.encoder.settings["model"])
    hub = f"timm/{source}" if model.encoder.name == "timm" else source
    return Entry(
        name=model.name,
        family=model.family,
        dimensions=model.dimensions,
        tokens=model.tokens,
        rows="patch or cell",
        weights="a file of one's own" if model.own_weights else f"hub {hub}",
        licence=model.licence,
        gated=model.gated,
        title=model.title,
        parameters=model.parameters,
        training=model.training,
    )
