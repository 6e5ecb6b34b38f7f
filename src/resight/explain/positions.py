"""How positions on the Earth, and the distances between them, are written for a reader."""

from resight.geodesy import Position, metres_between


def measure(first: Position, second: Position) -> float:
    """Metres between two positions."""
    return float(metres_between(*first, [second[0]], [second[1]])[0])


def say_metres(metres: float) -> str:
    """24.6 m, 40 m, 1.5 km, 120 km: as exact as a reader wants it."""
    if round(metres) < 1000:
        digits = 0 if metres >= 30 or metres == round(metres) else 1
        return f"{metres:.{digits}f}\u00a0m"
    thousands = metres / 1000
    digits = 0 if thousands >= 99.95 or round(thousands, 1) == round(thousands) else 1
    return f"{thousands:,.{digits}f}\u00a0km"


def say_position(position: Position) -> str:
    """52.50989° N, 13.28172° E: about a metre."""
    lat, lon = position
    return f"{abs(lat):.5f}° {'S' if lat < 0 else 'N'}, {abs(lon):.5f}° {'W' if lon < 0 else 'E'}"
