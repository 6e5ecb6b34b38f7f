"""Signals → the probability that query and image show the very same instance.

Logistic: log-odds = bias + Σ_s weight_s · f(x_s). f is log(1 + x) for the signals in LOGARITHMIC, also
those of further key points (xfeat_inliers); log(1 + x −
UNREMARKABLE), and 0 below that, for the robust z-score of one of several branches; ± log(1 + |x|) for a lead, which may
be negative; x up to MOST_EXCESS for an excess; and x for similarities. A missing signal counts as 0: an image that was
not verified has no inliers. A calibration belongs to the signals that it was fitted on, e.g. ("asmk", "standout",
"inliers"); if it uses the similarity of a learnt encoder, it belongs to that encoding, too.
`benchmarks/fit_calibration.py` fitted the shipped ones on labelled pairs; `resight calibrate` fits one on a
collection's own pairs.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.durable import sync_file, sync_folder
from resight.search.shortlist import ShortlistSignals
from resight.types import Ranking

LOGARITHMIC = ("inliers", "significance", "standout")
# The best of thirty wrong candidates usually has a smaller robust z-score. Without this floor, a branch that sees
# nothing in the query (local features at night) would outvote the one that finds the answer.
UNREMARKABLE = 5.0
# Among blank candidates any image exceeds the median by far: beyond this, more says no more.
MOST_EXCESS = 0.2
WITHOUT, WITH_PRIOR = 1e-2, 0.5  # strength of the pull towards 0, and towards the prior
CHECK = "checksum"
SHIPPED = Path(__file__).with_name("calibration.json")
Signals = Mapping[str, float]
Number = TypeVar("Number", float, NDArray[np.float64])


@dataclass(frozen=True)
class Calibration:
    bias: float
    weights: Mapping[str, float]
    pairs: int = 0  # labelled pairs that it was fitted on
    same: int = 0  # of these, pairs of the same instance
    spaces: Mapping[str, str] = field(default_factory=dict)  # score → the encoding that it belongs to

    def log_odds(self, signals: Signals) -> float:
        values = ((weight, _shape(name, np.float64(signals.get(name, 0.0)))) for name, weight in self.weights.items())
        return float(self.bias + sum(weight * value for weight, value in values))

    def probability(self, log_odds: Number) -> Number:
        """Bounded by the number of pairs that it was fitted on (Laplace's rule): 98 right ones give .99 at most."""
        chance = 1 / (1 + np.exp(-np.clip(log_odds, -30.0, 30.0)))
        if self.pairs:
            chance = np.clip(chance, 1 / (self.pairs - self.same + 2), (self.same + 1) / (self.same + 2))
        return cast(Number, float(chance) if np.ndim(chance) == 0 else chance)


def apply(ranking: Ranking, calibration: Calibration | None) -> Ranking:
    """Probabilities for every image; the log-odds become the scores, and give the order."""
    if calibration is None:
        return ranking
    odds = _log_odds(calibration, ranking)
    order = np.argsort(-odds, kind="stable")
    ids = tuple(ranking.ids[row] for row in order.tolist())
    scores = odds[order]
    probabilities = dict(zip(ids, calibration.probability(scores.astype(np.float64)).tolist(), strict=True))
    return replace(ranking, ids=ids, scores=scores, probabilities=probabilities)


def _log_odds(calibration: Calibration, ranking: Ranking) -> NDArray[np.float32]:
    """`log_odds` of every image of a ranking; an evaluation ranks all images of a collection."""
    signals = ranking.signals
    odds = np.full(len(ranking.ids), calibration.bias, np.float64)
    for name, weight in calibration.weights.items():
        if isinstance(signals, ShortlistSignals):
            values = signals.read(name, ranking.ids)
        else:
            values = np.array([signals.get(id, {}).get(name, 0.0) for id in ranking.ids], np.float64)
        odds += weight * _shape(name, values)
    return odds.astype(np.float32)


def choose(
    names: Iterable[str], own: Path | None = None, scores: Mapping[str, str] | None = None
) -> Calibration | None:
    """The calibration for these signals: the collection's own, else the shipped one, else none.

    It must weigh every one of `names`. It may also weigh the branches' `scores`, given with their spaces; it need not,
    because a robust z-score means the same for every encoder, which the score itself does not.
    """
    spaces = scores or {}
    needed = frozenset(names)
    for path in (own, SHIPPED):
        if path is not None and path.is_file():
            fitting = [
                entry
                for entry in load(path)
                if needed <= entry.weights.keys() <= needed | spaces.keys()
                and all(spaces.get(name) == space for name, space in entry.spaces.items())
            ]
            if fitting:
                return max(fitting, key=lambda entry: len(entry.weights))
    return None


def fit(samples: Sequence[tuple[Signals, bool]], prior: Calibration | None = None) -> Calibration:
    """Newton's method on the regularised log-loss; targets are smoothed (Platt) so that no pair is ever certain.

    With a `prior`, few pairs move its weights a little and many replace them; without one, weights shrink to 0.
    """
    truths = np.array([same for _, same in samples], dtype=bool)
    same, other = int(truths.sum()), int((~truths).sum())
    if same < 5 or other < 5:
        raise InputError(
            "too few labelled pairs to calibrate on",
            expected="at least 5 of the same instance and 5 of different ones, among the candidates of the searches",
            actual=f"{same} and {other}",
            fix="give more pairs",
        )
    names = sorted({name for signals, _ in samples for name in signals})
    features = np.array(
        [[1.0, *(_shape(name, signals.get(name, 0.0)) for name in names)] for signals, _ in samples], dtype=np.float64
    )
    targets = np.where(truths, (same + 1) / (same + 2), 1 / (other + 2))
    centre = (
        np.array([prior.bias, *(prior.weights.get(name, 0.0) for name in names)]) if prior else np.zeros(len(names) + 1)
    )
    strength = WITH_PRIOR if prior else WITHOUT
    # Every signal is evidence for an image, and none against it: drop signals with a negative weight and fit again.
    used = np.ones(len(names) + 1, dtype=bool)
    weights = _newton(features, targets, centre, strength)
    while (weights[1:] < 0).any():
        used[1:] &= weights[1:] > 0
        weights = np.zeros(len(used))
        weights[used] = _newton(features[:, used], targets, centre[used], strength)
    return Calibration(float(weights[0]), dict(zip(names, weights[1:].tolist(), strict=True)), len(samples), same)


def load(path: Path) -> list[Calibration]:
    try:
        return [
            Calibration(
                float(_check(entry)["bias"]),
                {str(name): float(weight) for name, weight in entry["weights"].items()},
                int(entry["pairs"]),
                int(entry["same"]),
                {str(name): str(space) for name, space in entry.get("spaces", {}).items()},
            )
            for entry in load_json(path.read_text(encoding="utf-8"))
        ]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise InputError(f"{path} is not a calibration", actual=str(error), fix="remove it, or fit it again") from error


def _check(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """ValueError if the entry has changed since it was saved; older ones have no checksum."""
    content = {name: value for name, value in entry.items() if name != CHECK}
    if entry.get(CHECK, found := zlib.crc32(json.dumps(content).encode())) != found:
        raise ValueError("it has changed since it was written: its checksum is another one")
    return entry


def save(calibrations: Sequence[Calibration], path: Path) -> None:
    entries = [asdict(entry) for entry in calibrations]
    checked = [{**entry, CHECK: zlib.crc32(json.dumps(entry).encode())} for entry in entries]
    with write_atomic(path) as temporary:
        temporary.write_text(json.dumps(checked, indent=1) + "\n", encoding="utf-8")
        sync_file(temporary)
    sync_folder(path.parent)


def _shape(name: str, value: Number) -> Number:
    if name.endswith("_lead"):
        return cast(Number, np.sign(value) * np.log1p(np.abs(value)))
    if name.endswith("_standout"):
        return cast(Number, np.log1p(np.maximum(value - UNREMARKABLE, 0.0)))
    if name.endswith("_excess"):
        return cast(Number, np.clip(value, -MOST_EXCESS, MOST_EXCESS))
    return cast(Number, np.log1p(value)) if name.endswith(LOGARITHMIC) else value


def _newton(
    features: NDArray[np.float64], targets: NDArray[np.float64], centre: NDArray[np.float64], strength: float
) -> NDArray[np.float64]:
    """Weights that minimise the log-loss plus strength/2 · (distance from `centre`)²."""
    from resight.search.logistic import fit_logistic  # a search fits nothing

    scale = np.maximum(np.abs(features).max(axis=0), 1e-9)  # so that one strength suits every signal
    inputs, centre = features / scale, centre * scale
    penalty = np.full(inputs.shape[1], strength)
    penalty[0] = 1e-6  # the bias is free
    return np.asarray(fit_logistic(inputs, targets, centre, penalty) / scale)
