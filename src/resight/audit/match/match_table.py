"""The file of matches: Matched in, CSV out; a row per entry of A.

a, b                     ids of images; b is empty without a match, and so are all columns but label_a
probability              that both show the very same object
x0, y0, x1, y1           where it is in b
inliers                  key points that one geometric model explains
label_a, label_b         labels of the images; of craters the ids in their catalogues
offset_km                distance of the two positions, if both are known
diameter_ratio           of craters: diameter of b in that of a
runner_up                the next best of B, an image of it
runner_up_probability    its probability
margin                   probability less that of the runner-up
mutual                   yes, no: whether each is the other's best; empty if only one direction was searched
"""

from collections.abc import Sequence
from pathlib import Path

from resight.audit.match.find_matches import Matched
from resight.files.atomic import write_atomic
from resight.files.csv_cells import make_writer

COLUMNS = (
    *("a", "b", "probability", "x0", "y0", "x1", "y1", "inliers", "label_a", "label_b", "offset_km", "diameter_ratio"),
    *("runner_up", "runner_up_probability", "margin", "mutual"),
)
MUTUAL = {True: "yes", False: "no", None: ""}


def write_matches(matches: Sequence[Matched], path: Path) -> None:
    with write_atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = make_writer(file)
        table.writerow(COLUMNS)
        for one in matches:
            row = _format(one) if one.b else {"a": one.a, "label_a": one.label_a}
            table.writerow([row.get(name, "") for name in COLUMNS])


def _format(one: Matched) -> dict[str, object]:
    sides = dict(zip(("x0", "y0", "x1", "y1"), [f"{side:.1f}" for side in one.box or ()], strict=False))
    second = {
        "runner_up": one.runner_up,
        "runner_up_probability": f"{one.runner_up_probability:.6f}",
        "margin": f"{one.probability - one.runner_up_probability:.6f}",
    }
    return {
        "a": one.a,
        "b": one.b,
        "probability": f"{one.probability:.6f}",
        **sides,
        "inliers": one.inliers,
        "label_a": one.label_a,
        "label_b": one.label_b,
        "offset_km": "" if one.offset_km is None else f"{one.offset_km:.6g}",
        "diameter_ratio": "" if one.diameter_ratio is None else f"{one.diameter_ratio:.4f}",
        **(second if one.runner_up else {}),
        "mutual": MUTUAL[one.mutual],
    }
