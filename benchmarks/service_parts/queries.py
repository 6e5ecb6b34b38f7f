"""Photos to ask with: names and bytes."""

from pathlib import Path

from resight.data.formats import SUFFIXES


def list_photos(folder: Path, count: int) -> list[Path]:
    """Spread over the whole folder."""
    found = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
    step = max(1, len(found) // count)
    return found[::step][:count]


def read_queries(folder: Path, count: int) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in list_photos(folder, count)]
