"""A Hugging Face data set on disk (saved by `datasets`, or parquet files) in, a Dataset out; no network.

    root/dataset_dict.json, root/SPLIT/data-00000-of-00001.arrow    save_to_disk of several splits
    root/state.json, root/data-00000-of-00001.arrow                 save_to_disk of one split, here called "train"
    root/**/SPLIT-00000-of-00001.parquet                            files of the hub; the split is the name up to the -
    root/**/SPLIT/*.parquet

With `split`, that column names the split of each row instead. The image column holds the bytes of files, paths relative
to the root, or {bytes, path}, as the feature Image stores it. Bytes are written once, below `images`, to files named by
their hash. The positives of a query are the images with its label in the database's split; a query without a label has
none. A ClassLabel gives its names instead of its numbers. If both splits are the same, each image is a query and is
ignored in its own ranking.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from resight.data.image_cache import write_images
from resight.data.sets import Published
from resight.data.truth_tables import locate_image
from resight.errors import ManifestError
from resight.files import cache_folder
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint
from resight.types import Dataset, ImageRef, Judgement

ENDINGS = {b"\xff\xd8\xff": "jpg", b"\x89PNG": "png", b"GIF8": "gif", b"BM": "bmp", b"II*\0": "tif", b"MM\0*": "tif"}
BATCH_ROWS = 64  # small, since images are large


@dataclass(frozen=True)
class Config:
    image: str = "image"  # column of the images
    label: str = "label"  # column of the labels; empty: no labels
    id: str = ""  # column of the ids; empty: an id is split/row
    split: str = ""  # column of the splits; empty: files or folders name the split
    database_split: str = "train"  # split that is searched
    query_split: str = "test"  # split of the queries; empty: no queries
    images: Path | None = None  # folder below which images are extracted; None: resight in the user's cache directory


def build(config: Config) -> "HuggingFaceSource":
    return HuggingFaceSource(config)


@dataclass(frozen=True)
class HuggingFaceSource:
    config: Config

    @property
    def published(self) -> Published:
        return Published(
            counts={},
            downloads=("the data set's parquet files: hf download OWNER/NAME --repo-type dataset --local-dir ROOT",),
            licence="see the data set's card",
        )

    def load(self, root: Path) -> Dataset:
        config = self.config
        wanted = dict.fromkeys(filter(None, (config.database_split, config.query_split)))
        refs = _read_splits(root, config, tuple(wanted))
        database = refs[config.database_split]
        queries = refs[config.query_split] if config.query_split else []
        groups: dict[str, dict[str, int]] = defaultdict(dict)
        for ref in database:
            if "label" in ref.attributes:
                groups[str(ref.attributes["label"])][ref.id] = 1
        same_split = config.query_split == config.database_split
        return Dataset(
            root.absolute().name,
            tuple(database),
            tuple(queries),
            {ref.id: _judge(ref, groups, same_split) for ref in queries},
        )


def _judge(query: ImageRef, groups: Mapping[str, Mapping[str, int]], same_split: bool) -> Judgement:
    grades = groups.get(str(query.attributes["label"]), {}) if "label" in query.attributes else {}
    if same_split:
        return Judgement({id: 1 for id in grades if id != query.id}, frozenset({query.id}))
    return Judgement(grades)


def _read_splits(root: Path, config: Config, wanted: tuple[str, ...]) -> dict[str, list[ImageRef]]:
    refs: dict[str, list[ImageRef]] = {name: [] for name in wanted}
    seen: dict[str, set[str]] = {name: set() for name in wanted}
    counts: dict[str, int] = defaultdict(int)
    folder = (config.images or cache_folder()) / "hugging_face"
    for file, file_split in _list_files(root):
        if not config.split and file_split not in wanted:
            counts[file_split] += 1
            continue
        for row in _read_rows(file, config):
            split = str(row[config.split]) if config.split else file_split
            number = counts[split]
            counts[split] += 1
            if split not in wanted:
                continue
            ref = _refer(row, f"{split}/{number}", config, root, folder, file)
            if ref.id in seen[split]:
                raise _refuse(file, f"row {number} of {split!r} repeats an id", "unique ids", ref.id)
            seen[split].add(ref.id)
            refs[split].append(ref)
    for name in wanted:
        if not refs[name]:
            found = ", ".join(map(repr, sorted(counts))) or "no files"
            problem = f"{root} has no split {name!r}"
            expected = "root/SPLIT/*.arrow, root/**/SPLIT-*.parquet, or a column of splits"
            fix = "name the splits with the settings database_split and query_split"
            raise ManifestError(problem, expected=expected, actual=found[:300], fix=fix)
    return refs


def _list_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield files in order of name, each with its split."""
    for path in sorted([*root.glob("*.arrow"), *root.glob("*/*.arrow"), *root.rglob("*.parquet")]):
        below = path.relative_to(root)
        if any(part.startswith(".") for part in below.parts):
            continue
        prefix, dash, _ = path.stem.partition("-")
        in_folder = path.parent.name if len(below.parts) > 1 else "train"
        yield path, prefix if dash and path.suffix == ".parquet" and not prefix.isdigit() else in_folder


def _read_rows(path: Path, config: Config) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file with the columns that the settings name; labels by name."""
    names = [name for name in (config.image, config.label, config.id, config.split) if name]
    try:
        for batch in _read_batches(path):
            schema = batch.schema
            if missing := [name for name in names if name not in schema.names]:
                raise _refuse(path, f"has no column {', '.join(missing)}", ", ".join(names), ", ".join(schema.names))
            labels = _read_label_names(schema, config.label)
            for row in batch.select(names).to_pylist():
                label = row.get(config.label)
                if labels and isinstance(label, int) and 0 <= label < len(labels):
                    row[config.label] = labels[label]
                yield row
    except (OSError, pa.ArrowException) as error:
        raise _refuse(path, "cannot be read", "a whole arrow or parquet file", str(error)) from error


def _read_batches(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS)
        return
    with pa.memory_map(str(path)) as source:
        for batch in pa.ipc.open_stream(source):
            for start in range(0, len(batch), BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def _read_label_names(schema: Any, column: str) -> list[str]:
    """The names of a ClassLabel, from the metadata that `datasets` writes into the schema; [] for other columns."""
    try:
        about = load_json((schema.metadata or {})[b"huggingface"])
        return [str(name) for name in about["info"]["features"][column]["names"]]
    except (KeyError, TypeError, ValueError):
        return []


def _refer(row: Mapping[str, Any], name: str, config: Config, root: Path, folder: Path, file: Path) -> ImageRef:
    id = str(row[config.id]) if config.id else name
    label = row.get(config.label) if config.label else None
    value = row[config.image]
    data, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, value)
    if isinstance(data, bytes):
        file_path = _store(data, folder)
    elif isinstance(path, str) and path:
        file_path = locate_image(root, path, file)
    else:
        raise _refuse(file, f"{name} has no image", f"bytes or a path in {config.image!r}", f"{value!r:.100}")
    return ImageRef(id, file_path, attributes={} if label is None else {"label": str(label)})


def _store(data: bytes, folder: Path) -> Path:
    """The file with these bytes, written unless it exists already."""
    digest = fingerprint(data)
    ending = next((ending for start, ending in ENDINGS.items() if data.startswith(start)), "img")
    path = folder / digest[:2] / f"{digest}.{'webp' if data[8:12] == b'WEBP' else ending}"
    if not (path.is_file() and path.stat().st_size == len(data)):
        write_images([(path, data)], folder, "data.images")
    return path


def _refuse(path: Path, problem: str, expected: str, actual: str) -> ManifestError:
    fix = "name the columns with the settings image, label, id and split, or download the file again"
    return ManifestError(f"{path}: {problem}", expected=expected, actual=actual[:300], fix=fix)
