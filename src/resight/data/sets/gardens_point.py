"""Gardens Point Walking (QUT, Brisbane; the same campus walk, three times) in, a Dataset out.

    root/day_left/Image000.jpg … Image199.jpg, root/day_right/…, root/night_right/…

A frame shows the same place as the frame with the same number in another walk, give or take `tolerance` frames.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from resight.data.formats import SUFFIXES
from resight.data.sets import find_root
from resight.errors import ManifestError, RecipeError
from resight.types import Dataset, ImageRef, Judgement


@dataclass(frozen=True)
class Config:
    queries: str = "night_right"  # walk whose frames are the queries: day_left, day_right or night_right
    database: str = "day_left"  # walk whose frames are searched; not that of the queries
    tolerance: int = 2  # frames of both walks show the same place if their numbers differ by at most this


def build(config: Config) -> "GardensPointSource":
    if config.queries == config.database:
        raise RecipeError(
            "a walk cannot be searched in itself",
            expected="two different walks",
            actual=f"queries and database are both {config.queries!r}",
            fix="choose two of day_left, day_right, night_right",
        )
    if config.tolerance < 0:
        raise RecipeError("tolerance below 0", expected="0 or more frames", actual=str(config.tolerance), fix="e.g. 2")
    return GardensPointSource(config)


@dataclass(frozen=True)
class GardensPointSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "gardenspoint", self.config.database)
        database, queries = (_list_frames(root, walk) for walk in (self.config.database, self.config.queries))
        tolerance = range(-self.config.tolerance, self.config.tolerance + 1)
        judgements = {
            ref.id: Judgement({database[number + step].id: 1 for step in tolerance if number + step in database})
            for number, ref in queries.items()
        }
        name = f"gardens_point {self.config.queries} in {self.config.database}"
        return Dataset(name, tuple(database.values()), tuple(queries.values()), judgements)


def _list_frames(root: Path, walk: str) -> dict[int, ImageRef]:
    """frame number → image, in order of name."""
    folder = root / walk
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    frames: dict[int, ImageRef] = {}
    for path in files:
        number = re.search(r"\d+$", path.stem)
        if number and path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
            frames[int(number.group())] = ImageRef(
                f"{walk}/{path.stem}", path, attributes={"frame": int(number.group())}
            )
    if not frames:
        raise ManifestError(
            f"there is no walk {walk!r}",
            expected=f"frames such as {folder / 'Image000.jpg'}",
            actual="no frames in that folder" if folder.is_dir() else "no such folder",
            fix="give the folder that holds the walks, and a walk that it has",
        )
    return frames
