"""Files that are there whole or not at all: written under another name, then renamed.

Also where the user keeps what can be made again.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from resight.errors import StorageError

UNFINISHED = ".tmp"  # how names of files end that are being written, or that nobody finished


@contextlib.contextmanager
def write_whole(path: Path, problem: str = "", fix: str = "choose another place") -> Iterator[Path]:
    """A name beside `path` to write to, in a folder that is made when missing; it becomes `path` when the block ends.

    Where the disk refuses, StorageError says `problem` (by default that `path` cannot be written) and `fix`.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}{UNFINISHED}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise StorageError(
            problem or f"cannot write {path}",
            expected="a place that can be written to, with space left",
            actual=str(error),
            fix=fix,
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def find_cache() -> Path:
    """resight's folder below the user's cache directory, as the XDG base directory specification has it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "resight"
