"""Whitening: v → L2((v - mean) @ projection), learnt from a collection's own images.

    pca   C = covariance of all vectors, shrunk, = V Λ Vᵀ;  projection = V Λ^(-power), largest eigenvalue first.
          Power 0.5 gives every direction the same variance; 0 only turns and cuts (Jégou and Chum, ECCV 2012).
    lw    S = covariance of the differences of matching pairs, shrunk;  P = S^(-power);  R = eigenvectors of P C P,
          largest eigenvalue first;  projection = P R. Differences between views of one instance count less
          (Mikolajczyk and Matas, ICCV 2007; Radenović et al., TPAMI 2019).

Shrinkage (`shrinkage.py`) replaces an eigenvalue λ by (1 - ρ) λ + ρ mean(λ). At ρ = 1 all are equal, and the order
is that of the cosine of centred vectors. For lw, cross-validation over pairs chooses ρ; where no whitening is
significantly better, mean = 0 and P = I, and cosines stay as they are. At ρ = 0 lw is plain, as Radenović et al.
published it and as CiDeR uses it. Their code centres by the mean of the first images of the pairs, their text and this
module by the mean of all vectors.

A file holds mean [D], projection [D, d] and facts (JSON) about its origin. `resight whiten` makes one.
"""

import io
import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from resight.encode.shrinkage import Blocks, Matrix, Verdict, choose_shrinkage, measure, measure_pairs, shrink
from resight.errors import InputError, RecipeError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint
from resight.types import FloatArray, IntArray
from resight.vectors import l2_normalise


@dataclass(frozen=True)
class Facts:
    """The data that a whitening was learnt from, and how."""

    kind: str  # pca | lw
    images: int
    rows: int  # vectors: as many as images, or more where an image has several
    pairs: int  # 0 for pca
    shrinkage: float | None  # None: held-out pairs rank best without whitening
    power: float
    dimensions: int  # of the output
    variance: float  # share that they keep
    space: str = ""  # of the rows that it was learnt from
    found_before: float | None = None  # held-out pairs: mean of 1 / rank of the partner, unwhitened
    found_after: float | None = None


@dataclass(frozen=True)
class Whitening:
    mean: FloatArray  # [D]
    projection: FloatArray  # [D, d]
    facts: Facts
    fingerprint: str

    def apply(self, vectors: FloatArray) -> FloatArray:
        """Rows [n, D] → [n, d] of unit length; a row of zeros stays one, similar to nothing."""
        if vectors.shape[1] != len(self.mean):
            raise RecipeError(
                "the whitening does not fit the descriptor",
                expected=f"vectors of {len(self.mean)} dimensions, as in training",
                actual=f"{vectors.shape[1]} dimensions",
                fix="learn one from a collection with this encoder and descriptor: `resight whiten COLLECTION --out …`",
            )
        turned = (np.asarray(vectors, np.float32) - self.mean) @ self.projection
        return l2_normalise(np.where(vectors.any(axis=1, keepdims=True), turned, 0))


def learn_pca(
    blocks: Blocks,
    *,
    dimensions: int | None = None,
    power: float = 0.5,
    shrinkage: float | None = None,
    images: int | None = None,
    space: str = "",
) -> Whitening:
    """Learn from all vectors, without pairs. `shrinkage` None: estimated from them."""
    _check(power, shrinkage)
    moments = measure(blocks)
    dimensions = _check_sizes(moments.rows, len(moments.mean), dimensions)
    intensity = moments.shrinkage if shrinkage is None else shrinkage
    eigenvalues, vectors = _decompose(moments.covariance)
    if eigenvalues[0] <= 1e-12 * max(float(moments.mean @ moments.mean), 1e-12):
        raise InputError(
            "all vectors are the same", expected="vectors that differ", fix="learn from images of different instances"
        )
    projection = vectors * shrink(eigenvalues, intensity) ** -power
    kept = float(eigenvalues[:dimensions].sum() / eigenvalues.sum())
    facts = Facts("pca", images or moments.rows, moments.rows, 0, intensity, power, dimensions, kept, space)
    return make(moments.mean, projection[:, :dimensions], facts)


def learn_lw(
    blocks: Blocks,
    gallery: FloatArray,
    pairs: IntArray,
    generator: np.random.Generator,
    *,
    dimensions: int | None = None,
    power: float = 0.5,
    shrinkage: float | None = None,
    images: int | None = None,
    space: str = "",
) -> Whitening:
    """Learn from pairs [p, 2] of rows of the gallery [m, D]; its other rows are distractors in cross-validation.

    `blocks` gives all vectors, for the mean and the rotation. `shrinkage` None: chosen on held-out pairs; 0: none, as
    published.
    """
    _check(power, shrinkage)
    if len(pairs) == 0:
        raise InputError("no pairs to learn from", expected="at least one pair of images of the same instance")
    moments = measure(blocks)
    dimensions = _check_sizes(moments.rows, len(moments.mean), dimensions)
    verdict = Verdict(shrinkage)
    if shrinkage is None:
        verdict = choose_shrinkage(gallery, pairs, moments.mean, power, generator)
    if verdict.shrinkage is None:
        mean, covariance = np.zeros_like(moments.mean), moments.covariance + np.outer(moments.mean, moments.mean)
        equaliser = np.eye(len(mean))
    else:
        mean, covariance = moments.mean, moments.covariance
        eigenvalues, vectors = np.linalg.eigh(measure_pairs(gallery, pairs)[0])
        equaliser = (vectors * shrink(eigenvalues, verdict.shrinkage) ** -power) @ vectors.T
    spread, rotation = _decompose(equaliser @ covariance @ equaliser)
    kept = float(spread[:dimensions].sum() / max(spread.sum(), 1e-300))
    facts = Facts(
        "lw",
        images or moments.rows,
        moments.rows,
        len(pairs),
        verdict.shrinkage,
        power,
        dimensions,
        kept,
        space,
        verdict.before,
        verdict.after,
    )
    return make(mean, equaliser @ rotation[:, :dimensions], facts)


def load(path: Path) -> Whitening:
    try:
        # From memory: numpy leaves the file open where the archive is damaged.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            mean, projection = (archive[name].astype(np.float32) for name in ("mean", "projection"))
            return make(mean, projection, Facts(**load_json(str(archive["facts"]))))
    except (OSError, KeyError, ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise RecipeError(
            f"{path} is not a whitening",
            expected="an .npz file with the arrays mean [D], projection [D, d] and facts",
            actual=str(error),
            fix="make one with `resight whiten COLLECTION --out FILE.npz`",
        ) from error


def save(whitening: Whitening, path: Path) -> None:
    facts = np.array(json.dumps(asdict(whitening.facts)))
    with write_atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, mean=whitening.mean, projection=whitening.projection, facts=facts)


def make(mean: Matrix | FloatArray, projection: Matrix | FloatArray, facts: Facts) -> Whitening:
    mean, projection = np.asarray(mean, np.float32), np.asarray(projection, np.float32)
    fits = mean.ndim == 1 and projection.ndim == 2 and 0 < projection.shape[1] <= len(projection) == len(mean)
    if not fits or not (np.isfinite(mean).all() and np.isfinite(projection).all()):
        raise RecipeError(
            "not a whitening",
            expected="finite arrays, mean [D] and projection [D, d] with d of 1 to D",
            actual=f"arrays of shapes {mean.shape} and {projection.shape}",
            fix="make one with `resight whiten COLLECTION --out FILE.npz`",
        )
    content = mean.tobytes() + projection.tobytes() + str(projection.shape).encode()
    return Whitening(mean, np.ascontiguousarray(projection), facts, fingerprint(content, 12))


def _decompose(covariance: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues, largest first, and eigenvectors as columns, each with its largest entry above 0."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    vectors = vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(vectors))])
    return np.maximum(eigenvalues[::-1], 0), vectors * signs


def _check(power: float, shrinkage: float | None) -> None:
    if not 0 <= power <= 1 or (shrinkage is not None and not 0 <= shrinkage <= 1):
        raise InputError(
            "power or shrinkage is out of range", expected="0 to 1", actual=f"power {power}, shrinkage {shrinkage}"
        )


def _check_sizes(rows: int, width: int, dimensions: int | None) -> int:
    """The dimensions of the output."""
    if rows < 2:
        raise InputError(
            "too few vectors to learn from", expected="at least 2", actual=str(rows), fix="index more images"
        )
    wanted = width if dimensions is None else dimensions
    if not 1 <= wanted <= width:
        raise InputError(
            f"cannot make vectors of {wanted} dimensions", expected=f"1 to {width}, as they have", actual=str(wanted)
        )
    return wanted
