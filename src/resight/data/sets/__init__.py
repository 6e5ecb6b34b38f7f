"""Data sets, one per file: the folder that holds one in, a Dataset with its ground truth out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from resight import plugins
from resight.types import Dataset


@dataclass(frozen=True)
class Published:
    """What the makers of a data set published about it, for `resight data check`; a source's optional `published`."""

    counts: Mapping[str, int]  # by the names of resight.data.check.count: database, queries, labels, …
    downloads: tuple[str, ...]  # what to download by hand, from where, and where to put it
    licence: str
    checksums: Mapping[str, str] = field(default_factory=dict)  # file below the root → "md5:…" or "sha256:…"


class DataSource(Protocol):
    def load(self, root: Path) -> Dataset:
        """Load the data set at `root`; images are listed, not decoded."""


def find_root(root: Path, folder: str, content: str) -> Path:
    """The data set's own folder: `root`, or `folder` below it if only that one has `content`."""
    return root if (root / content).exists() or not (root / folder / content).exists() else root / folder


def build(name: str, **settings: Any) -> DataSource:
    source: DataSource = plugins.load("resight.data.sets", name, settings)
    return source
