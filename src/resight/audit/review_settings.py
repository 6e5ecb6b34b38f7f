"""review.json: what a review is called, which collections its pairs are in, and how it is shown."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight.errors import ManifestError
from resight.whole_files import write_whole

FILE = "review.json"
Order = Literal["uncertain", "given"]


@dataclass(frozen=True)
class Settings:
    title: str
    a: Path  # the collection that the pairs' a are in
    b: Path
    order: Order = "uncertain"
    blind: bool = True


def has_settings(folder: Path) -> bool:
    return (folder / FILE).exists()


def read_settings(folder: Path) -> Settings:
    try:
        settings = json.loads((folder / FILE).read_text(encoding="utf-8"))
        title, a, b = (settings[name] for name in ("title", "a", "b"))
        order, blind = settings.get("order", "uncertain"), settings.get("blind", True)
        right = all(isinstance(text, str) for text in (title, a, b)) and isinstance(blind, bool)
        if not right or order not in ("uncertain", "given"):
            raise ValueError("a value of the wrong kind")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(
            f"{folder} is not a review",
            expected="review.json with title, a, b, and order (uncertain or given) and blind (true or false) if wanted",
            actual="no such file" if isinstance(error, FileNotFoundError) else repr(error),
            fix="make it with `resight audit` or `resight dedup --review`; a broken review.json has to go first",
        ) from error
    return Settings(title, folder / a, folder / b, order, blind)


def write_settings(settings: Settings, folder: Path) -> None:
    plain = {
        "title": settings.title,
        "a": _name(settings.a, folder),
        "b": _name(settings.b, folder),
        "order": settings.order,
        "blind": settings.blind,
    }
    with write_whole(folder / FILE) as temporary:
        temporary.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _name(collection: Path, folder: Path) -> str:
    """Relative where the collection lies in the review's folder, so that both can be moved together."""
    inside = collection.resolve().is_relative_to(folder.resolve())
    return Path(os.path.relpath(collection, folder)).as_posix() if inside else str(collection.resolve())
