"""Atomic writing: a file is there completely or not at all.

In: the path of the file. Out: a temporary path beside it to write to, which is renamed to the path at the end. Readers
see the old file or the new one, never a part.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from resight.errors import StorageError

TEMPORARY = ".tmp"  # suffix of files that are being written, or that a killed process left


@contextlib.contextmanager
def write_atomic(path: Path, problem: str = "", fix: str = "choose another folder") -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends; makes the folder if it is missing.

    An OSError leaves as StorageError with `problem` (default: `path` cannot be written) and `fix`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_atomic(path) as temporary:
            yield temporary
    except OSError as error:
        raise StorageError(
            problem or f"cannot write {path}",
            expected="a writable folder with free space",
            actual=str(error),
            fix=fix,
        ) from error


@contextlib.contextmanager
def replace_atomic(path: Path, unique: bool = True) -> Iterator[Path]:
    """The same in a folder that exists, with plain OSErrors, for callers that handle these themselves.

    With `unique=False` the temporary path is always the same: for callers that hold a lock and remove what a killed
    process left.
    """
    owner = f".{os.getpid()}-{threading.get_ident()}" if unique else ""
    temporary = path.with_name(f"{path.name}{owner}{TEMPORARY}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
