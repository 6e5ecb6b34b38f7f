"""retrieval-SfM-120k (photos grouped by their 3D model) in, a Dataset out.

    root/retrieval-SfM-120k.pkl         for train and val: cids, cluster; qidxs and pidxs (pairs of rows of cids)
    root/ims/ef/cd/ab/…abcdef           an image by its cid: the folders are its last letters, in pairs from the end

Radenović et al., Fine-tuning CNN Image Retrieval with No Human Annotation, TPAMI 2018. A training set: the label of an
image is its cluster, a 3D model. The two parts number their clusters independently, so `all` puts the name of the part
before the number; the release has 551 clusters to train on and 162 to validate with, 713 in all. `val` also has
queries. The positives of a query are its pairs; other images of its cluster may or may not show the same object and are
ignored, as is the query itself. Only the pickle is read. `read_matching_pairs` gives the pairs of all parts, which
supervised whitening learns from.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from resight.data.sets import Published, find_root
from resight.data.unpickle import load, take_names, take_numbers
from resight.errors import ManifestError
from resight.types import Dataset, ImageRef, Judgement

FILE = "retrieval-SfM-120k.pkl"
IMAGES = {"train": 91_642, "val": 6_403}
CLUSTERS = {"train": 551, "val": 162}
Split = Literal["train", "val", "all"]
PARTS: dict[Split, tuple[str, ...]] = {"train": ("train",), "val": ("val",), "all": ("train", "val")}
SITE = "http://cmp.felk.cvut.cz/cnnimageretrieval/data/train"


@dataclass(frozen=True)
class Config:
    split: Split = "train"  # train: images with labels, no queries; val: also queries; all: both parts, no queries


def build(config: Config) -> "Sfm120kSource":
    return Sfm120kSource(config)


@dataclass(frozen=True)
class Sfm120kSource:
    config: Config

    @property
    def published(self) -> Published:
        parts = PARTS[self.config.split]
        return Published(
            counts={
                "database": sum(IMAGES[part] for part in parts),
                "labels": sum(CLUSTERS[part] for part in parts),
            },
            downloads=(
                f"{FILE} of {SITE}/dbs/, to ROOT/{FILE}",
                f"ims.tar.gz of {SITE}/ims/, unpacked to ROOT/ims/",
            ),
            licence="images of Flickr, under its terms; for research",
        )

    def load(self, root: Path) -> Dataset:
        root = find_root(root, "retrieval-SfM-120k", FILE)
        path, split = root / FILE, self.config.split
        truth = load(path)
        parts = {part: _read_part(_take_split(truth, part, path), path) for part in PARTS[split]}
        prefix = {part: f"{part}/" if len(parts) > 1 else "" for part in parts}
        database = tuple(
            ImageRef(cid, _find_image(cid, root, path), attributes={"label": f"{prefix[part]}{cluster}"})
            for part, (cids, clusters) in parts.items()
            for cid, cluster in zip(cids, clusters, strict=True)
        )
        different = len({ref.id for ref in database})
        if different < len(database):
            actual = f"{len(database):,} cids, {different:,} of them different"
            raise _refuse(path, "train and val share images", "each cid once", actual)
        rows, judgements = _judge(truth[split], *parts[split], path) if split == "val" else ([], {})
        return Dataset(f"sfm120k {split}", database, tuple(database[row] for row in rows), judgements)


def read_matching_pairs(root: Path, split: Split = "all") -> list[tuple[str, str]]:
    """The pairs of images with the same object, by cid."""
    root = find_root(root, "retrieval-SfM-120k", FILE)
    path = root / FILE
    truth = load(path)
    found: list[tuple[str, str]] = []
    for part in PARTS[split]:
        table = _take_split(truth, part, path)
        cids, _ = _read_part(table, path)
        found += [(cids[query], cids[positive]) for query, positive in _take_pairs(table, len(cids), path)]
    return found


def _read_part(table: Any, path: Path) -> tuple[list[str], list[int]]:
    """The cid and the cluster of every image."""
    cids = take_names(table, "cids", path)
    clusters = take_numbers(table, "cluster", path, below=2**31)
    if not cids or len(clusters) != len(cids) or len(set(cids)) != len(cids):
        actual = f"{len(cids):,} cids, {len(set(cids)):,} of them different, and {len(clusters):,} clusters"
        raise _refuse(path, "its lists do not match", "a cluster for each cid, and each cid once", actual)
    return cids, clusters


def _take_pairs(table: Any, images: int, path: Path) -> list[tuple[int, int]]:
    queries, positives = (take_numbers(table, key, path, below=images) for key in ("qidxs", "pidxs"))
    if len(queries) != len(positives):
        actual = f"{len(queries):,} and {len(positives):,}"
        raise _refuse(path, "'qidxs' and 'pidxs' are not pairs", "lists of the same length", actual)
    return list(zip(queries, positives, strict=True))


def _take_split(truth: Any, split: str, path: Path) -> Any:
    if not isinstance(truth, dict) or not isinstance(truth.get(split), dict):
        actual = ", ".join(map(str, truth)) if isinstance(truth, dict) else type(truth).__name__
        raise _refuse(path, f"it has no part {split!r}", "tables train and val", actual)
    return truth[split]


def _find_image(cid: str, root: Path, path: Path) -> Path:
    if len(cid) < 6 or not cid.isalnum():
        raise _refuse(path, "a cid is not the name of an image", "six letters or digits or more", repr(cid))
    return root / "ims" / cid[-2:] / cid[-4:-2] / cid[-6:-4] / cid


def _judge(table: Any, cids: list[str], clusters: list[int], path: Path) -> tuple[list[int], dict[str, Judgement]]:
    """The rows of the queries, each once, and their judgements."""
    members = defaultdict(set)
    for cid, cluster in zip(cids, clusters, strict=True):
        members[cluster].add(cid)
    pairs: dict[int, dict[str, int]] = defaultdict(dict)
    for query, positive in _take_pairs(table, len(cids), path):
        pairs[query][cids[positive]] = 1
    judgements = {
        cids[query]: Judgement(grades, frozenset(members[clusters[query]] - grades.keys()))
        for query, grades in pairs.items()
    }
    return list(pairs), judgements


def _refuse(path: Path, problem: str, expected: str, actual: str) -> ManifestError:
    fix = "`resight data check sfm120k ROOT` lists what to download and where to put it"
    return ManifestError(f"{path}: {problem}", expected=expected, actual=actual[:300], fix=fix)
