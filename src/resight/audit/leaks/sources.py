"""Open the sources of an audit (collections, folders, manifests or data sets), and count their classes.

A collection is used as it is. The audit indexes everything else into its own folder: it encodes only images that are
not there yet, and deletes images that the source no longer names. In a folder, the class of an image is its folder
below the root. Of a manifest or a data set (gldv2:ROOT, resight.data.set_source) with queries, the evaluation set is
its queries, because a leak would favour these; otherwise it is all images. `count_classes` needs one pass and holds no
images.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from resight.collection import Collection, metadata, open_collection
from resight.collection.add import Progress
from resight.collection.image_list import MANIFESTS
from resight.data.folder_walk import walk
from resight.data.manifest_rows import read_rows
from resight.data.set_source import parse_source
from resight.encode.feature_cache import FeatureCache
from resight.errors import InputError
from resight.store import ImageRecord
from resight.types import Dataset, ImageRef, Recipe, Skipped


def is_collection(source: Path | str) -> bool:
    return any((Path(source) / name).exists() for name in (metadata.FILE, metadata.COPY))


def open_source(
    source: Path | str,
    folder: Path,
    recipe: Recipe | str | None,
    *,
    queries: bool = False,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> tuple[Collection, tuple[Skipped, ...]]:
    """Open a collection, or index images into `folder`; also return the files that could not be read."""
    if is_collection(source):
        return open_collection(source, must_exist=True, cache=cache), ()
    listed = list(_list_source(source, queries))
    refs = [item for item in listed if isinstance(item, ImageRef)]
    if not refs:
        raise InputError(
            f"no images in {source}",
            expected="a collection, a folder of images, a manifest, or a data set (NAME:ROOT)",
            actual="nothing that can be read as an image",
            fix="check the path",
        )
    collection = open_collection(folder, recipe, cache=cache)
    gone = {record.id for record in collection.records()} - {ref.id for ref in refs}
    if gone:
        collection.delete(sorted(gone))
    report = collection.add(refs, progress=progress)
    return collection, (*(item for item in listed if isinstance(item, Skipped)), *report.skipped)


def _list_source(source: Path | str, queries: bool) -> Iterator[ImageRef | Skipped]:
    if (found := parse_source(str(source))) is not None:
        return _list_set(found.load(), queries)
    path = Path(source)
    return _list_manifest(path, queries) if path.suffix.lower() in MANIFESTS else _list_folder(path)


def _list_set(dataset: Dataset, queries: bool) -> Iterator[ImageRef | Skipped]:
    yield from (dataset.queries if queries else ()) or dataset.database
    yield from dataset.skipped


def _list_folder(root: Path) -> Iterator[ImageRef | Skipped]:
    for item in walk(root):
        folder, slash, _ = item.id.rpartition("/") if isinstance(item, ImageRef) else ("", "", "")
        yield replace(item, attributes={"label": folder}) if isinstance(item, ImageRef) and slash else item


def _list_manifest(path: Path, queries: bool) -> Iterator[ImageRef]:
    rows = list(read_rows(path))
    chosen = (
        [row for row in rows if row.role != "database"] if queries else [row for row in rows if row.role != "query"]
    )
    return (row.ref for row in chosen or rows)


@dataclass(frozen=True)
class Classes:
    sizes: Mapping[str, int]  # class → images
    names: Mapping[str, str]  # class → its readable name
    unlabelled: int  # images without a class

    @property
    def images(self) -> int:
        return sum(self.sizes.values()) + self.unlabelled


def count_classes(records: Iterable[ImageRecord], class_attribute: str, name_attribute: str = "") -> Classes:
    """Without an attribute that holds readable names, a class is its own name."""
    sizes: Counter[str] = Counter()
    names: dict[str, str] = {}
    unlabelled = 0
    for record in records:
        label = read_class(record, class_attribute)
        if label is None:
            unlabelled += 1
            continue
        sizes[label] += 1
        if label not in names:
            names[label] = str(record.attributes.get(name_attribute, label))
    return Classes(sizes, names, unlabelled)


def read_class(record: ImageRecord, attribute: str) -> str | None:
    """None if it has none or an empty one."""
    value = record.attributes.get(attribute)
    return None if value is None or value == "" else str(value)
