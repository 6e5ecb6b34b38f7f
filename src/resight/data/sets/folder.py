"""A folder of images in, a Dataset with a database and no queries out; resight.data.folder_walk lists the files."""

from dataclasses import dataclass, replace
from pathlib import Path

from resight.data.folder_walk import walk
from resight.data.formats import SUFFIXES
from resight.errors import InputError
from resight.types import Dataset, ImageRef, Skipped


@dataclass(frozen=True)
class Config:
    labels: bool = False  # label each image with its folder, as a path below the root


def build(config: Config) -> "FolderSource":
    return FolderSource(config)


@dataclass(frozen=True)
class FolderSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        found = list(walk(root))
        images = [item for item in found if isinstance(item, ImageRef)]
        skipped = [item for item in found if isinstance(item, Skipped)]
        if not images:
            raise InputError(
                f"no images in {root}",
                expected=f"files that end in {', '.join(sorted(SUFFIXES))}",
                actual="none, hidden files and folders not counted",
                fix="check the path",
            )
        if self.config.labels:
            images = [_label(ref) for ref in images]
        return Dataset(
            name=root.absolute().name, database=tuple(images), queries=(), judgements={}, skipped=tuple(skipped)
        )


def _label(ref: ImageRef) -> ImageRef:
    """Label by the whole path, as audits do: oxford/tower is not paris/tower. Images in the root have no label."""
    folder = ref.id.rpartition("/")[0]
    return replace(ref, attributes={"label": folder}) if folder else ref
