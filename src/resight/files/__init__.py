"""Files on disk and in object stores: atomic writing, locks, SQLite, remote addresses, fingerprints, cache folder."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """resight's folder below the user's cache directory (XDG base directory specification); its files can be remade."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "resight"
