"""Indexes that a collection keeps beside its store, under `indexes/`.

Each lies in a folder named after what it was made from: branch, plug-in with settings, space, and the state of the
store. It is built under a temporary name and renamed, so that it is whole or not there. All of it is derived: what is
outdated is removed, what is damaged or missing is made again, and where the collection may not be written to, the
index lives in a temporary folder as long as the process.
"""

import atexit
import contextlib
import errno
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from resight import index as indexes
from resight.errors import RecipeError, ResightError, StorageError
from resight.index import Chunks, Index, Learner, Searcher
from resight.store import Store
from resight.types import Choice

ABANDONED = 24 * 3600  # seconds
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def open_index(folder: Path, choice: Choice, store: Store, branch: int, space: str) -> Searcher:
    """The index of one branch, made first when the store has changed since."""
    plugin = indexes.build(choice.name, **choice.settings)
    recipe = json.dumps([choice.name, sorted(choice.settings.items()), space], default=str)
    prefix = f"{branch}-{choice.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}-"
    home = folder / "indexes"
    place = home / f"{prefix}v{store.version}"
    found = _open(plugin, place)
    if found is not None:
        return found
    try:
        _build(plugin, store, branch, home, place)
    except OSError as error:
        if error.errno in FORBIDDEN:
            return _build_elsewhere(plugin, store, branch)
        raise StorageError(
            "cannot write the index",
            expected=f"space and permission to write below {home}",
            actual=str(error),
            fix="free some space; the images themselves are stored, and the index is made again at the next search",
        ) from error
    _remove_outdated(home, branch, store.version)
    return plugin.open(place)


def _open(plugin: Index, place: Path) -> Searcher | None:
    """None when it is not there, or not as it was written."""
    if not place.is_dir():
        return None
    try:
        return plugin.open(place)
    except (ResightError, OSError, ValueError, TypeError, KeyError, RuntimeError, EOFError):
        shutil.rmtree(place, ignore_errors=True)
        return None


def _build(plugin: Index, store: Store, branch: int, home: Path, place: Path) -> None:
    home.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=home))
    try:
        create_index(plugin, partial(_read, store), len(store.layout), branch, temporary)
        temporary.replace(place)
    except OSError:
        if not place.is_dir():  # otherwise another process has just made the same index
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _build_elsewhere(plugin: Index, store: Store, branch: int) -> Searcher:
    scratch = Path(tempfile.mkdtemp(prefix="resight-index-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return create_index(plugin, partial(_read, store), len(store.layout), branch, scratch)


def create_index(plugin: Index, read: Callable[[int], Chunks], branches: int, branch: int, folder: Path) -> Searcher:
    """The index of one of so many branches, which may learn from the rows of another."""
    if not isinstance(plugin, Learner) or (teacher := plugin.learns_from) is None:
        return plugin.create(read(branch), folder)
    if not 0 <= teacher < branches:
        raise RecipeError(
            f"there is no branch {teacher} to learn from",
            expected=f"one of 0 to {branches - 1}",
            actual=str(teacher),
            fix="branches count from 0 in the order of the recipe",
        )
    return plugin.create(read(branch), folder, training=read(teacher))


def _read(store: Store, branch: int) -> Chunks:
    return lambda: store.descriptors(branch, fields=("words", "boxes"))


def _remove_outdated(home: Path, branch: int, version: int) -> None:
    """Indexes of older states, and what a process left that was killed while it built one."""
    for entry in home.glob(f"{branch}-*-v*"):
        if int(entry.name.rpartition("v")[2]) < version:
            shutil.rmtree(entry, ignore_errors=True)
    for entry in home.glob(".building-*"):
        with contextlib.suppress(OSError):
            if time.time() - entry.stat().st_mtime > ABANDONED:
                shutil.rmtree(entry, ignore_errors=True)
