"""Data sets, one a file: the folder that holds them in, a Dataset with its truth out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from resight import plugins
from resight.types import Dataset


@dataclass(frozen=True)
class Published:
    """What the makers of a data set say of it, for `resight data check`; a source may have it as `published`."""

    counts: Mapping[str, int]  # of "database", "queries", "labels", or whatever else the source can count
    downloads: tuple[str, ...]  # what to fetch by hand, from where, and where it goes
    licence: str
    checksums: Mapping[str, str] = field(default_factory=dict)  # file below the root → "md5:…" or "sha256:…"


class DataSource(Protocol):
    def load(self, root: Path) -> Dataset:
        """The data set at `root`; images are named, not decoded."""


def find_root(root: Path, folder: str, content: str) -> Path:
    """The data set's own folder, when `root` is the one that holds several: the one with `content` in it."""
    return root if (root / content).exists() or not (root / folder / content).exists() else root / folder


def build(name: str, **settings: Any) -> DataSource:
    source: DataSource = plugins.load("resight.data.sets", name, settings)
    return source
