"""Museum paintings and photos of them, with boxes (course data of UAB and UPC Barcelona) in, a Dataset out.

    root/paintings/bbdd_00000.jpg …     the paintings; the number is the painting's `db_id`
    root/photos/*.jpg                   photos in which one or two of them hang
    root/truth.json                     a list, one item per photo: file, width, height, year, set, objects, …

Each object of a photo has a `bbox` and a `db_id`: -1 is a painting that the folder lacks, null an unidentified one.

- `photo_to_painting`: each photo is a query. A photo that shows only -1 stays, without positives. A photo with only
  null, or without objects, is left out.
- `painting_to_photos`: each painting in at least one photo is a query, with its boxes as ground truth. A photo with a
  null is ignored by every query of which it is no positive.
- A photo is left out as a copy if its `same_bytes_as` names another photo that is loaded.
- If `boxes_ok` is false, the photo's boxes are not used. Boxes are clipped to their photo.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from resight.data.sets import find_root
from resight.data.truth_tables import locate_image
from resight.errors import ManifestError, RecipeError
from resight.files import documents
from resight.types import Box, Dataset, ImageRef, Judgement


@dataclass(frozen=True)
class Config:
    direction: Literal["photo_to_painting", "painting_to_photos"] = "photo_to_painting"  # query first, then database
    sets: tuple[str, ...] = ()  # sets of photos to load, by `set` in truth.json; default: all


def build(config: Config) -> "MuseumSource":
    return MuseumSource(config)


@dataclass(frozen=True)
class MuseumSource:
    config: Config

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "museum", "truth.json")
        paintings = {path.stem: ImageRef(path.stem, path) for path in sorted((root / "paintings").glob("bbdd_*.jpg"))}
        if not paintings:
            raise _refuse(f"no paintings in {root}", str(root / "paintings" / "bbdd_00000.jpg"), "no such files")
        photos = [_parse_photo(item, root, paintings) for item in _read_truth(root / "truth.json")]
        photos = _leave_out_copies(_select(photos, self.config.sets))
        join = _photos_as_queries if self.config.direction == "photo_to_painting" else _paintings_as_queries
        return join(photos, paintings)


@dataclass(frozen=True)
class Photo:
    ref: ImageRef
    shown: Mapping[str, Box | None]  # painting id → its box
    unknown: bool  # it shows an unidentified painting, or no object is listed
    foreign: bool  # it shows a painting that the folder lacks
    copy_of: str  # id of a photo with the same bytes


def _photos_as_queries(photos: Sequence[Photo], paintings: Mapping[str, ImageRef]) -> Dataset:
    queries = [photo for photo in photos if photo.shown or photo.foreign]
    return Dataset(
        name="museum photo_to_painting",
        database=tuple(paintings.values()),
        queries=tuple(photo.ref for photo in queries),
        judgements={photo.ref.id: Judgement(dict.fromkeys(photo.shown, 1)) for photo in queries},
    )


def _paintings_as_queries(photos: Sequence[Photo], paintings: Mapping[str, ImageRef]) -> Dataset:
    unclear = frozenset(photo.ref.id for photo in photos if photo.unknown)
    judgements: dict[str, Judgement] = {}
    for id in paintings:
        found = {photo.ref.id: photo.shown[id] for photo in photos if id in photo.shown}
        if found:
            boxes = {photo: box for photo, box in found.items() if box is not None}
            judgements[id] = Judgement(dict.fromkeys(found, 1), unclear - found.keys(), boxes)
    return Dataset(
        name="museum painting_to_photos",
        database=tuple(photo.ref for photo in photos),
        queries=tuple(paintings[id] for id in judgements),
        judgements=judgements,
    )


def _read_truth(path: Path) -> list[dict[str, Any]]:
    try:
        items = documents.read_json(path, error=ManifestError)
    except FileNotFoundError as error:
        raise _refuse("the museum set has no ground truth", str(path), "no such file") from error
    if not isinstance(items, list):
        raise _refuse(f"{path} has another form", "a list, one item per photo", type(items).__name__)
    return items


def _parse_photo(item: Mapping[str, Any], root: Path, paintings: Mapping[str, ImageRef]) -> Photo:
    try:
        path = locate_image(root, item["file"], root / "truth.json")
        ids = [object["db_id"] for object in item["objects"]]
        shown: dict[str, Box | None] = {}
        for object in item["objects"]:
            if object["db_id"] is not None and object["db_id"] >= 0:
                box = _clip(object["bbox"], item["width"], item["height"]) if item["boxes_ok"] else None
                shown.setdefault(f"bbdd_{object['db_id']:05d}", box)
        ref = ImageRef(path.stem, path, attributes={"set": item["set"], "year": item["year"]})
        copy_of = Path(item.get("same_bytes_as") or "").stem
    except (KeyError, TypeError, ValueError) as error:
        expected = "file, width, height, year, set, boxes_ok and objects, each with db_id and bbox"
        raise _refuse(f"an item of {root / 'truth.json'} has another form", expected, f"{item!r:.200}") from error
    if not path.is_file():
        raise _refuse(f"a photo of {root / 'truth.json'} is missing", str(path), "no such file")
    if missing := shown.keys() - paintings.keys():
        raise _refuse(
            f"{path.stem} shows paintings that are missing", str(root / "paintings"), ", ".join(sorted(missing))
        )
    return Photo(ref, shown, unknown=None in ids or not ids, foreign=-1 in ids, copy_of=copy_of)


def _select(photos: Sequence[Photo], sets: Sequence[str]) -> list[Photo]:
    valid = sorted({str(photo.ref.attributes["set"]) for photo in photos})
    for name in sets:
        if name not in valid:
            raise RecipeError(
                f"the museum has no set {name!r}",
                expected=f"one of {', '.join(valid)}",
                actual=repr(name),
                fix="correct the name",
            )
    return [photo for photo in photos if not sets or photo.ref.attributes["set"] in sets]


def _leave_out_copies(photos: Sequence[Photo]) -> list[Photo]:
    kept: dict[str, Photo] = {}
    for photo in photos:
        if photo.copy_of not in kept:
            kept[photo.ref.id] = photo
    return list(kept.values())


def _clip(box: Sequence[float], width: float, height: float) -> Box:
    x0, y0, x1, y1 = (float(value) for value in box)
    return max(x0, 0.0), max(y0, 0.0), min(x1, float(width)), min(y1, float(height))


def _refuse(problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(problem, expected=expected, actual=actual, fix="give the folder that holds truth.json")
