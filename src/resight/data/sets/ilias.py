"""ILIAS (Instance-Level Image retrieval At Scale, Kordopatis-Zilos et al., CVPR 2025) in, a Dataset out.

    root/ilias_core/INSTANCE/query/Q000_00.jpg  with Q000_00_bbox.txt beside it: x y width height, one box a line
    root/ilias_core/INSTANCE/pos/P000_00.jpg    with P000_00_bbox.txt
    root/image_ids/image_query_ids.txt          an id a line, such as INSTANCE/query/Q000_00.jpg      (may be absent)
    root/image_ids/positive_ids.txt             an id, the object's share of the image, the clutter   (may be absent)

Where the lists are there, they say which images count and in which order; else every image of the folders does.
Positives are those of the query's instance. The box of an image with several is the one around all of them. Without
`distractors` the database is the core: 4,715 positives. `distractors` is a folder of images, which is walked, or a list
of files, one a line (may be .gz), relative to the list's folder: unpack the shards of YFCC100M that are to be searched.
Lists are read, images are not: `resight data check` tells which are missing.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resight.data.image_files import SUFFIXES
from resight.data.sets import Published, find_root
from resight.data.truth_tables import list_distractors, read_boxes, read_lines, surround
from resight.errors import ManifestError
from resight.types import Attribute, Box, Dataset, ImageRef, Judgement

CORE = "ilias_core"
LISTS = {"query": "image_query_ids.txt", "pos": "positive_ids.txt"}
FIX = "`resight data check ilias ROOT` tells what to download and where it goes"


@dataclass(frozen=True)
class Config:
    query_box: bool = False  # a query is its box; else the whole image, as the makers measure
    distractors: Path | None = None  # relative to the data set's folder


def build(config: Config) -> "IliasSource":
    return IliasSource(config)


@dataclass(frozen=True)
class IliasSource:
    config: Config

    @property
    def published(self) -> Published:
        shards = f"shards of yfcc100m/ of the same, unpacked, and named by distractors = {self.config.distractors}"
        return Published(
            counts={"queries": 1_232} | ({} if self.config.distractors else {"database": 4_715, "labels": 1_000}),
            downloads=(
                "ilias_core.tar of https://vrg.fel.cvut.cz/ilias_data/, unpacked to ROOT/ilias_core/",
                "image_ids/image_query_ids.txt and image_ids/positive_ids.txt of the same, to ROOT/image_ids/",
                *((shards,) if self.config.distractors else ()),
            ),
            licence="CC BY 4.0 for the makers' own photos; the others as their sources say",
        )

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "ilias", CORE)
        queries = [_refer(id, about, root, self.config.query_box) for id, about in _list_images(root, "query")]
        positives = [_refer(id, about, root, False) for id, about in _list_images(root, "pos")]
        place = root / self.config.distractors if self.config.distractors else None
        distractors, skipped = list_distractors(place, FIX)
        return Dataset(
            f"ilias + {len(distractors):,} distractors" if distractors else "ilias core",
            (*positives, *distractors),
            tuple(queries),
            _judge(queries, positives, root),
            skipped,
        )


def _judge(queries: list[ImageRef], positives: list[ImageRef], root: Path) -> dict[str, Judgement]:
    of_instance: dict[str, list[ImageRef]] = defaultdict(list)
    for ref in positives:
        of_instance[str(ref.attributes["label"])].append(ref)
    judgements = {}
    for query in queries:
        same = of_instance.get(str(query.attributes["label"]))
        if not same:
            problem = f"{root}: the query {query.id!r} has no positives"
            raise ManifestError(problem, expected="images in pos/ of its instance", actual="none", fix=FIX)
        boxes = {ref.id: _find_box(ref.path) for ref in same}
        judgements[query.id] = Judgement(
            {ref.id: 1 for ref in same}, boxes={id: box for id, box in boxes.items() if box is not None}
        )
    return judgements


def _list_images(root: Path, part: str) -> Iterator[tuple[str, dict[str, Attribute]]]:
    """Ids and what the list says of them; by the folders where there is no list."""
    path = root / "image_ids" / LISTS[part]
    lines = list(read_lines(path, FIX)) if path.is_file() else None
    if lines is None:
        folders = sorted(folder for folder in (root / CORE).glob(f"*/{part}") if folder.is_dir())
        files = [file for folder in folders for file in sorted(folder.iterdir())]
        found = [(file.relative_to(root / CORE).as_posix(), "") for file in files if file.suffix.lower() in SUFFIXES]
    else:
        found = [(id.strip(), about) for id, _, about in (line.partition(",") for _, line in lines)]
    if not found:
        raise _refuse(root, f"there are no images of {part}", f"{CORE}/INSTANCE/{part}/*.jpg, or {path}", "none")
    seen: set[str] = set()
    for number, (id, about) in enumerate(found):
        place = f"{path}, line {lines[number][0]}" if lines else str(root / CORE / id)
        parts = Path(id).parts
        if len(parts) != 3 or parts[1] != part or ".." in parts or id in seen:
            raise _refuse(place, "not an id, or one that was there before", f"INSTANCE/{part}/NAME.jpg", id)
        seen.add(id)
        yield id, _parse_about(about, place) if part == "pos" else {}


def _parse_about(text: str, place: str) -> dict[str, Attribute]:
    """The share of the image that the object takes, and how cluttered the image is."""
    if not text.strip():
        return {}
    try:
        scale, clutter = text.split(",")
        return {"scale": float(scale), "clutter": int(clutter)}
    except ValueError as error:
        raise _refuse(place, "the line cannot be read", "id,scale,clutter", text) from error


def _refer(id: str, about: dict[str, Attribute], root: Path, boxed: bool) -> ImageRef:
    path = root / CORE / id
    return ImageRef(id, path, _find_box(path) if boxed else None, {"label": Path(id).parts[0], **about})


def _find_box(image: Path) -> Box | None:
    boxes = read_boxes(image.with_name(f"{image.stem}_bbox.txt"), FIX)
    return surround(boxes) if boxes else None


def _refuse(place: Path | str, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{place}: {problem}", expected=expected, actual=actual[:300], fix=FIX)
