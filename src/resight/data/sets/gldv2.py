"""Google Landmarks v2 (train, clean, RGLDv2-clean or retrieval) in, a Dataset out.

    root/train.csv                              id, url, landmark_id               which = "train"
    root/train_clean.csv                        landmark_id, images (separated by spaces)   "clean", "rgldv2_clean"
    root/index.csv                              id                                         "retrieval"
    root/retrieval_solution_v2.1.csv            id, images, Usage: Public, Private or Ignored
    root/train/0/1/2/0123456789abcdef.jpg       folders are the first three letters of the id; index/ and test/ alike

Weyand et al., CVPR 2020. RGLDv2-clean (CiDeR, Table A12) is the clean set without 18 landmarks that are in ROxford or
RParis; resight/data/rgldv2_clean.csv lists them. The training sets are databases with labels and no queries. Only the
tables are read, line by line; `resight data check` lists missing images.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from resight.data.sets import Published, find_root
from resight.errors import ManifestError
from resight.types import Dataset, ImageRef, Judgement

ID = re.compile(r"[0-9a-f]{16}")
SOLUTION = "retrieval_solution_v2.1.csv"
TABLES = {"train": "train.csv", "clean": "train_clean.csv", "rgldv2_clean": "train_clean.csv", "retrieval": SOLUTION}
USAGES = {"private": ("Private",), "public": ("Public",), "both": ("Public", "Private")}
QUERIES = {"private": 750, "public": 379, "both": 1129}
COUNTS = {
    "train": {"database": 4_132_914, "labels": 203_094},
    "clean": {"database": 1_580_470, "labels": 81_313},
    "rgldv2_clean": {"database": 1_578_905, "labels": 81_295},
}
SITE = "https://s3.amazonaws.com/google-landmark"


@dataclass(frozen=True)
class Config:
    which: Literal["train", "clean", "rgldv2_clean", "retrieval"] = "clean"  # three training sets, or the benchmark
    usage: Literal["private", "public", "both"] = "private"  # retrieval: private queries test, public ones validate


@dataclass(frozen=True)
class Landmark:
    gid: str
    images: int
    name: str


def build(config: Config) -> "Gldv2Source":
    return Gldv2Source(config)


def list_removed() -> tuple[Landmark, ...]:
    """The landmarks that RGLDv2-clean leaves out: Table A12, without its misaligned last column."""
    text = resources.files("resight.data").joinpath("rgldv2_clean.csv").read_text(encoding="utf-8")
    return tuple(Landmark(row["gid"], int(row["images"]), row["name"]) for row in csv.DictReader(text.splitlines()))


@dataclass(frozen=True)
class Gldv2Source:
    config: Config

    @property
    def published(self) -> Published:
        which = self.config.which
        tables, parts = [f"{SITE}/metadata/{TABLES[which]}"], {"train": "499"}
        if which == "retrieval":
            tables = [f"{SITE}/metadata/index.csv", f"{SITE}/ground_truth/{SOLUTION}"]
            parts = {"index": "099", "test": "019"}
        return Published(
            counts=COUNTS.get(which, {"database": 761_757, "queries": QUERIES[self.config.usage]}),
            downloads=(
                *(f"{table}, to ROOT/" for table in tables),
                *(
                    f"{SITE}/{part}/images_000.tar to images_{last}.tar, unpacked to ROOT/{part}/"
                    for part, last in parts.items()
                ),
            ),
            licence="annotations CC BY 4.0; images of train CC BY, of index and test CC0 or public domain",
        )

    def load(self, root: Path) -> Dataset:
        which = self.config.which
        root = find_root(root, "gldv2", TABLES[which])
        if which == "retrieval":
            return self._load_retrieval(root)
        left_out = frozenset(landmark.gid for landmark in list_removed()) if which == "rgldv2_clean" else frozenset()
        labelled = _read_train(root / "train.csv") if which == "train" else _read_clean(root / "train_clean.csv")
        folders = _Folders(root / "train")
        shared: dict[str, Mapping[str, str]] = {}  # one table per label rather than one per image
        database = tuple(
            ImageRef(id, folders.find(id), attributes=shared.setdefault(label, {"label": label}))
            for id, label in labelled
            if label not in left_out
        )
        different = len({ref.id for ref in database})
        if not database or different < len(database):
            actual = f"{len(database):,} ids, {different:,} of them different"
            raise _refuse(f"{root / TABLES[which]} is not a list of images", "images, each once", actual)
        return Dataset(f"gldv2 {which}", database, (), {})

    def _load_retrieval(self, root: Path) -> Dataset:
        index, test = _Folders(root / "index"), _Folders(root / "test")
        ids = dict.fromkeys(id for _, id in _read_ids(root / "index.csv"))
        queries: list[ImageRef] = []
        judgements: dict[str, Judgement] = {}
        for line, id, positives, usage in _read_solution(root / SOLUTION):
            if usage in USAGES[self.config.usage]:
                if missing := [positive for positive in positives if positive not in ids]:
                    where = f"{root / SOLUTION}, line {line}"
                    raise _refuse(f"{where}: an image is not in index.csv", "ids of index.csv", missing[0])
                queries.append(ImageRef(id, test.find(id)))
                judgements[id] = Judgement(dict.fromkeys(positives, 1))
        database = tuple(ImageRef(id, index.find(id)) for id in ids)
        return Dataset(f"gldv2 retrieval {self.config.usage}", database, tuple(queries), judgements)


class _Folders:
    """The path of an image by its id; millions of paths share 4,096 folder objects."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, Path] = {}

    def find(self, id: str) -> Path:
        start = id[:3]
        folder = self._known.get(start)
        if folder is None:
            folder = self._known[start] = self._root.joinpath(*start)
        return folder / f"{id}.jpg"


def _read_train(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and label of each image; the URL between them may contain commas and is not used."""
    for line, text in _read_lines(path, "id", "landmark_id"):
        id, _, rest = text.partition(",")
        yield _check_id(id, path, line), _check_label(rest.rpartition(",")[2], path, line)


def _read_clean(path: Path) -> Iterator[tuple[str, str]]:
    for line, text in _read_lines(path, "landmark_id", "images"):
        label, _, ids = text.partition(",")
        label = _check_label(label, path, line)
        for id in ids.split():
            yield _check_id(id, path, line), label


def _read_ids(path: Path) -> Iterator[tuple[int, str]]:
    for line, text in _read_lines(path, "id", "id"):
        yield line, _check_id(text, path, line)


def _read_solution(path: Path) -> Iterator[tuple[int, str, list[str], str]]:
    """line, id, positives, usage"""
    for line, text in _read_lines(path, "id", "Usage"):
        id, _, rest = text.partition(",")
        ids, _, usage = rest.rpartition(",")
        if usage not in ("Public", "Private", "Ignored"):
            raise _refuse(f"{path}, line {line}: unknown usage", "Public, Private or Ignored", text[-80:])
        positives = [] if ids == "None" else [_check_id(one, path, line) for one in ids.split()]
        yield line, _check_id(id, path, line), positives, usage


def _read_lines(path: Path, first: str, last: str) -> Iterator[tuple[int, str]]:
    """Yield the lines below the header, with their numbers. Some cells are too long for Python's csv module."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            header = file.readline().strip().split(",")
            if (header[0], header[-1]) != (first, last):
                expected = f"columns {first} … {last}" if first != last else f"a column {first}"
                raise _refuse(f"{path}, line 1: wrong header", expected, ",".join(header)[:80])
            for line, text in enumerate(file, start=2):
                if text.strip():
                    yield line, text.strip()
    except (OSError, UnicodeDecodeError) as error:
        actual = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise _refuse(f"{path} cannot be read", "a table in UTF-8", actual) from error


def _check_id(text: str, path: Path, line: int) -> str:
    if not ID.fullmatch(text):
        raise _refuse(f"{path}, line {line}: not an id", "16 digits and letters a to f", text[:80])
    return text


def _check_label(text: str, path: Path, line: int) -> str:
    if not (text.isascii() and text.isdigit()):
        raise _refuse(f"{path}, line {line}: not the number of a landmark", "digits", text[:80])
    return text


def _refuse(problem: str, expected: str, actual: str) -> ManifestError:
    fix = "`resight data check gldv2 ROOT --set which=…` lists what to download and where to put it"
    return ManifestError(problem, expected=expected, actual=actual[:300], fix=fix)
