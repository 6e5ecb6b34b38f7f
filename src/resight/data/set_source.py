"""A data set by name as a source of images: the text `NAME:ROOT` in, its Dataset out.

    gldv2:ROOT                                  with the settings that the data set has by default
    revisited,which=rparis6k:ROOT               a setting, as with --set; several are separated by commas
    msls,cities=["london"],split=train:ROOT     a list, as in TOML

Commas and colons in brackets or quotes do not separate. Everything else is a path: a file or folder of exactly that
name, C:\\photos, s3://bucket/photos, and any text that does not begin with the name of a data set (resight.data.sets)
and a colon or comma.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight import plugins
from resight.data import sets
from resight.errors import InputError, did_you_mean
from resight.recipe.overrides import apply
from resight.types import Dataset

PACKAGE = "resight.data.sets"
NAME = re.compile(r"([A-Za-z][A-Za-z0-9_]+)[:,]")  # two letters at least: C: is a disk
OPENING, CLOSING = "[{", "]}"


@dataclass(frozen=True)
class SetSource:
    name: str
    settings: tuple[str, ...]  # key=value, as after --set
    root: Path

    def load(self) -> Dataset:
        """Load the data set; images are listed, not decoded."""
        return build_set(self.name, self.settings).load(self.root)


def parse_source(text: str) -> SetSource | None:
    """The data set that `text` names; None if it is a path."""
    found = NAME.match(text)
    if found is None or os.path.lexists(text) or not plugins.exists(PACKAGE, found[1]):
        return None
    parts, root = _split(text)
    if root is None:
        return None
    if not root:
        raise InputError(
            f"{text!r} names no folder",
            expected="NAME:ROOT, the data set and the folder that holds it",
            actual="nothing after the colon",
            fix=f"e.g. {found[1]}:data/{found[1]}",
        )
    return SetSource(parts[0], tuple(parts[1:]), Path(root))


def build_set(name: str, settings: tuple[str, ...]) -> sets.DataSource:
    """The reader of a data set, with settings such as which=rparis6k."""
    chosen: dict[str, Any] = {}
    for setting in settings:
        apply(chosen, setting)
    return sets.build(name, **chosen)


def suggest_set(text: str) -> str:
    """The fix for a text that looks like NAME:ROOT with a misspelt name; empty for any other."""
    found = NAME.match(text)
    return did_you_mean(found[1], plugins.names(PACKAGE), "") if found else ""


def _split(text: str) -> tuple[list[str], str | None]:
    """Name and settings, and what follows the colon; None without a colon."""
    parts, depth, quote = [""], 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in OPENING or letter in CLOSING:
            depth += 1 if letter in OPENING else -1
        elif depth == 0 and letter == ":":
            return parts, text[position + 1 :]
        elif depth == 0 and letter == ",":
            parts.append("")
            continue
        parts[-1] += letter
    return parts, None
