"""ROxford5k or RParis6k, with or without the million distractors, in, a Dataset out.

    root/gnd_roxford5k.pkl      imlist, qimlist; gnd: for each query bbx, easy, hard, junk (rows of imlist)
    root/jpg/*.jpg              all images, flat, those of the queries too

Radenović et al., Revisiting Oxford and Paris, CVPR 2018. An easy positive has grade 2 and a hard one grade 1;
the protocols Easy, Medium and Hard derive from them. Junk is ignored. A query is cropped to its box. Only the ground
truth is read; `resight data check` lists missing images.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from resight.data.sets import Published, find_root
from resight.data.truth_tables import list_distractors, locate_image
from resight.data.unpickle import load, take_names, take_numbers
from resight.errors import ManifestError
from resight.types import Box, Dataset, ImageRef, Judgement

GRADES = {"easy": 2, "hard": 1}
IMAGES = {"roxford5k": 4993, "rparis6k": 6322}
DISTRACTORS = 1_001_001
FIX = "`resight data check revisited ROOT` lists what to download and where to put it"
SHA256 = {
    "roxford5k": "ba7967754bd2d7d2210a5799f9c45ad5835e269a80ef9d3eba44caa35816c471",
    "rparis6k": "d2e729a5293dda7dda8a15c8383424a42e4964a2c4cfea2f32fa85d11d2df499",
}
PICTURES = {
    "roxford5k": "oxbuild_images-v1.tgz of https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/",
    "rparis6k": "paris_1-v1.tgz and paris_2-v1.tgz of https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/",
}


@dataclass(frozen=True)
class Config:
    which: Literal["roxford5k", "rparis6k"] = "roxford5k"  # data set to load: ROxford5k or RParis6k
    distractors: Path | None = None  # folder, or list of files, of distractors; relative to the data set's folder


def build(config: Config) -> "RevisitedSource":
    return RevisitedSource(config)


@dataclass(frozen=True)
class RevisitedSource:
    config: Config

    @property
    def published(self) -> Published:
        which, truth = self.config.which, f"gnd_{self.config.which}.pkl"
        more = self.config.distractors is not None
        fetch_distractors = (
            "revisitop1m.1.tar.gz to revisitop1m.100.tar.gz of http://ptak.felk.cvut.cz/revisitop/revisitop1m/jpg/, "
            f"unpacked to {self.config.distractors}",
        )
        return Published(
            counts={"database": IMAGES[which] + DISTRACTORS * more, "queries": 70},
            downloads=(
                f"{truth} of http://cmp.felk.cvut.cz/revisitop/data/datasets/{which}/, to ROOT/{truth}",
                f"{PICTURES[which]}, all files (without their folders) to ROOT/jpg/",
                *(fetch_distractors if more else ()),
            ),
            licence="images of Flickr, under its terms and the terms of access on the makers' pages",
            checksums={truth: f"sha256:{SHA256[which]}"},
        )

    def load(self, root: Path) -> Dataset:
        which, file = self.config.which, f"gnd_{self.config.which}.pkl"
        root = find_root(root, which, file)
        truth = load(root / file)
        names, queries = (_take_unique(truth, key, root / file) for key in ("imlist", "qimlist"))
        tables = truth.get("gnd")
        if not isinstance(tables, Sequence) or len(tables) != len(queries):
            actual = f"{len(tables)} of them" if isinstance(tables, Sequence) else type(tables).__name__
            raise _refuse(
                root / file, "'gnd' does not match 'qimlist'", f"{len(queries)} tables, one per query", actual
            )
        parsed = [_parse(table, query, names, root / file) for table, query in zip(tables, queries, strict=True)]
        source = root / self.config.distractors if self.config.distractors else None
        distractors, skipped = list_distractors(source, FIX, beside="jpg")
        return Dataset(
            name=f"{which} + {len(distractors):,} distractors" if distractors else which,
            database=(*(_refer(name, root) for name in names), *distractors),
            queries=tuple(_refer(name, root, box) for name, (box, _) in zip(queries, parsed, strict=True)),
            judgements={name: judgement for name, (_, judgement) in zip(queries, parsed, strict=True)},
            skipped=skipped,
        )


def _refer(name: str, root: Path, box: Box | None = None) -> ImageRef:
    return ImageRef(name, locate_image(root / "jpg", f"{name}.jpg", root), box)


def _take_unique(truth: Any, key: str, path: Path) -> list[str]:
    names = take_names(truth, key, path)
    if not names or len(set(names)) < len(names):
        twice = next((name for name in names if names.count(name) > 1), "no names")
        raise _refuse(path, f"{key!r} is not a list of images", "names, each once", twice)
    return names


def _parse(table: Any, query: str, names: Sequence[str], path: Path) -> tuple[Box, Judgement]:
    """The query's box and judgement."""
    rows = {key: take_numbers(table, key, path, below=len(names)) for key in (*GRADES, "junk")}
    if len(set().union(*rows.values())) < sum(map(len, rows.values())):
        raise _refuse(path, f"an image of {query!r} is judged twice", "each once: easy, hard or junk", "the same twice")
    grades = {names[row]: grade for key, grade in GRADES.items() for row in rows[key]}
    return _parse_box(table, query, path), Judgement(grades, frozenset(names[row] for row in rows["junk"]))


def _parse_box(table: Mapping[str, Any], query: str, path: Path) -> Box:
    try:
        x0, y0, x1, y1 = map(float, table["bbx"])
    except (KeyError, TypeError, ValueError) as error:
        raise _refuse(path, f"{query!r} has no box", "bbx: x0, y0, x1, y1", f"{table.get('bbx')!r}") from error
    if not (x0 < x1 and y0 < y1):
        raise _refuse(path, f"the box of {query!r} is inside out", "x0 < x1, y0 < y1", f"{x0}, {y0}, {x1}, {y1}")
    return x0, y0, x1, y1


def _refuse(path: Path, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{path}: {problem}", expected=expected, actual=actual[:300], fix=FIX)
