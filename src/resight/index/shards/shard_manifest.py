"""shards.json: the contents of a folder of shards, and the size and sha256 of each file.

It is written last, so a folder without it was never finished. A node that sees the folder compares sizes; a node that
fetches a file compares both.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from resight.errors import CollectionError, VersionMismatch
from resight.files.atomic import replace_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint, fingerprint_file
from resight.files.inside import resolve_inside
from resight.types import Choice

FILE = "shards.json"
FORMAT = 1
REBUILD = "delete the folder; the next search rebuilds the index from the collection"


@dataclass(frozen=True)
class ShardFile:
    name: str  # below the shard's folder, with slashes
    size: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    images: int
    files: tuple[ShardFile, ...]

    @cached_property
    def content(self) -> str:
        """A name that depends on the files alone, not on their folder."""
        text = json.dumps([asdict(file) for file in self.files])
        return fingerprint(text, 32)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Manifest:
    inner: Choice
    shards: tuple[Shard, ...]

    @property
    def images(self) -> int:
        return sum(shard.images for shard in self.shards)


def locate_shard(folder: Path, number: int) -> Path:
    return folder / "shards" / f"{number:04}"


def locate_file(folder: Path, name: str) -> Path:
    """The path of a file of a shard, whose name another node or another user may have chosen."""
    return resolve_inside(folder, name, what="a file of a shard", error=CollectionError)


def describe_shard(folder: Path, images: int) -> Shard:
    """Describe the files in a shard's own folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = (
        ShardFile(path.relative_to(folder).as_posix(), path.stat().st_size, fingerprint_file(path)) for path in paths
    )
    return Shard(images, tuple(files))


def write_manifest(manifest: Manifest, folder: Path) -> None:
    table = {
        "format": FORMAT,
        "resight": metadata.version("resight"),
        "inner": {"name": manifest.inner.name, **manifest.inner.settings},
        "shards": [asdict(shard) for shard in manifest.shards],
    }
    with replace_atomic(folder / FILE) as temporary:
        temporary.write_text(json.dumps(table, default=str, indent=1), encoding="utf-8")


def read_manifest(folder: Path, inner: Choice) -> Manifest:
    """Read shards.json for shards of `inner`, and check that every file it names exists with the right size."""
    try:
        table = load_json((folder / FILE).read_text(encoding="utf-8"))
        kind, rows = table["format"], table["shards"]
        if kind != FORMAT:
            raise VersionMismatch(
                f"the shards in {folder} have another format",
                expected=f"format {FORMAT}",
                actual=f"format {kind}, of resight {table.get('resight')}",
                fix=REBUILD,
            )
        shards = tuple(Shard(row["images"], tuple(ShardFile(**file) for file in row["files"])) for row in rows)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CollectionError(
            f"there are no complete shards in {folder}", expected=f"a file {FILE}", actual=str(error), fix=REBUILD
        ) from error
    for number, shard in enumerate(shards):
        check_sizes(locate_shard(folder, number), shard.files)
    return Manifest(inner, shards)


def check_sizes(folder: Path, files: Iterable[ShardFile]) -> None:
    """Compare sizes only: opening a shard should not read all of it."""
    for file in files:
        found = read_size(locate_file(folder, file.name))
        if found != file.size:
            raise CollectionError(
                f"{folder / file.name} is {'missing' if found is None else 'incomplete'}",
                expected=f"{file.size:,} bytes",
                actual="no such file" if found is None else f"{found:,} bytes",
                fix=REBUILD,
            )


def verify_checksums(folder: Path, files: Iterable[ShardFile]) -> None:
    """Read all files and compare their sha256."""
    for file in files:
        try:
            found = f"sha256 {fingerprint_file(locate_file(folder, file.name))}"
        except OSError as error:
            found = str(error)
        if found != f"sha256 {file.sha256}":
            raise CollectionError(
                f"{folder / file.name} is damaged", expected=f"sha256 {file.sha256}", actual=found, fix=REBUILD
            )


def has_files(folder: Path, files: Iterable[ShardFile]) -> bool:
    return all(read_size(locate_file(folder, file.name)) == file.size for file in files)


def read_size(path: Path) -> int | None:
    """Size of a file in bytes; None: no such file."""
    try:
        return path.stat().st_size
    except OSError:
        return None
