"""Take duplicates out of a collection, and bring them back: groups in, files moved or deleted, a list that undoes it.

Only images of a group other than the one to keep, whose file no kept image uses, are touched. "move" moves their files
into a folder. "delete" deletes a file only if the kept image has the very same bytes, so that both can be undone. The
images leave the collection; `undo` brings files and images back. The list is on disk before the first file is touched:
one JSON line per file, with what is needed to go back, also after a crash in the middle.
"""

import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from resight.audit.dedup.pairs import Pair
from resight.collection import Collection, open_collection
from resight.errors import InputError, StorageError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint, fingerprint_file
from resight.files.remote import is_remote
from resight.store import ImageRecord
from resight.types import Attribute, ImageRef, Skipped

Action = Literal["move", "delete"]
SAFE = ("copy", "near_copy")  # "same" shows the object in another picture, which is no duplicate file


@dataclass(frozen=True)
class Removed:
    """One file, as the list for `undo` holds it."""

    action: Action
    collection: str
    id: str
    path: str  # where the file was
    now: str  # where it was moved to; of a deleted one, the kept file with the same bytes
    sha256: str
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class Applied:
    """What became of the duplicates.

    Attributes:
        removed: The files that were moved or deleted.
        skipped: Duplicates that stayed, each with the reason.
        undo_list: The list that `undo` and `resight dedup --undo` take.
    """

    removed: tuple[Removed, ...]
    skipped: tuple[Skipped, ...]
    undo_list: Path

    def undo(self) -> int:
        """Bring the files and the images back.

        Returns:
            How many came back.
        """
        return undo(self.undo_list)[0]


def apply_groups(
    pairs: Sequence[Pair],
    collections: tuple[Collection, Collection],
    action: Action,
    undo_list: Path | None = None,
    folder: Path | None = None,
) -> Applied:
    """`collections` hold the a and the b of the pairs; with two, only images of the second are taken out.

    Without an `undo_list`, a new file beside the first collection is it.
    """
    undo_list = undo_list or _name_list(collections[0])
    if action not in get_args(Action):
        raise InputError("no such way to apply", expected=" or ".join(get_args(Action)), actual=repr(action))
    if action == "move" and folder is None:
        raise InputError("it is not said where to move duplicates", expected="a folder", fix="give --to FOLDER")
    if os.path.lexists(undo_list):
        raise InputError(
            f"{undo_list} exists: it may be needed to undo an earlier run",
            expected="the name of a new file",
            actual="a file",
            fix="give another name by --undo-list",
        )
    planned: list[Removed] = []
    skipped: list[Skipped] = []
    for one in _plan(pairs, collections, action, folder):
        (planned if isinstance(one, Removed) else skipped).append(one)  # type: ignore[arg-type]
    if not planned:
        return Applied((), tuple(skipped), undo_list)
    with write_atomic(undo_list) as temporary:
        temporary.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in planned), encoding="utf-8")
    for one in planned:
        _remove(one)
    for collection in dict.fromkeys(collections):
        collection.delete([one.id for one in planned if one.collection == str(collection.path.absolute())])
    return Applied(tuple(planned), tuple(skipped), undo_list)


def undo(undo_list: Path) -> tuple[int, tuple[Skipped, ...]]:
    """Bring back what a list names: how many files, and those that cannot be brought back, with the reason."""
    returned: dict[str, list[ImageRef]] = {}
    skipped: list[Skipped] = []
    for one in _read_list(undo_list):
        path, now = Path(one.path), Path(one.now)
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                if fingerprint_file(now) != one.sha256:
                    skipped.append(Skipped(one.path, f"{one.now} has changed since"))
                    continue
                shutil.move(now, path) if one.action == "move" else shutil.copy2(now, path)
        except OSError as error:
            skipped.append(Skipped(one.path, error.strerror or str(error)))
            continue
        returned.setdefault(one.collection, []).append(ImageRef(one.id, path, attributes=one.attributes))
    for collection, refs in returned.items():
        open_collection(collection, must_exist=True).add(refs, progress=False)
    return sum(map(len, returned.values())), tuple(skipped)


def _name_list(collection: Collection) -> Path:
    """A name that is free."""
    stem = str(collection.local_folder.absolute())
    endings = itertools.chain([""], (f"-{count}" for count in itertools.count(2)))
    names = (Path(f"{stem}.undo{ending}.jsonl") for ending in endings)
    return next(name for name in names if not os.path.lexists(name))


def _plan(
    pairs: Sequence[Pair], collections: tuple[Collection, Collection], action: Action, folder: Path | None
) -> Iterator[Removed | Skipped]:
    first, second = collections
    across = first.path != second.path
    every = [first, second] if across else [first]
    used = Counter(record.path.absolute() for collection in every for record in collection.records())
    taken: set[str] = set()
    for pair in pairs:
        for name, other in ((pair.b, pair.a),) if across else ((pair.b, pair.a), (pair.a, pair.b)):
            # A copy of another member than the kept one is a pair with that one alone.
            is_copy_of_member = pair.kind == "copy" and name == pair.b and pair.keep not in (name, other)
            if pair.group is None or name in taken or not (other == pair.keep or is_copy_of_member):
                continue
            taken.add(name)
            record, kept = second[name] if across else first[name], first[other]
            reason = _refuse(record, kept, pair, action)
            if not reason and used[record.path.absolute()] > 1:
                reason = "other images of the collection are in the same file"
            if reason:
                yield Skipped(str(record.path), reason)
                continue
            now = kept.path if folder is None or action == "delete" else _name_target(folder, record)
            owner = second if across else first
            yield Removed(
                action,
                str(owner.path.absolute()),
                name,
                str(record.path),
                str(now),
                record.sha256,
                dict(record.attributes),
            )


def _refuse(record: ImageRecord, kept: ImageRecord, pair: Pair, action: Action) -> str:
    """Why a duplicate stays; empty if it may go."""
    if pair.kind not in SAFE:
        return "it shows the same object in another picture"
    if is_remote(record.path) or record.ref.box is not None:
        return "it is remote" if is_remote(record.path) else "it is a part of a file"
    if action == "delete" and record.sha256 != kept.sha256:
        return f"its bytes differ from those of {kept.id}: move it instead"
    try:
        if record.path.resolve() == kept.path.resolve():
            return f"{kept.id} is a link to the same file"
        if fingerprint_file(record.path) != record.sha256:
            return "its file has changed since it was indexed"
        if action == "delete" and fingerprint_file(kept.path) != kept.sha256:
            return f"the file of {kept.id}, which is to be kept, has changed"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _name_target(folder: Path, record: ImageRecord) -> Path:
    """The file's name, with digits of its id: two folders may hold files of one name."""
    return folder.absolute() / f"{record.path.stem}-{fingerprint(record.id, 8)}{record.path.suffix}"


def _remove(one: Removed) -> None:
    try:
        if one.action == "delete":
            Path(one.path).unlink()
            return
        Path(one.now).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(one.path, one.now)
    except OSError as error:
        raise StorageError(
            f"cannot {one.action} {one.path}: {error.strerror or error}",
            expected="a folder that can be written to",
            actual=str(error),
            fix="free the disk or its permissions; `resight dedup --undo LIST` goes back",
        ) from error


def _read_list(path: Path) -> list[Removed]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Removed(**cast(dict[str, object], load_json(line))) for line in lines if line]  # type: ignore[arg-type]
    except (OSError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is no list of `resight dedup --apply`",
            expected="the file that it wrote, one JSON line per image",
            actual=str(error)[:200],
            fix="check the path",
        ) from error
