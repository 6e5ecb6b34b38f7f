"""Which encoders there are, and what is known about each without running it.

A backbone module says it in `ABOUT`; whether it can run here is found out by importing it.
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
    missing: str = ""  # what to install, when not ready


def list_encoders() -> list[Entry]:
    return [_describe(name) for name in plugins.names("resight.encode.backbones")]


def _describe(name: str) -> Entry:
    entry = Entry(name, "", 0, "", "", "", ready=False)
    try:
        about: About = plugins.find("resight.encode.backbones", name).ABOUT
    except MissingExtra as error:
        return replace(entry, missing=error.problem)
    return Entry(name, about.family, about.dimensions, about.rows, about.weights, about.licence, ready=True)
