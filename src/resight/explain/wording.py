"""Numbers as a reader wants to see them: values in, short texts out."""

from resight.types import Attribute, Box

LIKELY = 0.5
NOTHING = "–"
ORIGINS = {
    "homography": "the outline of the query, through a verified homography",
    "points": "verified points: the box is around them",
    "tokens": "the heat map of matched tokens",
    "region": "the region that matched best",
}
VERDICTS = ((0.9, "very likely"), (LIKELY, "likely"), (0.1, "unlikely"))


def is_likely(probability: float | None) -> bool:
    """An answer without a calibrated probability is not called unlikely either."""
    return probability is None or probability >= LIKELY


def say_chance(probability: float | None) -> str:
    """A percentage that never claims certainty."""
    if probability is None:
        return NOTHING
    if probability >= 0.995:
        return ">99%"
    return "<1%" if probability < 0.005 else f"{probability * 100:.0f}%"


def say_verdict(probability: float | None) -> str:
    if probability is None:
        return "not calibrated"
    return next((word for least, word in VERDICTS if probability >= least), "very unlikely")


def say_score(score: float | None) -> str:
    """Similarities near 1 need their decimals; counts of inliers need none."""
    if score is None:
        return NOTHING
    decimals = 3 if abs(score) < 10 else 0 if abs(score) >= 100 or score == round(score) else 1
    return f"{score:.{decimals}f}"


def say_time(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def say_box(box: Box) -> str:
    x0, y0, x1, y1 = (round(value) for value in box)
    return f"x {x0}–{x1}, y {y0}–{y1} ({x1 - x0}\u00a0×\u00a0{y1 - y0}\u00a0px)"


def say_origin(located_by: str) -> str:
    """What a box comes from; empty where nothing is known of it."""
    return ORIGINS.get(located_by, located_by)


def say_value(value: Attribute) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.8g}" if isinstance(value, float) else str(value)
