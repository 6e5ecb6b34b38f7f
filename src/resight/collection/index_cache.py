"""Indexes that a collection keeps beside its store, under `indexes/`.

Each lies in a folder named after what it was made from: branch, plug-in with settings, space, and the state of the
store. It is built under a temporary name and renamed, so that it is whole or not there; what is outdated is removed.
"""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

from resight import index as indexes
from resight.errors import StorageError
from resight.index import Searcher
from resight.store import Store
from resight.types import Choice


def open_index(folder: Path, choice: Choice, store: Store, branch: int, space: str) -> Searcher:
    """The index of one branch, made first when the store has changed since."""
    plugin = indexes.build(choice.name, **choice.settings)
    recipe = json.dumps([choice.name, sorted(choice.settings.items()), space], default=str)
    prefix = f"{branch}-{choice.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}-"
    home = folder / "indexes"
    place = home / f"{prefix}v{store.version}"
    if not place.is_dir():
        try:
            home.mkdir(exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=".building-", dir=home))
            try:
                plugin.create(lambda: store.descriptors(branch, fields=("words",)), temporary)
                _publish(temporary, place)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        except OSError as error:
            raise StorageError(
                "cannot write the index",
                expected=f"space and permission to write below {home}",
                actual=str(error),
                fix="free some space; the images themselves are stored, and the index is made again at the next search",
            ) from error
        _remove_outdated(home, prefix, place)
    return plugin.open(place)


def _publish(temporary: Path, place: Path) -> None:
    try:
        temporary.replace(place)
    except OSError:
        if not place.is_dir():  # otherwise another process has just made the same index
            raise


def _remove_outdated(home: Path, prefix: str, newest: Path) -> None:
    for entry in home.glob(f"{prefix}v*"):
        if entry != newest:
            shutil.rmtree(entry, ignore_errors=True)
