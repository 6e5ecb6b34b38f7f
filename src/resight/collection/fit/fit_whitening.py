"""A whitening learnt from the stored rows of a collection: from all of them (pca), or from pairs (lw).

In: a collection, and for lw pairs of the same instance, from labels or from a CSV file with the columns a and b (a
third column `same` may be 1 or 0; rows with 0 are left out). Out: a Whitening (encode/whitening.py). Memory holds the
images of at most MOST_PAIRS pairs and OTHERS other images; the rest is read a few images at a time.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from resight.collection import Collection
from resight.collection.add import Progress
from resight.data.truth_tables import read_table
from resight.encode.transforms.whiten import require_floats
from resight.encode.whitening import Whitening, learn_lw, learn_pca
from resight.errors import CollectionError, InputError, ManifestError, RecipeError
from resight.types import Branch, Descriptors, FloatArray

FIX = "name the columns in the first line: a, b (ids in the collection), and same (1 or 0) if you like"
MOST_OF_A_LABEL = 100  # so that one instance with very many images does not dominate
Pair = tuple[str, str]
Kind = Literal["pca", "lw"]
MOST_PAIRS = 10_000
OTHERS = 2_000  # images outside the pairs that a partner must be found among
PASSES = 2
POWERS: dict[Kind, float] = {"pca": 0.25, "lw": 0.5}


def learn_whitening(
    collection: Collection,
    kind: Kind | None = None,
    pairs: Path | None = None,
    *,
    dimensions: int | None = None,
    branch: int = 0,
    power: float | None = None,
    shrinkage: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Whitening:
    """`kind` None: lw with pairs (a file or labels) and one vector per image, else pca.

    `power` None: the best on real images, 0.25 for pca and 0.5 for lw. `shrinkage` None: chosen from the data, for lw
    on held-out pairs; 0: none, which for lw is the whitening of Radenović et al.
    """
    _check_branch(collection, branch)
    if len(collection) < 2:
        raise InputError(
            "too few images to learn from", expected="at least 2", actual=str(len(collection)), fix="index more images"
        )
    single = _has_single_rows(collection, branch)
    generator = np.random.default_rng(seed)
    found = _find_pairs(collection, kind, pairs, generator) if kind != "pca" or pairs else []
    kind = kind or ("lw" if pairs or (found and single) else "pca")
    power = POWERS[kind] if power is None else power
    done = 0

    def read_all() -> Iterator[FloatArray]:
        nonlocal done
        for rows in collection.descriptors(branch):
            yield _clean(rows)[1]
            done += len(rows.ids)
            if progress:
                progress(done, PASSES * len(collection))

    images, space = len(collection), collection.metadata.spaces[branch]
    if kind == "pca":
        return learn_pca(read_all, dimensions=dimensions, power=power, shrinkage=shrinkage, images=images, space=space)
    if not single:
        raise RecipeError(
            "lw needs one vector per image, and images of this branch have several",
            expected="a branch with one vector per image, such as the descriptor pooled",
            actual=collection.recipe.branches[branch].descriptor.name,
            fix="choose another --branch, or use --kind pca",
        )
    gallery, numbers = _gather(collection, branch, found, generator)
    return learn_lw(
        read_all,
        gallery,
        numbers,
        generator,
        dimensions=dimensions,
        power=power,
        shrinkage=shrinkage,
        images=images,
        space=space,
    )


def format_setting(branch: Branch, number: int, file: Path) -> str:
    """The value of `--set` that whitens a collection by a file, after the branch's other transforms."""
    chain = [{"name": choice.name, **choice.settings} for choice in branch.transforms]
    tables = [
        "{"
        + ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in table.items())
        + "}"
        for table in [*chain, {"name": "whiten", "file": str(file)}]
    ]
    return f"branches.{number}.transforms=[{', '.join(tables)}]"


def _check_branch(collection: Collection, branch: int) -> None:
    branches = collection.recipe.branches
    if branch not in range(len(branches)):
        raise CollectionError(f"no branch {branch}", expected=f"0 to {len(branches) - 1}", actual=str(branch))
    if any(choice.name == "whiten" for choice in branches[branch].transforms):
        raise RecipeError(
            f"branch {branch} of {collection.path} is whitened already",
            expected="a collection of vectors as the descriptor makes them",
            actual=collection.metadata.spaces[branch],
            fix="learn from a collection that was indexed without the transform whiten",
        )


def _has_single_rows(collection: Collection, branch: int) -> bool:
    """Whether images have at most one row; judged by the first ones stored."""
    for rows in collection.descriptors(branch):
        require_floats(rows)
        if len(rows):
            return int(np.bincount(rows.owners).max()) == 1
    return False


def _find_pairs(
    collection: Collection, kind: Kind | None, file: Path | None, generator: np.random.Generator
) -> list[Pair]:
    if kind == "pca":
        raise InputError(
            "pca takes no pairs", expected="--kind lw with --pairs", actual="--kind pca", fix="leave one of them out"
        )
    labels = {record.id: record.attributes.get("label") for record in collection.records()}
    pairs = read_pairs(file, frozenset(labels)) if file else pair_by_labels(labels, generator)
    if not pairs and (file or kind == "lw"):
        raise InputError(
            "there are no pairs to learn from",
            expected="images with the same label, or --pairs FILE with the columns a, b",
            actual=f"no pair in {file}" if file else f"{len(labels)} images, no two with the same label",
            fix="give --pairs, index a manifest with the column label, or use --kind pca",
        )
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[number] for number in np.sort(generator.permutation(len(pairs))[:MOST_PAIRS])]
    return pairs


def _gather(
    collection: Collection, branch: int, pairs: Sequence[Pair], generator: np.random.Generator
) -> tuple[FloatArray, np.ndarray]:
    """The vectors of the images in pairs and of some others, and the pairs as row numbers [p, 2]."""
    paired = sorted({name for pair in pairs for name in pair})
    others = sorted({record.id for record in collection.records()} - set(paired))
    wanted = paired + [others[number] for number in generator.permutation(len(others))[:OTHERS]]
    rows: dict[str, int] = {}
    parts: list[FloatArray] = []
    for batch in collection.descriptors(branch, wanted):
        names, vectors = _clean(batch)
        rows.update(zip(names, range(len(rows), len(rows) + len(names)), strict=True))
        parts.append(vectors)
    usable = [(rows[a], rows[b]) for a, b in pairs if a in rows and b in rows]
    if not usable:
        raise InputError(
            "no pair has a vector for both of its images",
            expected="images that show something",
            actual=f"{len(pairs)} pairs, all with an image without features",
        )
    return np.concatenate(parts), np.array(usable, np.int64)


def _clean(rows: Descriptors) -> tuple[list[str], FloatArray]:
    """The rows that are not zero, and the ids of their images: a zero row stands for an image without features."""
    finite = np.isfinite(rows.vectors).all(axis=1)
    if not finite.all():
        broken = dict.fromkeys(rows.ids[owner] for owner in rows.owners[~finite])
        raise InputError(
            "the collection holds vectors that are not finite",
            expected="finite vectors",
            actual=f"NaN or infinity in {', '.join(list(broken)[:3])}{' …' if len(broken) > 3 else ''}",
            fix="delete these images (`resight delete`) and index them again",
        )
    kept = rows.vectors.any(axis=1)
    return [rows.ids[owner] for owner in rows.owners[kept]], np.asarray(rows.vectors[kept], np.float32)


def pair_by_labels(labels: Mapping[str, object], generator: np.random.Generator) -> list[Pair]:
    """Images with the same label (None: without one); where a label has many, MOST_OF_A_LABEL pairs drawn at random."""
    members: dict[object, list[str]] = {}
    for name in sorted(labels):
        if labels[name] is not None:
            members.setdefault(labels[name], []).append(name)
    pairs: list[Pair] = []
    for images in members.values():
        total = len(images) * (len(images) - 1) // 2
        numbers = np.arange(total)
        if total > MOST_OF_A_LABEL:
            numbers = np.sort(generator.choice(total, MOST_OF_A_LABEL, replace=False))
        pairs += [(images[first], images[second]) for first, second in map(_unrank, numbers.tolist())]
    return pairs


def read_pairs(path: Path, known: frozenset[str]) -> list[Pair]:
    """The pairs of a file; every id has to be in `known`."""
    pairs: dict[Pair, None] = {}
    missing: dict[str, None] = {}
    for line, row in read_table(path, ("a", "b"), FIX):
        a, b = row["a"], row["b"]
        if is_same(row.get("same", "1"), path, line):
            missing.update({name: None for name in (a, b) if name not in known})
            pairs[(a, b) if a < b else (b, a)] = None
    if missing:
        raise ManifestError(
            f"{path} names {len(missing)} images that are not in the collection",
            expected=f"ids as `resight search` shows them, such as {', '.join(map(repr, sorted(known)[:2]))}",
            actual=", ".join(map(repr, list(missing)[:3])) + (", …" if len(missing) > 3 else ""),
            fix="correct the ids, or index the images",
        )
    return [pair for pair in pairs if pair[0] != pair[1]]


def is_same(text: str, path: Path, line: int) -> bool:
    if text not in ("0", "1"):
        raise ManifestError(f"{path}, line {line}: same is neither 0 nor 1", expected="0 or 1", actual=text)
    return text == "1"


def _unrank(number: int) -> tuple[int, int]:
    """0, 1, 2, 3, … → (0, 1), (0, 2), (1, 2), (0, 3), …"""
    second = int((1 + (1 + 8 * number) ** 0.5) / 2)
    second -= second * (second - 1) // 2 > number  # rounding of the root
    return number - second * (second - 1) // 2, second
