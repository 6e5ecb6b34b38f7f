"""INSTRE (Wang and Jiang 2015), with the queries of Iscen et al. (CVPR 2017) or drawn here, in, a Dataset out.

    root/INSTRE-S1/CLASS/*.jpg, root/INSTRE-S2/…    one object per image; beside each, a .txt with its box: x y w h
    root/INSTRE-M/CLASS/*.jpg                       two objects; the .txt has two lines, for [a] and then for [b]
    root/gnd_instre.mat                             imlist, qimlist; gnd: for each query ok and bbx

`ok` numbers the positives in imlist from 1. A file gnd_instre.json with the same three names works as well. A query is
cropped to its box. Published readers disagree on whether bbx is x0 y0 x1 y1 or x y w h: it is read as the former,
unless the text beside the query has the same four numbers, which are x y w h.

Boxes of positives come from the texts. For an image of INSTRE-M it is the line of the query's object (by the letter
after the number of its class: 01a, 01b), or the box around both if the query shows both.

Without that ground truth, `queries_per_class` images of each class are drawn as queries. Their positives are the images
of the same class, and for INSTRE-S1 also those of INSTRE-M with the same number. This is not the published protocol,
and the name of the Dataset states it.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight.data.formats import SUFFIXES
from resight.data.sets import Published, find_root
from resight.data.truth_tables import locate_image, read_boxes, read_json, read_mat, surround
from resight.errors import ManifestError
from resight.plugins import check_range
from resight.types import Box, Dataset, ImageRef, Judgement

SUBSETS = ("INSTRE-S1", "INSTRE-S2", "INSTRE-M")
TRUTHS = ("gnd_instre.mat", "gnd_INSTRE.mat", "gnd_instre.json", "gnd_INSTRE.json")
CLASS = re.compile(r"(\d+)([ab]?)")
FIX = "`resight data check instre ROOT` lists what to download and where to put it"


@dataclass(frozen=True)
class Config:
    queries_per_class: int = 5  # queries to draw from each class if there is no ground truth file
    seed: int = 0  # random seed of the draw of queries

    def __post_init__(self) -> None:
        check_range("queries_per_class", self.queries_per_class, 1)


def build(config: Config) -> "InstreSource":
    return InstreSource(config)


@dataclass(frozen=True)
class InstreSource:
    config: Config

    @property
    def published(self) -> Published:
        return Published(
            counts={"database": 27_293, "queries": 1_250, "labels": 250},
            downloads=(
                "instre.tar.gz (2.3 GB) of ftp://ftp.irisa.fr/local/texmex/corpus/instre/, unpacked to ROOT/INSTRE-S1/ "
                "and so on",
                "gnd_instre.mat of the same, to ROOT/",
            ),
            licence="for research; see the makers' page",
        )

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "instre", SUBSETS[0])
        truth = next((root / name for name in TRUTHS if (root / name).is_file()), None)
        return _load_published(root, truth) if truth else _load_drawn(root, self.config)


def _load_published(root: Path, path: Path) -> Dataset:
    truth = read_mat(path, FIX) if path.suffix == ".mat" else read_json(path, FIX)
    names, queries = (_take_names(truth, key, path) for key in ("imlist", "qimlist"))
    tables = truth.get("gnd")
    if not isinstance(tables, list) or len(tables) != len(queries):
        found = f"{len(tables)} of them" if isinstance(tables, list) else type(tables).__name__
        raise _refuse(path, "'gnd' does not match 'qimlist'", f"{len(queries)} tables, one per query", found)
    texts = BoxTexts(root)
    judgements: dict[str, Judgement] = {}
    refs = []
    for query, table in zip(queries, tables, strict=True):
        try:
            numbers = [int(number) for number in np.asarray(table["ok"]).ravel()]
            box = _choose_box([float(value) for value in np.asarray(table["bbx"]).ravel()], texts.read(query))
        except (KeyError, TypeError, ValueError) as error:
            raise _refuse(
                path, f"{query!r} has no truth", "ok: numbers of images; bbx: four numbers", f"{table!r}"
            ) from error
        if not all(1 <= number <= len(names) for number in numbers):
            expected = f"numbers of images in imlist, 1 to {len(names)}"
            raise _refuse(path, f"'ok' of {query!r} is out of range", expected, f"{min(numbers)} to {max(numbers)}")
        refs.append(_refer(query, root, box))
        judgements[query] = _judge(query, [names[number - 1] for number in numbers], texts)
    return Dataset("instre", tuple(_refer(name, root) for name in names), tuple(refs), judgements)


def _load_drawn(root: Path, config: Config) -> Dataset:
    classes = {
        f"{subset}/{folder.name}": sorted(
            path.relative_to(root).as_posix() for path in folder.iterdir() if path.suffix.lower() in SUFFIXES
        )
        for subset in SUBSETS
        if (root / subset).is_dir()
        for folder in sorted((root / subset).iterdir())
        if folder.is_dir()
    }
    if not any(classes.values()):
        raise _refuse(
            root, "has neither the ground truth nor the images", f"{TRUTHS[0]}, or {', '.join(SUBSETS)}", "neither"
        )
    rng = np.random.default_rng(config.seed)
    queries = [
        files[row]
        for files in classes.values()
        for row in sorted(rng.permutation(len(files))[: config.queries_per_class])
    ]
    taken = set(queries)
    database = [name for files in classes.values() for name in files if name not in taken]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in database:
        groups[_name_class(name)].append(name)
    texts = BoxTexts(root)
    judgements = {}
    for query in queries:
        number, letter = _parse_class(query)
        same = groups[_name_class(query)] + (groups[f"INSTRE-M {number}"] if letter else [])
        judgements[query] = _judge(query, same, texts)
    boxes = {query: texts.read(query) for query in queries}
    return Dataset(
        "instre, queries drawn here",
        tuple(_refer(name, root) for name in database),
        tuple(_refer(query, root, surround(boxes[query]) if boxes[query] else None) for query in queries),
        judgements,
    )


class BoxTexts:
    """The boxes in the texts beside the images; each text is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._boxes: dict[str, list[Box]] = {}

    def read(self, name: str) -> list[Box]:
        if name not in self._boxes:
            self._boxes[name] = read_boxes(locate_image(self._root, name, self._root).with_suffix(".txt"), FIX)
        return self._boxes[name]


def _judge(query: str, positives: Sequence[str], texts: BoxTexts) -> Judgement:
    boxes = {name: _find_box(query, texts.read(name)) for name in positives}
    return Judgement(dict.fromkeys(positives, 1), boxes={name: box for name, box in boxes.items() if box is not None})


def _find_box(query: str, boxes: Sequence[Box]) -> Box | None:
    """The box of the query's object in a positive; None if there is no text."""
    _, letter = _parse_class(query)
    if len(boxes) == 2 and letter:
        return boxes["ab".index(letter)]
    return surround(boxes) if boxes else None


def _choose_box(numbers: Sequence[float], beside: Sequence[Box]) -> Box:
    x, y, right, bottom = numbers
    if (x, y, x + right, y + bottom) in beside:
        right, bottom = x + right, y + bottom
    if not (x < right and y < bottom):
        raise ValueError("inside out")
    return x, y, right, bottom


def _name_class(name: str) -> str:
    """A name that all images of a class share; for INSTRE-M it is the class's number."""
    subset, folder, *_ = Path(name).parts
    return f"{subset} {_parse_class(name)[0]}" if subset == "INSTRE-M" else f"{subset} {folder}"


def _parse_class(name: str) -> tuple[str, str]:
    """Number and letter of a class; the letter only for INSTRE-S1, where it names an object of INSTRE-M."""
    found = CLASS.match(Path(name).parent.name)
    if not found:
        return Path(name).parent.name, ""
    return found[1], found[2] if name.startswith("INSTRE-S1/") else ""


def _refer(name: str, root: Path, box: Box | None = None) -> ImageRef:
    subset, *_ = Path(name).parts or (name,)
    return ImageRef(name, locate_image(root, name, root), box, {"label": Path(name).parent.as_posix(), "set": subset})


def _take_names(truth: Mapping[str, Any], key: str, path: Path) -> list[str]:
    names = truth.get(key) if isinstance(truth, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        found = ", ".join(truth) if isinstance(truth, dict) else type(truth).__name__
        raise _refuse(path, f"has no list {key!r}", "imlist, qimlist and gnd", found)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _refuse(path, f"{key!r} names an image twice", "each once", repr(twice))
    for name in names:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise _refuse(path, f"{key!r} names a file outside the data set", "paths below ROOT", repr(name))
    return names


def _refuse(path: Path, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{path}: {problem}", expected=expected, actual=actual[:300], fix=FIX)
