"""ILIAS (Instance-Level Image retrieval At Scale, Kordopatis-Zilos et al., CVPR 2025) in, a Dataset out.

    root/ilias_core/INSTANCE/query/Q000_00.jpg  with Q000_00_bbox.txt beside it: x y width height, one box per line
    root/ilias_core/INSTANCE/pos/P000_00.jpg    with P000_00_bbox.txt
    root/image_ids/image_query_ids.txt          one id per line: INSTANCE/query/Q000_00.jpg           (optional)
    root/image_ids/positive_ids.txt             id, the object's share of the image, clutter          (optional)

The lists give the images and their order; without them, every image of the folders is taken. The positives of a query
are those of its instance. An image with several boxes gets the box around all of them. Without `distractors` the
database is the core: 4,715 positives. `distractors` is a folder of images, or a list of files, one per line (may be
.gz), relative to the list's folder: unpack those shards of YFCC100M that you want to search. Only the lists are read;
`resight data check` lists missing images.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resight.data.formats import SUFFIXES
from resight.data.sets import Published, find_root
from resight.data.truth_tables import list_distractors, locate_image, read_boxes, read_lines, surround
from resight.errors import ManifestError
from resight.types import Attribute, Box, Dataset, ImageRef, Judgement

CORE = "ilias_core"
LISTS = {"query": "image_query_ids.txt", "pos": "positive_ids.txt"}
FIX = "`resight data check ilias ROOT` lists what to download and where to put it"


@dataclass(frozen=True)
class Config:
    query_box: bool = False  # crop queries to their box; the published protocol takes the whole image
    distractors: Path | None = None  # folder, or list of files, of further images; relative to the data set's folder


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
            licence="CC BY 4.0 for the makers' own photos; for the others see their sources",
        )

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "ilias", CORE)
        queries = [_refer(id, about, root, self.config.query_box) for id, about in _list_images(root, "query")]
        positives = [_refer(id, about, root, False) for id, about in _list_images(root, "pos")]
        source = root / self.config.distractors if self.config.distractors else None
        distractors, skipped = list_distractors(source, FIX)
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
    """Yield ids and the attributes in the list; without a list, the ids of all images in the folders."""
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
        where = f"{path}, line {lines[number][0]}" if lines else str(root / CORE / id)
        parts = Path(id).parts
        if len(parts) != 3 or parts[1] != part or ".." in parts or id in seen:
            raise _refuse(where, "not an id, or a repeated one", f"INSTANCE/{part}/NAME.jpg", id)
        seen.add(id)
        yield id, _parse_about(about, where) if part == "pos" else {}


def _parse_about(text: str, where: str) -> dict[str, Attribute]:
    """The object's share of the image, and the image's clutter."""
    if not text.strip():
        return {}
    try:
        scale, clutter = text.split(",")
        return {"scale": float(scale), "clutter": int(clutter)}
    except ValueError as error:
        raise _refuse(where, "the line cannot be read", "id,scale,clutter", text) from error


def _refer(id: str, about: dict[str, Attribute], root: Path, boxed: bool) -> ImageRef:
    path = locate_image(root / CORE, id, root)
    return ImageRef(id, path, _find_box(path) if boxed else None, {"label": Path(id).parts[0], **about})


def _find_box(image: Path) -> Box | None:
    boxes = read_boxes(image.with_name(f"{image.stem}_bbox.txt"), FIX)
    return surround(boxes) if boxes else None


def _refuse(where: Path | str, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{where}: {problem}", expected=expected, actual=actual[:300], fix=FIX)
