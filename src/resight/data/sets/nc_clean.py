"""Neural Codes landmarks, the cleaned list (NC-clean) or one folder per landmark, in, a Dataset out.

    root/annotation_clean_train.txt     one line per image: URL, number of the landmark, x1 x2 y1 y2 of its box
    root/annotation_clean_val.txt       the same, for validation
    root/images/581/NAME.jpg            an image by the last part of its URL, in the folder of its landmark …
    root/images/NAME.jpg                … or all in one folder

Without the lists, every folder of root/images is a landmark. Images: Babenko et al., ECCV 2014; list: Gordo et al.,
ECCV 2016. A training set with labels and no queries. Boxes are not used: CiDeR trains on whole images. Many of the
URLs are dead; listed images without a file are left out and reported as skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from resight.data.folder_walk import walk
from resight.data.sets import Published, find_root
from resight.errors import ManifestError
from resight.files.inside import find_fault
from resight.types import Dataset, ImageRef, Skipped

IMAGES = "images"
LISTS = {"train": "annotation_clean_train.txt", "val": "annotation_clean_val.txt"}
FIELDS = 6
PUBLISHED = Published(
    # As Table 3 of CiDeR counts the images that could still be downloaded.
    counts={"database": 27_965, "labels": 581},
    downloads=(
        "annotations_landmarks.zip of the project Deep Image Retrieval of Naver Labs Europe, its "
        f"{' and '.join(LISTS.values())} to ROOT/",
        f"the images, by the URLs of these lists, to ROOT/{IMAGES}/LANDMARK/ under the last part of their URL",
    ),
    licence="images of the web, each under its owner's terms; for research",
)


@dataclass(frozen=True)
class Config:
    split: Literal["all", "train", "val"] = "all"  # lists to read; all: both, as CiDeR counts them


def build(config: Config) -> "NcCleanSource":
    return NcCleanSource(config)


@dataclass(frozen=True)
class NcCleanSource:
    config: Config

    @property
    def published(self) -> Published:
        return PUBLISHED

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "nc_clean", IMAGES)
        lists = [root / name for split, name in LISTS.items() if self.config.split in ("all", split)]
        listed = any(path.exists() for path in lists)
        if not listed and self.config.split != "all":
            raise _refuse(f"{lists[0]} is missing", f"the list of {self.config.split}", "no such file")
        found = list(_read_lists(lists, root / IMAGES) if listed else _read_folders(root / IMAGES))
        database = tuple(item for item in found if isinstance(item, ImageRef))
        if not database:
            expected = f"images such as {root / IMAGES / '581' / 'NAME.jpg'}"
            raise _refuse(
                f"there are no images in {root / IMAGES}", expected, f"{len(found):,} listed, none with a file"
            )
        skipped = tuple(item for item in found if isinstance(item, Skipped))
        return Dataset(f"nc_clean {self.config.split}", database, (), {}, skipped=skipped)


def _read_lists(paths: list[Path], images: Path) -> Iterator[ImageRef | Skipped]:
    seen: set[str] = set()
    for path in paths:
        for line, text in _read_lines(path):
            fields = text.split()
            if len(fields) != FIELDS or not fields[1].isdecimal():
                raise _refuse(f"{path}, line {line}: not an image", "URL, landmark, x1, x2, y1 and y2", text[:80])
            label, name = fields[1], unquote(urlsplit(fields[0]).path.rpartition("/")[2])
            if "/" in name or find_fault(name):
                raise _refuse(f"{path}, line {line}: the URL names no file", "http://…/NAME.jpg", fields[0][:80])
            id = f"{label}/{name}"
            file = next((one for one in (images / label / name, images / name) if one.is_file()), None)
            if file is None or id in seen:
                yield Skipped(str(images / label / name), "its URL is listed twice" if id in seen else "no such file")
                continue
            seen.add(id)
            yield ImageRef(id, file, attributes={"label": label})


def _read_folders(images: Path) -> Iterator[ImageRef | Skipped]:
    for item in walk(images) if images.is_dir() else ():
        if isinstance(item, ImageRef):
            label, slash, _ = item.id.partition("/")
            if not slash:
                yield Skipped(str(item.path), "it is in no landmark's folder")
                continue
            item = ImageRef(item.id, item.path, attributes={"label": label})
        yield item


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        actual = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise _refuse(f"{path} cannot be read", "a text file", actual) from error
    return ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def _refuse(problem: str, expected: str, actual: str) -> ManifestError:
    fix = "`resight data check nc_clean ROOT` lists what to download and where to put it"
    return ManifestError(problem, expected=expected, actual=actual[:300], fix=fix)
