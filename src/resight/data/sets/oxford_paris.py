"""Oxford5k or Paris6k with their original protocol in, a Dataset out.

    root/jpg/**/*.jpg                       all images; in folders, as Paris comes, or flat
    root/*/all_souls_1_query.txt            an image and its box: oxc1_all_souls_000013 136.5 34.1 648.5 955.7
    root/*/all_souls_1_good.txt, …_ok.txt   names of images that show it, one per line
    root/*/all_souls_1_junk.txt             names of images that are ignored

Philbin et al., CVPR 2007 and CVPR 2008. Good and ok are both positives. The image of a query is in the database and, as
in the original protocol, among its own positives. The images of Paris that were published damaged (DAMAGED) are left
out everywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight.data.folder_walk import walk
from resight.data.manifest_rows import FileLine, parse_box
from resight.data.sets import Published, find_root
from resight.errors import ManifestError
from resight.types import Dataset, ImageRef, Judgement, Skipped

PREFIX = "oxc1_"  # before the image names in Oxford's query files
QUERY = "_query.txt"
DAMAGED = frozenset(
    f"paris_{landmark}_{number:06d}"
    for landmark, numbers in {
        "louvre": (136, 146),
        "moulinrouge": (422,),
        "museedorsay": (1059,),
        "notredame": (188,),
        "pantheon": (284, 960, 974),
        "pompidou": (195, 196, 201, 467, 640),
        "sacrecoeur": (299, 330, 353),
        "triomphe": (662, 833, 863, 867),
    }.items()
    for number in numbers
)
PUBLISHED = {
    "oxford5k": Published(
        # The page names 5,062; its archive has one more, as have the lists of ROxford5k (4,993 + 70).
        counts={"database": 5063, "queries": 55},
        downloads=(
            "oxbuild_images-v1.tgz of https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/, to ROOT/jpg/",
            "gt_files_170407.tgz of the same page, to ROOT/gt/",
        ),
        licence="images of Flickr, under its terms and the terms of access on the makers' page",
    ),
    "paris6k": Published(
        counts={"database": 6412 - len(DAMAGED), "queries": 55},
        downloads=(
            "paris_1-v1.tgz and paris_2-v1.tgz of https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/, to ROOT/jpg/",
            "paris_120310.tgz of the same page, to ROOT/gt/",
        ),
        licence="images of Flickr, under its terms and the terms of access on the makers' page",
    ),
}


@dataclass(frozen=True)
class Config:
    which: Literal["oxford5k", "paris6k"] = "oxford5k"  # data set to load: Oxford5k or Paris6k


def build(config: Config) -> "OxfordParisSource":
    return OxfordParisSource(config)


@dataclass(frozen=True)
class OxfordParisSource:
    config: Config

    @property
    def published(self) -> Published:
        return PUBLISHED[self.config.which]

    def load(self, root: Path) -> Dataset:
        root = find_root(root, self.config.which, "jpg")
        found = list(walk(root / "jpg")) if (root / "jpg").is_dir() else []
        images = _name_images(found, root)
        queries = dict(_read_query(path, images) for path in _find_queries(root))
        judgements = {id: _read_judgement(path, images) for id, (path, _) in queries.items()}
        return Dataset(
            name=self.config.which,
            database=tuple(images.values()),
            queries=tuple(ref for _, ref in queries.values()),
            judgements=judgements,
            skipped=tuple(item for item in found if isinstance(item, Skipped)),
        )


def _name_images(found: list[ImageRef | Skipped], root: Path) -> dict[str, ImageRef]:
    """Name without folder and ending → image."""
    images: dict[str, ImageRef] = {}
    for item in found:
        if isinstance(item, ImageRef) and (name := item.path.stem) not in DAMAGED:
            if name in images:
                raise _refuse(
                    f"{root / 'jpg'} has {name!r} twice", "each name once", f"{images[name].path}, {item.path}"
                )
            images[name] = ImageRef(name, item.path)
    if not images:
        raise _refuse(f"there are no images in {root / 'jpg'}", f"such as {root / 'jpg' / 'NAME_000000.jpg'}", "none")
    return images


def _find_queries(root: Path) -> list[Path]:
    paths = sorted(root.glob(f"*{QUERY}")) or sorted(root.glob(f"*/*{QUERY}"))
    folders = {path.parent for path in paths}
    if len(folders) != 1:
        actual = ", ".join(str(folder) for folder in sorted(folders)) or "none"
        raise _refuse(f"{root} has no ground truth", f"files *{QUERY} in one folder, such as {root / 'gt'}", actual)
    return paths


def _read_query(path: Path, images: dict[str, ImageRef]) -> tuple[str, tuple[Path, ImageRef]]:
    """The query's id, and its file with its image and box."""
    lines = list(_read_lines(path))
    if len(lines) != 1:
        raise _refuse(f"{path} is not a query", "one line: an image and its box", f"{len(lines)} lines")
    line, text = lines[0]
    name, _, box = text.partition(" ")
    name = name.removeprefix(PREFIX)
    if name not in images:
        raise _refuse(f"{path}, line {line}: the query's image is missing", f"{name}.jpg", "no such image in jpg")
    id = path.name.removesuffix(QUERY)
    return id, (path, ImageRef(id, images[name].path, parse_box(box, FileLine(path, line))))


def _read_judgement(query: Path, images: dict[str, ImageRef]) -> Judgement:
    good, ok, junk = (
        _read_names(query.with_name(query.name.removesuffix(QUERY) + f"_{kind}.txt"), images)
        for kind in ("good", "ok", "junk")
    )
    return Judgement(dict.fromkeys(good + ok, 1), frozenset(junk) - {*good, *ok})


def _read_names(path: Path, images: dict[str, ImageRef]) -> list[str]:
    names = []
    for line, name in _read_lines(path):
        if name in images:
            names.append(name)
        elif name not in DAMAGED:
            raise _refuse(f"{path}, line {line}: an image is missing", f"{name}.jpg", "no such image in jpg")
    return names


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refuse(f"{path} cannot be read", "a text file", str(error)) from error
    return ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def _refuse(problem: str, expected: str, actual: str) -> ManifestError:
    fix = "`resight data check oxford_paris ROOT` lists what to download and where to put it"
    return ManifestError(problem, expected=expected, actual=actual[:300], fix=fix)
