"""The history of a table: one record per commit, in COLLECTION/commits/, written and synced after the commit.

    {"version": 12, "commit": "…", "written": "…", "images": 640, "ids": ["…"], "manifest": "base64",
     "files": {"data/….lance": [bytes, CRC-32 of each block …]}, "earlier": {"11": "…"}, "checksum": …}

A commit counts once its record is on the disk: everything that the record names was synced before. So a version without
a record was never acknowledged. From the records a reader knows which version is the newest, what is missing if the
table has gone back, and whether files have changed since they were written. `commit` is a fingerprint of the manifest,
which differs between any two commits; indexes name the commits that they were made from.

Compaction merges the records of the past into the newest one. A remote table has no records.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from resight.files.checksum import FileSum, sum_file
from resight.files.durable import sync_folder, write_durable
from resight.files.fingerprint import fingerprint

FOLDER = "commits"
TABLE = "images.lance"
VERSIONS = "_versions"
MANIFEST = ".manifest"
NEWEST = 2**64 - 1  # a manifest is named after NEWEST - version, so that the newest comes first
NAMED = 1000  # ids that a record lists
EARLIER = 1000  # commits that a merged record remembers


@dataclass(frozen=True)
class Commit:
    version: int
    id: str  # fingerprint of the manifest
    written: str  # time
    images: int  # in the collection
    ids: tuple[str, ...]  # the first few images that it wrote
    manifest: bytes
    files: Mapping[str, FileSum]  # path below the table → checksums: the files that no earlier record names
    earlier: Mapping[int, str] = field(default_factory=dict)  # versions whose records were merged into this one → ids

    def to_json(self) -> bytes:
        table: dict[str, Any] = {
            "version": self.version,
            "commit": self.id,
            "written": self.written,
            "images": self.images,
            "ids": list(self.ids),
            "manifest": base64.b64encode(self.manifest).decode(),
            "files": {path: found.to_json() for path, found in self.files.items()},
            "earlier": {str(version): id for version, id in self.earlier.items()},
        }
        return json.dumps({**table, "checksum": zlib.crc32(json.dumps(table).encode())}).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Commit":
        """ValueError where the data is damaged."""
        try:
            table = json.loads(data)
            claimed = table.pop("checksum")
            if zlib.crc32(json.dumps(table).encode()) != claimed:
                raise ValueError("another checksum")
            return cls(
                table["version"],
                table["commit"],
                table["written"],
                table["images"],
                tuple(table["ids"]),
                base64.b64decode(table["manifest"]),
                {path: FileSum.from_json(values) for path, values in table["files"].items()},
                {int(version): id for version, id in table["earlier"].items()},
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a record: {error}") from error


class History:
    """The records of one local collection, as far as they are whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._table = folder / TABLE
        self._commits: dict[str, Commit] = {}  # by name of the record
        self.damaged: set[str] = set()  # names of records that cannot be read

    def refresh(self) -> None:
        """Read records that are new, and forget those that were merged."""
        names = sorted(name for name in _list(self._folder) if name.endswith(".json"))
        known = {name: commit for name, commit in self._commits.items() if name in names and name != names[-1]}
        self.damaged = set()
        for name in names:
            if name not in known:
                try:
                    known[name] = Commit.from_json((self._folder / name).read_bytes())
                except FileNotFoundError:  # it was merged just now
                    continue
                except ValueError:
                    self.damaged.add(name)
        self._commits = known

    @property
    def newest(self) -> Commit | None:
        return max(self._commits.values(), key=lambda commit: commit.version, default=None)

    @property
    def is_empty(self) -> bool:
        return not self._commits and not self.damaged

    def find(self, version: int) -> Commit | None:
        return self._commits.get(name_record(version))

    def find_id(self, version: int) -> str | None:
        """The commit that made a version; None where no record is left of it."""
        own = self.find(version)
        newest = self.newest
        return own.id if own else newest.earlier.get(version) if newest else None

    @property
    def files(self) -> dict[str, FileSum]:
        """The checksums of all files, by path below the table."""
        return {path: found for commit in self._commits.values() for path, found in commit.files.items()}

    def record(self, version: int, images: int, ids: Iterable[str], paths: Iterable[str]) -> None:
        """Record a commit whose files are synced. `paths`, below the table, hold all that are new with it."""
        known = self.files
        manifest = read_manifest(self._table, version)
        files = {path: sum_file(self._table / path) for path in paths if path not in known}
        written = datetime.now(UTC).isoformat(timespec="seconds")
        named = tuple(id for id, _ in zip(ids, range(NAMED), strict=False))
        self._write(Commit(version, fingerprint(manifest, 16), written, images, named, manifest, files))

    def describe(self, version: int, images: int, paths: Iterable[str]) -> bytes:
        """A record of one state by itself, with the checksums of all its files, for a backup."""
        manifest, known = read_manifest(self._table, version), self.files
        files = {path: known.get(path) or sum_file(self._table / path) for path in paths}
        written = datetime.now(UTC).isoformat(timespec="seconds")
        return Commit(version, fingerprint(manifest, 16), written, images, (), manifest, files).to_json()

    def merge(self) -> None:
        """Merge all records into the newest, without the files that are gone."""
        newest = self.newest
        if newest is not None and len(self._commits) > 1:
            self._replace_all(newest)

    def rebase(self, version: int, images: int) -> None:
        """Accept that the table has gone back to `version`: its next commits get the numbers of those that are lost."""
        manifest = read_manifest(self._table, version)
        written = datetime.now(UTC).isoformat(timespec="seconds")
        self._replace_all(Commit(version, fingerprint(manifest, 16), written, images, (), manifest, {}))

    def _replace_all(self, last: Commit) -> None:
        """Write `last` with the files of all records, as far as they are there, and remove the other records."""
        files = {path: found for path, found in self.files.items() if (self._table / path).exists()}
        ids = {version: id for commit in self._commits.values() for version, id in commit.earlier.items()}
        ids |= {commit.version: commit.id for commit in self._commits.values()}
        earlier = {version: id for version, id in sorted(ids.items())[-EARLIER:] if version < last.version}
        others = [name for name in self._commits if name != name_record(last.version)]
        self._write(replace(last, files=files, earlier=earlier))
        for name in others:
            (self._folder / name).unlink(missing_ok=True)
            self._commits.pop(name)

    def _write(self, commit: Commit) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir()
            sync_folder(self._folder.parent)
        write_durable(self._folder / name_record(commit.version), commit.to_json())
        self._commits[name_record(commit.version)] = commit


def name_record(version: int) -> str:
    return f"{version:012d}.json"


def name_manifest(version: int) -> str:
    """The path of a version's manifest below the table."""
    return f"{VERSIONS}/{NEWEST - version}{MANIFEST}"


def list_versions(table: Path) -> list[int]:
    """The versions of a table that have a manifest, whole or not, the newest first."""
    names = [name.removesuffix(MANIFEST) for name in _list(table / VERSIONS) if name.endswith(MANIFEST)]
    return sorted((NEWEST - int(name) for name in names if name.isdecimal() and int(name) <= NEWEST), reverse=True)


def _list(folder: Path) -> list[str]:
    """Names in a folder, which may be missing; there can be thousands, so they are not made into paths."""
    try:
        return os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return []


def read_manifest(table: Path, version: int) -> bytes:
    return (table / name_manifest(version)).read_bytes()
