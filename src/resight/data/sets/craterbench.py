"""CraterBench-R (craters of Mars, seen by CTX; Fang et al. 2026) in, a Dataset out.

    root/splits/test.json               gallery_images: image_id, path, crater_id, view_type (2x or 3x); and the queries
    root/splits/train.json              gallery_images alone: for training, without the craters of the queries
    root/metadata/query_relevance.json  which craters a query shows: one to three of the gallery's
    root/images/gallery, root/images/query

Positives: every gallery image of a crater that is relevant to the query. Only the lists are read; `resight data check`
lists missing images. The release leaves some names open, so the reader accepts any of these:

    queries         query_images, queries, query
    of a query      image_id, query_id or id;  path, image_path or file;  crater_id or query_crater_id
    relevance       in the query, in test.json as ground_truth or relevance, or in query_relevance.json (at the top, or
                    below relevance, queries or query_relevance): a table or a list, by image or by crater; each entry
                    is a list of ids, or holds one: relevant_crater_ids, relevant_ids, …, or any key that contains
                    "relevan" or "filter" and not "raw"
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from resight.data.sets import Published, find_root
from resight.data.truth_tables import locate_image, read_json
from resight.errors import ManifestError
from resight.types import Dataset, ImageRef, Judgement

QUERIES = ("query_images", "queries", "query")
ID = ("image_id", "query_id", "id")
PATH = ("path", "image_path", "file")
CRATER = ("crater_id", "query_crater_id")
RELEVANCE = ("ground_truth", "relevance")
RELEVANT = (
    *("relevant_crater_ids", "gallery_relevant_crater_ids", "gallery_relevant_ids", "filtered_relevant_ids"),
    *("filtered_crater_ids", "relevant_ids", "relevant"),
)
FIX = "`resight data check craterbench ROOT` lists what to download and where to put it"

Relevance = Mapping[str, Sequence[str]]  # image or crater → craters of the gallery


@dataclass(frozen=True)
class Config:
    split: Literal["test", "train"] = "test"  # test: gallery and queries; train: a gallery with labels, no queries


def build(config: Config) -> "CraterBenchSource":
    return CraterBenchSource(config)


@dataclass(frozen=True)
class CraterBenchSource:
    config: Config

    @property
    def published(self) -> Published:
        test = {"database": 50_000, "queries": 5_000, "labels": 25_000}
        return Published(
            counts=test if self.config.split == "test" else {"database": 47_882, "queries": 0, "labels": 23_941},
            downloads=(
                "splits/ and metadata/ of https://huggingface.co/datasets/jfang/CraterBench-R, to ROOT/",
                "images.zip (1.8 GB) of the same, unpacked to ROOT/images/gallery/ and ROOT/images/query/",
            ),
            licence="CC BY 4.0",
        )

    def load(self, root: Path) -> Dataset:
        file = f"splits/{self.config.split}.json"
        root = find_root(root, "CraterBench-R", file)
        table = _expect(read_json(root / file, FIX), dict, root / file, "a table with gallery_images")
        gallery = [_refer(item, root, root / file) for item in _take_list(table, ("gallery_images",), root / file)]
        _check_unique(gallery, root / file)
        name = f"craterbench {self.config.split}"
        if self.config.split == "train":
            return Dataset(name, tuple(gallery), (), {})
        items = _take_list(table, QUERIES, root / file)
        queries = [_refer(item, root, root / file) for item in items]
        _check_unique(queries, root / file)
        views: dict[str, dict[str, int]] = defaultdict(dict)
        for ref in gallery:
            views[str(ref.attributes["label"])][ref.id] = 1
        relevance = _read_relevance(root, table, items, queries)
        judgements = {ref.id: _judge(ref, relevance, views, root) for ref in queries}
        return Dataset(name, tuple(gallery), tuple(queries), judgements)


def _judge(query: ImageRef, relevance: Relevance, views: Mapping[str, Mapping[str, int]], root: Path) -> Judgement:
    own = str(query.attributes["label"])
    grades: dict[str, int] = {}
    for crater in relevance.get(query.id, relevance.get(own, (own,))):
        if crater not in views:
            problem = f"{root}: the query {query.id!r} shows a crater that the gallery does not have"
            raise ManifestError(problem, expected="crater ids of gallery_images", actual=repr(crater), fix=FIX)
        grades |= views[crater]
    return Judgement(grades)


def _read_relevance(
    root: Path, table: Mapping[str, Any], items: Sequence[Any], queries: Sequence[ImageRef]
) -> Relevance:
    """By image or by crater, from the first of the three sources that has any."""
    inside = {ref.id: _take_ids(item, root, required=False) for item, ref in zip(items, queries, strict=True)}
    if any(inside.values()):
        return inside
    path = root / "metadata" / "query_relevance.json"
    key = next((key for key in RELEVANCE if key in table), None)
    content = table[key] if key else read_json(path, FIX)
    where = root / "splits" / "test.json" if key else path
    if isinstance(content, dict) and (inner := [k for k in (*RELEVANCE, *QUERIES, "query_relevance") if k in content]):
        content = content[inner[0]]
    if isinstance(content, list):
        content = {str(_take(item, (*ID, *CRATER), where)): item for item in content}
    found = {str(key): _take_ids(item, where, required=True) for key, item in _expect(content, dict, where, "").items()}
    if not any(ref.id in found or ref.attributes["label"] in found for ref in queries):
        raise _refuse(where, "names no query", "image or crater ids of the queries", ", ".join(list(found)[:5]))
    return found


def _take_ids(item: Any, where: Path, required: bool) -> list[str]:
    """The ids of the relevant craters, from any of the accepted forms."""
    if isinstance(item, dict):
        known = [key for key in RELEVANT if key in item]
        likely = [k for k in item if ("relevan" in k or "filter" in k) and "raw" not in k and isinstance(item[k], list)]
        if not required and not (known or likely):
            return []
        if not known and len(likely) != 1:
            expected = f"one of {', '.join(RELEVANT)}"
            raise _refuse(where, "does not list the relevant craters", expected, f"the keys {', '.join(item)}")
        item = item[(known or likely)[0]]
    return [str(crater) for crater in _expect(item if isinstance(item, list) else [item], list, where, "ids")]


def _refer(item: Any, root: Path, where: Path) -> ImageRef:
    attributes = {"label": str(_take(item, CRATER, where))}
    if "view_type" in item:
        attributes["view"] = str(item["view_type"])
    path = locate_image(root, _take(item, PATH, where), where)
    return ImageRef(str(_take(item, ID, where)), path, attributes=attributes)


def _take(item: Any, names: Sequence[str], where: Path) -> Any:
    """The value under the first of `names` that the item has."""
    for name in names if isinstance(item, dict) else ():
        if name in item:
            return item[name]
    actual = f"the keys {', '.join(item)}" if isinstance(item, dict) else f"{item!r:.100}"
    raise _refuse(where, f"has an item without {names[0]}", f"one of {', '.join(names)}", actual)


def _take_list(table: Any, names: Sequence[str], where: Path) -> list[Any]:
    found: list[Any] = _expect(_take(table, names, where), list, where, f"{names[0]}: a list")
    return found


def _check_unique(refs: Sequence[ImageRef], where: Path) -> None:
    seen: set[str] = set()
    for ref in refs:
        if ref.id in seen:
            raise _refuse(where, "names an image twice", "each image_id once", repr(ref.id))
        seen.add(ref.id)
    if not refs:
        raise _refuse(where, "names no images", "at least one", "an empty list")


def _expect(value: Any, kind: type, where: Path, expected: str) -> Any:
    if not isinstance(value, kind):
        raise _refuse(where, "has another form", expected or kind.__name__, f"{type(value).__name__}: {value!r:.100}")
    return value


def _refuse(where: Path, problem: str, expected: str, actual: str) -> ManifestError:
    return ManifestError(f"{where} {problem}", expected=expected, actual=actual[:300], fix=FIX)
