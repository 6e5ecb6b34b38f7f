"""Values as short texts for a reader: scores, times, boxes, positions and distances."""

from resight.geodesy import Position, metres_between
from resight.probability_words import NOTHING
from resight.types import Attribute, Box

ORIGINS = {
    "homography": "the query's outline, confirmed by matching points",
    "similarity": "the query's outline, confirmed by matching points",
    "points": "a box around the matching points",
    "tokens": "the heat map of matching tokens",
    "region": "the best matching region",
}


def format_score(score: float | None) -> str:
    """Similarities near 1 need their decimals; counts of inliers need none."""
    if score is None:
        return NOTHING
    decimals = 3 if abs(score) < 10 else 0 if abs(score) >= 100 or score == round(score) else 1
    return f"{score:.{decimals}f}"


def format_time(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def format_box(box: Box) -> str:
    x0, y0, x1, y1 = (round(value) for value in box)
    return f"x {x0}–{x1}, y {y0}–{y1} ({x1 - x0}\u00a0×\u00a0{y1 - y0}\u00a0px)"


def format_origin(located_by: str) -> str:
    """How the box was found; empty if unknown."""
    return ORIGINS.get(located_by, located_by)


def format_value(value: Attribute) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def measure_distance(first: Position, second: Position) -> float:
    """Metres between two positions."""
    return float(metres_between(*first, [second[0]], [second[1]])[0])


def format_metres(metres: float) -> str:
    """24.6 m, 40 m, 1.5 km, 120 km: two or three digits."""
    if round(metres) < 1000:
        digits = 0 if metres >= 30 or metres == round(metres) else 1
        return f"{metres:.{digits}f}\u00a0m"
    thousands = metres / 1000
    digits = 0 if thousands >= 99.95 or round(thousands, 1) == round(thousands) else 1
    return f"{thousands:,.{digits}f}\u00a0km"


def format_position(position: Position) -> str:
    """52.50989° N, 13.28172° E, which is exact to about a metre."""
    lat, lon = position
    return f"{abs(lat):.5f}° {'S' if lat < 0 else 'N'}, {abs(lon):.5f}° {'W' if lon < 0 else 'E'}"
