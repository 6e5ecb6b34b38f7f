"""Download a data set: its entry of the catalogue and a folder in, the files that its reader expects out.

`make_plan` lists the files, with sizes and what is there already; `check_plan` compares them with the free disk space;
`run_plan` downloads, checks and unpacks them one by one. Downloads, and the list of those that are complete, lie in
ROOT/.resight-downloads. A run that stopped goes on where it was: within a file by its byte, and after the last archive
that was unpacked. Files that exist are never overwritten.
"""

import filecmp
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resight.data.download_catalogue import Entry, Part, RemoteFile, choose_files
from resight.data.http_download import (
    Patience,
    Progress,
    ask_size,
    check_space,
    fetch,
    fetch_checksum,
    hash_file,
)
from resight.data.unpack import unpack
from resight.errors import InputError, StorageError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint
from resight.files.lock import writer_lock

FOLDER = ".resight-downloads"
DONE = "done.json"
ASKED = 200  # files whose size a server is asked for at most


@dataclass(frozen=True)
class Step:
    """One file of a plan."""

    part: Part
    file: RemoteFile
    bytes: int | None  # None: not known
    done: bool  # it is there already


@dataclass(frozen=True)
class Plan:
    name: str
    root: Path
    entry: Entry
    steps: tuple[Step, ...]

    @property
    def missing(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if not step.done)

    @property
    def bytes(self) -> int:
        """To download, as far as known."""
        return sum(step.bytes or 0 for step in self.missing)

    @property
    def unknown(self) -> int:
        """Files without a known size."""
        return sum(step.bytes is None for step in self.missing)

    @property
    def disk_bytes(self) -> int:
        """To have free: all files, and once more the largest archive, which lies beside its files while it unpacks."""
        return self.bytes + max((step.bytes or 0 for step in self.missing if step.file.unpack), default=0)


@dataclass(frozen=True)
class Downloaded:
    """What became of a file."""

    part: str
    url: str
    to: str
    bytes: int
    checksum: str  # empty: none is known
    files: int  # that were unpacked; 1 for a file that is no archive


def make_plan(
    name: str,
    root: Path,
    entry: Entry,
    only: Sequence[str] = (),
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> Plan:
    """What `run_plan` will download. Servers are asked for sizes that the catalogue does not know."""
    files = choose_files(name, entry, only)
    if not files:
        raise _refuse_manual(name, root, entry, only)
    known = _read_done(root)
    asked = 0
    steps = []
    for part, file in files:
        done, size = _is_done(file, root, known), file.bytes
        if size is None and not done and asked < ASKED:
            asked += 1
            size = ask_size(file.url, patience)
        steps.append(Step(part, file, size, done))
    return Plan(name, root, entry, tuple(steps))


def check_plan(plan: Plan) -> None:
    """Refuse a plan that the disk has no room for."""
    check_space(plan.root, plan.disk_bytes, f"the download of {plan.name}")


def run_plan(
    plan: Plan,
    progress: Callable[[Step], Progress] = lambda _: lambda *_: None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> Iterator[Downloaded]:
    """Download, check and unpack what is missing; yields each file once it is done."""
    folder = plan.root / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}", expected="a writable folder", actual=str(error)) from error
    with writer_lock(folder):
        for step in plan.missing:
            yield _run_step(step, plan.root, progress(step), patience)


def list_manual(entry: Entry, root: str) -> list[str]:
    """The steps that people must take themselves, for the whole data set and its parts."""
    found = [*entry.manual, *(step for part in entry.parts for step in part.manual)]
    return [step.replace("ROOT", root) for step in found]


def _run_step(step: Step, root: Path, progress: Progress, patience: Patience) -> Downloaded:
    file, folder = step.file, root / FOLDER
    target = root / file.target
    archive = folder / f"{fingerprint(file.url, 8)}-{file.name}"
    checksum = file.checksum or (fetch_checksum(file.checksums, file.name, patience) if file.checksums else "")
    if not file.unpack:
        _check_target(target, checksum)
    if not archive.exists():
        fetch(file.url, archive, checksum, progress, patience)
    size, count = archive.stat().st_size, 1
    if file.unpack:
        try:
            count = unpack(archive, target, file.flat, progress).files
        except InputError:
            archive.unlink()  # so that the next run downloads it again
            raise
        archive.unlink()
    else:
        _place(archive, target)
    result = Downloaded(step.part.name, file.url, file.target.as_posix(), size, checksum, count)
    _write_done(root, result)
    return result


def _place(source: Path, target: Path) -> None:
    """Move a complete download to where it belongs."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not filecmp.cmp(source, target, shallow=False):
            raise _refuse_overwriting(target, "other bytes than the download")
        if target.exists():
            source.unlink()
        else:
            shutil.move(source, target)
    except OSError as error:
        raise StorageError(
            f"cannot write {target}",
            expected="a writable folder with free space",
            actual=str(error),
            fix="choose another",
        ) from error


def _is_done(file: RemoteFile, root: Path, known: dict[str, Any]) -> bool:
    target = root / file.target
    if file.unpack:
        return file.url in known and target.is_dir() and any(target.iterdir())
    return target.is_file() and (file.url in known or hash_file(target, file.checksum) == file.checksum)


def _check_target(target: Path, checksum: str) -> None:
    if (target.exists() or target.is_symlink()) and not (target.is_file() and hash_file(target, checksum) == checksum):
        raise _refuse_overwriting(target, hash_file(target, checksum) if target.is_file() else "not a file")


def _read_done(root: Path) -> dict[str, Any]:
    try:
        known = load_json((root / FOLDER / DONE).read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}


def _write_done(root: Path, result: Downloaded) -> None:
    known = {**_read_done(root), result.url: asdict(result)}
    with write_atomic(root / FOLDER / DONE) as temporary:
        temporary.write_text(json.dumps(known, indent=1), encoding="utf-8")


def _refuse_overwriting(target: Path, actual: str) -> StorageError:
    return StorageError(
        f"{target} exists and differs from the download",
        expected="no file of that name, or the same bytes: nothing is overwritten",
        actual=actual,
        fix="move it away, or choose another folder",
    )


def _refuse_manual(name: str, root: Path, entry: Entry, only: Sequence[str]) -> InputError:
    """The error for a data set, or for parts of it, that people must download themselves."""
    chosen = [part for part in entry.parts if part.name in only]
    steps = [step for part in (chosen or (entry,)) for step in part.manual]
    lines = [step.replace("ROOT", str(root)) for step in steps]
    lines += [f"then {root} holds:", *(f"  {line}" for line in entry.layout)] if entry.layout else []
    lines.append(f"check it with `resight data check {name} {root}`")
    return InputError(
        f"{', '.join(part.name for part in chosen) or name} cannot be downloaded by a command",
        expected="files at a public address",
        actual=next((part.reason for part in chosen if part.reason), entry.reason) or "no files",
        fix="\n    ".join(lines),
    )
