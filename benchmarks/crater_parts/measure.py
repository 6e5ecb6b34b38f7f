"""Every image of one collection asked of another: ranks, probabilities and figures with intervals out.

R@1 counts queries whose first answer is the same crater. Recall at precision .99 is the share of queries whose first
answer is right and at least as probable as a threshold, the lowest at which .99 of the answers above it are right. ECE
is the expected calibration error of the first answers, in fifteen bins of equal counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.collection import Collection
from resight.search.request import SearchRequest, StoredImage
from resight.types import ImageRef

PRECISION, BINS, DRAWS = 0.99, 15, 1000


@dataclass(frozen=True)
class Asked:
    """The answer to one query."""

    label: str
    found: str  # label of the first answer
    probability: float
    known: bool  # whether the collection holds its crater
    signals: tuple[Mapping[str, float], ...] = ()  # of the first answers
    labels: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        return self.label == self.found


def ask_all(queries: Collection, database: Collection, k: int = 5) -> Iterator[Asked]:
    """Ask every stored image of `queries`, as `resight match` does."""
    source, target = queries.view(), database.view()
    held = {str(record.attributes["label"]) for record in target.records()}
    for record in source.records():
        query = source.encode_query(SearchRequest(StoredImage(record.id)))
        answer = target.ask(SearchRequest(query, k))
        hits = answer.hits
        labels = tuple(str(hit.attributes["label"]) for hit in hits)
        label = str(record.attributes["label"])
        yield Asked(
            label,
            labels[0] if labels else "",
            (hits[0].probability or 0.0) if hits else 0.0,
            label in held,
            tuple(hit.stages for hit in hits),
            labels,
            sum(answer.ranking.seconds.values()),
        )


def recall_at_precision(right: NDArray[np.bool_], sure: NDArray[np.float64], known: NDArray[np.bool_]) -> float:
    """Ties of `sure` stand or fall together."""
    order = np.argsort(-sure, kind="stable")
    hits = np.cumsum(right[order])
    last = np.flatnonzero(np.diff(sure[order], append=-np.inf))
    good = [row for row in last if hits[row] >= PRECISION * (row + 1)]
    return float(hits[good[-1]] / max(known.sum(), 1)) if good else 0.0


def expected_calibration_error(right: NDArray[np.bool_], sure: NDArray[np.float64]) -> float:
    order = np.argsort(sure, kind="stable")
    parts = np.array_split(order, BINS)
    return float(
        sum(abs(sure[part].mean() - right[part].mean()) * len(part) for part in parts if len(part)) / len(sure)
    )


def summarise(asked: Sequence[Asked], seed: int = 0) -> dict[str, tuple[float, float, float]]:
    """Figure → value and the bounds of its 95 % bootstrap interval over queries."""
    right = np.array([one.right for one in asked])
    sure = np.array([one.probability for one in asked], np.float64)
    known = np.array([one.known for one in asked])
    figures: dict[str, Callable[[NDArray[np.int64]], float]] = {
        "R@1": lambda rows: float(right[rows][known[rows]].mean()) if known[rows].any() else 0.0,
        "recall": lambda rows: recall_at_precision(right[rows], sure[rows], known[rows]),
        "ECE": lambda rows: expected_calibration_error(right[rows], sure[rows]),
    }
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(asked), (DRAWS, len(asked)))
    every = np.arange(len(asked))
    found = {}
    for name, figure in figures.items():
        low, high = np.percentile([figure(rows) for rows in draws], (2.5, 97.5))
        found[name] = (figure(every), float(low), float(high))
    return found


def format_figures(asked: Sequence[Asked]) -> str:
    cells = [f"{name} {value:.3f} ({low:.3f} to {high:.3f})" for name, (value, low, high) in summarise(asked).items()]
    return ", ".join([*cells, f"{1000 * np.mean([one.seconds for one in asked]):.0f} ms per query"])


def drop_some(refs: Sequence[ImageRef], share: float, seed: int = 0) -> list[ImageRef]:
    """Without that share of them, drawn at random: their craters are then absent."""
    kept = np.random.default_rng(seed).permutation(len(refs))[round(share * len(refs)) :]
    return [refs[row] for row in sorted(kept)]
