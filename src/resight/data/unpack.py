"""Unpack an archive (`unpack`): a tar (also compressed) or zip file in, its files below a folder out.

An archive comes from elsewhere, so nothing in it is trusted. Names that are absolute or lead out of the folder,
devices, pipes, encrypted files and archives that unpack to far more than their size are refused. A link becomes a copy
of the file of the same archive that it leads to, and is refused if it leads anywhere else; no link is ever written. A
file that exists stays: the same bytes count as unpacked, so that an unpacking that stopped goes on, and other bytes are
refused. Each file is there completely or not at all, and of an archive that is damaged or refused no file stays: the
checksum of a compressed tar comes last.
"""

import contextlib
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from resight.data.http_download import Progress, check_space
from resight.errors import InputError, StorageError
from resight.files.atomic import replace_atomic
from resight.files.inside import find_fault, show

MOST_TIMES = 100  # an archive may unpack to so many times its own size …
ALLOWED = 100_000_000  # … or to so many bytes, as text packs well
CHECK_EVERY = 64_000_000  # bytes between two looks at the free space
CHUNK = 1 << 20
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, RecursionError),  # a way of packing that Python does not know; links in a circle
)


@dataclass(frozen=True)
class Unpacked:
    files: int
    bytes: int
    kept: int  # files that were there already, with the same bytes


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    file: IO[bytes]


def unpack(archive: Path, folder: Path, flat: bool = False, progress: Progress = lambda *_: None) -> Unpacked:
    """Unpack `archive` into `folder`; `flat` drops the folders of the archive. `progress` counts bytes."""
    packed = archive.stat().st_size
    limit = max(packed * MOST_TIMES, ALLOWED)
    writer = _Writer(folder, flat)
    try:
        for member in _list_members(archive):
            if writer.bytes + member.size > limit:
                raise _refuse(
                    archive, "it unpacks to far more than its size", f"at most {limit:,} bytes", f"{packed:,} packed"
                )
            writer.write(member, archive)
            progress(writer.bytes, max(writer.bytes, packed))
    except InputError:
        writer.undo()
        raise
    except (*DAMAGED, OSError) as error:
        if not isinstance(error, OSError) or error.errno is None:  # gzip and bz2 raise OSErrors of their own
            writer.undo()
            actual = f"{type(error).__name__}: {error}"
            raise _refuse(archive, "it is damaged", "a whole tar or zip file", actual) from error
        raise StorageError(
            f"cannot unpack {archive.name} into {folder}",
            expected="a writable folder with free space",
            actual=str(error),
            fix="free some space, or choose another folder, and run the command again",
        ) from error
    if not writer.files:
        raise _refuse(archive, "it is empty", "files", "none")
    return Unpacked(writer.files, writer.bytes, writer.kept)


class _Writer:
    def __init__(self, folder: Path, flat: bool) -> None:
        self._folder = folder
        self._flat = flat
        self._safe: set[Path] = set()  # folders that exist and lie inside
        self._unchecked = CHECK_EVERY
        self._written: list[Path] = []
        self.files = self.bytes = self.kept = 0

    def undo(self) -> None:
        """Delete the files that this writer wrote."""
        for path in self._written:
            path.unlink(missing_ok=True)

    def write(self, member: _Member, archive: Path) -> None:
        path = self._folder / self._locate(member.name, archive)
        self._make_parent(path.parent, archive)
        self._unchecked += member.size
        if self._unchecked >= CHECK_EVERY:
            check_space(self._folder, member.size, archive.name)
            self._unchecked = 0
        if path.exists() or path.is_symlink():
            if not _has_content(path, member.file):
                raise StorageError(
                    f"{path} exists and differs from the file in {archive.name}",
                    expected="no file of that name, or the same bytes: nothing is overwritten",
                    actual="other bytes",
                    fix="move it away, or choose another folder",
                )
            self.kept += 1
        else:
            with replace_atomic(path) as temporary, temporary.open("xb") as file:
                shutil.copyfileobj(member.file, file, CHUNK)
                if file.tell() != member.size:
                    raise EOFError(f"{member.name!r} has {file.tell():,} of {member.size:,} bytes")
            self._written.append(path)
        self.files += 1
        self.bytes += member.size

    def _locate(self, name: str, archive: Path) -> PurePosixPath:
        if fault := find_fault(name):
            raise _refuse(archive, f"it holds a file {show(name)}", "files below its own folder", fault)
        path = PurePosixPath(name)
        return PurePosixPath(path.name) if self._flat else path

    def _make_parent(self, parent: Path, archive: Path) -> None:
        if parent in self._safe:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        inside = self._folder.resolve()
        existing = next(folder for folder in (parent, *parent.parents) if folder.exists())
        if not (parent.resolve().is_relative_to(inside) and (existing.is_dir())):
            problem = f"{parent} is a link that leads out of {self._folder}, or a file"
            raise _refuse(archive, problem, "folders", str(parent.resolve()))
        parent.mkdir(parents=True, exist_ok=True)
        self._safe.add(parent)


def _list_members(archive: Path) -> Iterator[_Member]:
    with archive.open("rb") as file:
        start = file.read(4)
    return _list_zip(archive) if start in ZIP else _list_tar(archive)


def _list_tar(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r:*") as opened:
        for member in opened:
            if member.isdir():
                continue
            if member.issparse() or not (member.isreg() or member.issym() or member.islnk()):
                raise _refuse(
                    archive, f"{member.name!r} is a device, a pipe or a sparse file", "plain files", "another kind"
                )
            try:
                content = opened.extractfile(member)  # of a link: the member of this archive that it leads to
            except KeyError:
                content = None
            if content is None:
                problem = f"the link {member.name!r} leads to no file of it"
                raise _refuse(archive, problem, "links to files of the archive", repr(member.linkname))
            with content:
                size = member.size if member.isreg() else content.seek(0, 2)
                content.seek(0)
                yield _Member(member.name, size, content)
        while opened.fileobj and opened.fileobj.read(CHUNK):  # to the end, where the checksum of a compressed tar is
            pass


def _list_zip(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.filename and member.is_dir():  # zipfile fails to ask that of an empty name
                continue
            if kind not in (0, stat.S_IFREG):
                raise _refuse(archive, f"{member.filename!r} is a link, a device or a pipe", "plain files", oct(kind))
            if member.flag_bits & 1:
                raise _refuse(
                    archive, f"{member.filename!r} is encrypted", "files without a password", "an encrypted one"
                )
            with opened.open(member) as content:
                yield _Member(member.filename, member.file_size, content)


def _has_content(path: Path, content: IO[bytes]) -> bool:
    """Whether a plain file has exactly these bytes."""
    if path.is_symlink() or not path.is_file():
        return False
    with contextlib.closing(path.open("rb")) as file:
        while True:
            ours, theirs = file.read(CHUNK), content.read(CHUNK)
            if ours != theirs:
                return False
            if not ours:
                return True


def _refuse(archive: Path, problem: str, expected: str, actual: str) -> InputError:
    return InputError(
        f"{archive.name}: {problem}",
        expected=expected,
        actual=actual[:300],
        fix="run the command again; if it stays so, ask the makers of the data set",
    )
