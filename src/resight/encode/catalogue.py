"""Which encoders there are, and what is known about each without running it.

A backbone module says it in `ABOUT`. It can run here when it can be imported and, where it has `find_weights`, when
those of its default settings are found; no network is loaded.
"""

from dataclasses import dataclass, replace

from resight import plugins
from resight.encode.backbones import About
from resight.errors import MissingExtra


@dataclass(frozen=True)
class Entry:
    name: str
    family: str
    dimensions: int
    rows: str
    weights: str
    licence: str
    ready: bool
    missing: str = ""  # what it lacks and what to install, when not ready


def list_encoders() -> list[Entry]:
    return [_describe(name) for name in plugins.names("resight.encode.backbones")]


def _describe(name: str) -> Entry:
    entry = Entry(name, "", 0, "", "", "", ready=False)
    try:
        module = plugins.find("resight.encode.backbones", name)
        about: About = module.ABOUT
        entry = Entry(name, about.family, about.dimensions, about.rows, about.weights, about.licence, ready=False)
        if hasattr(module, "find_weights"):
            module.find_weights(module.Config())
    except MissingExtra as error:
        return replace(entry, missing="; ".join(text for text in (error.problem, error.fix) if text))
    return replace(entry, ready=True)
