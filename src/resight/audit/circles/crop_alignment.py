"""Two crops with a crater in the middle of each in, the similarity transform between them and the overlap of the two
circles out.

No coordinates: the crops are laid on each other. Only circles that nearly coincide matter here, so that the search
starts near the identity: the middle of one crop, at several sizes, is looked for in the other by correlation, and the
best place is refined (Evangelidis and Psarakis, PAMI 2008). Then the first crater's circle is mapped into the second
crop. Crops of one map, or of two lit from the same side, correlate; north is up in both.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.data.maps.crater_view import Circle

SIDE = 96  # pixels to which crops are reduced
PATCH = 0.6  # side of the middle part that is looked for, in sides of the crop
SCALES = (0.7, 0.78, 0.88, 1.0, 1.13, 1.28, 1.43)  # of that part
WIDE = SIDE / 8  # σ of the blur that takes the brightness of the ground away
LEAST_SCORE = 0.3  # correlation of that part below which the crops show other ground
ROUNDS, STEP = 60, 1e-4  # of the refinement
MOST_SHEAR = 1.15  # ratio of the two scales of a transform that still counts as a similarity
Grey = NDArray[np.float32]


@dataclass(frozen=True)
class Alignment:
    """Where the first crop's circle lies in the second, and how well the ground agrees."""

    iou: float  # of the mapped circle and the second one's
    offset: float  # of their centres, in diameters of the larger
    scale_ratio: float  # diameter of the second in that of the first
    agreement: float  # correlation of the overlapping ground, -1 to 1


def prepare_crop(pixels: NDArray[np.uint8]) -> Grey:
    """A crop [h, w, 3] as grey [SIDE, SIDE] without brightness and contrast of wide areas."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    flat = small - cv2.GaussianBlur(small, (0, 0), WIDE)
    return np.asarray(flat / (flat.std() + 1e-3), np.float32)


def align(one: Grey, two: Grey, view_one: float, view_two: float) -> Alignment | None:
    """`view_…`: sides of the crops in diameters of their craters. None if the crops cannot be laid on each other."""
    score, onto = _find_place(one, two)
    if score < LEAST_SCORE:
        return None
    try:
        _, onto = cv2.findTransformECC(
            two,
            one,
            np.linalg.inv(np.vstack([onto, [0, 0, 1]]))[:2].astype(np.float32),
            cv2.MOTION_AFFINE,
            (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, ROUNDS, STEP),
        )
    except cv2.error:  # it diverged
        return None
    back = np.vstack([onto, [0, 0, 1]])  # pixels of the second crop → of the first
    scales = np.linalg.svd(back[:2, :2], compute_uv=False)
    if scales[1] <= 0 or scales[0] > MOST_SHEAR * scales[1] or np.linalg.det(back) <= 0:
        return None
    middle = (SIDE - 1) / 2
    x, y, _ = np.linalg.inv(back) @ (middle, middle, 1.0)
    here = Circle(float(x), float(y), SIDE / (2 * view_one) / float(np.sqrt(scales[0] * scales[1])))
    there = Circle(middle, middle, SIDE / (2 * view_two))
    offset = float(np.hypot(here.x - there.x, here.y - there.y)) / (2 * max(here.radius, there.radius))
    return Alignment(here.iou(there), offset, there.radius / here.radius, _correlate(one, two, back))


def _find_place(one: Grey, two: Grey) -> tuple[float, NDArray[np.float64]]:
    """A correlation, and [2, 3]: pixels of the first crop → of the second, to about a pixel."""
    first = round(SIDE * (1 - PATCH) / 2)
    part = one[first : SIDE - first, first : SIDE - first]
    best, onto = -1.0, np.eye(2, 3)
    for scale in SCALES:
        side = round(part.shape[0] * scale)
        found = cv2.matchTemplate(two, cv2.resize(part, (side, side)), cv2.TM_CCOEFF_NORMED)
        _, score, _, (left, top) = cv2.minMaxLoc(found)
        if score > best:
            exact = side / part.shape[0]  # pixels are areas: their middles are at whole numbers
            shift = np.array([left, top]) + 0.5 * exact - 0.5 - exact * first
            best, onto = score, np.array([[exact, 0, shift[0]], [0, exact, shift[1]]])
    return best, onto


def _correlate(one: Grey, two: Grey, back: NDArray[np.float64]) -> float:
    options = {"flags": cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_CONSTANT}
    laid = cv2.warpAffine(one, back[:2], (SIDE, SIDE), **options)
    inside = cv2.warpAffine(np.ones_like(one), back[:2], (SIDE, SIDE), **options) > 0.99
    if inside.sum() < SIDE * SIDE / 4:
        return 0.0
    a, b = laid[inside] - laid[inside].mean(), two[inside] - two[inside].mean()
    return float((a @ b) / (np.sqrt((a @ a) * (b @ b)) + 1e-9))
