"""What was found about a pair → its probability and kind.

The probability that both show the very same thing is logistic in the logarithm of the inliers and in the agreement of
the pictures laid on each other, or in that agreement alone where no key points agree; `benchmarks/fit_pairs.py` fitted
it on photographs of two Python packages, changed in known ways. A near copy is the same picture: only shifted, turned,
scaled or cut (no perspective), one of the two nearly covered by the other, and most windows in agreement. Everything
else is the same thing in another picture.
"""

from functools import cache
from pathlib import Path

from resight.audit.pairs import Kind
from resight.audit.verification import Finding
from resight.search.calibration import Calibration, Signals, load

FITTED = Path(__file__).with_name("calibration.json")
LEAST_AGREEMENT = 0.5
LEAST_SHARE = 0.8
MOST_PERSPECTIVE = 1.1


def judge(finding: Finding) -> float:
    signals = list_signals(finding)
    fitted = next(one for one in open_calibrations() if one.weights.keys() == signals.keys())
    return fitted.probability(fitted.log_odds(signals))


def tell_kind(finding: Finding) -> Kind:
    laid = finding.registration
    covered = max(laid.share_a, laid.share_b) >= LEAST_SHARE and finding.perspective <= MOST_PERSPECTIVE
    return "near_copy" if covered and laid.agreement >= LEAST_AGREEMENT else "same"


def list_signals(finding: Finding) -> Signals:
    agreement = {"agreement": finding.registration.agreement}
    return {"inliers": float(finding.inliers), **agreement} if finding.inliers else agreement


@cache
def open_calibrations() -> tuple[Calibration, ...]:
    """Those that come with the package: for pairs with key points in agreement, and for pairs without."""
    return tuple(load(FITTED))
