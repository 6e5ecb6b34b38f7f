"""Crops of craters for a benchmark: a map and a catalogue in, PNG files and their ImageRefs out.

A crop has the attributes of every crop of a crater (resight.data.maps.crater_view). Files that are there already are
taken as they are, so that a benchmark that was stopped continues.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.data.image_cache import encode_png
from resight.data.maps.crater_catalogue import Crater
from resight.data.maps.map_image import Frame, MapImage
from resight.types import ImageRef

MOON_KM = 1737.4
PIXELS = 256
Cut = Callable[[Frame, int], NDArray[Any]]


def cut_crops(
    draw: Cut, craters: Iterable[Crater], folder: Path, view: float = 3.0, pixels: int = PIXELS
) -> list[ImageRef]:
    """One crop per crater, `view` diameters wide; the ids are those of the craters. `draw` is `cut` with its map."""
    folder.mkdir(parents=True, exist_ok=True)
    refs = []
    for crater in craters:
        path = folder / f"{crater.id}.png"
        if not path.is_file():
            path.write_bytes(encode_png(draw(crater.frame(view, 1000 * MOON_KM), pixels)))
        refs.append(refer(crater, path, view))
    return refs


def refer(crater: Crater, path: Path, view: float) -> ImageRef:
    place = {"crater_lat": crater.lat, "crater_lon": crater.lon, "diameter_km": crater.diameter}
    return ImageRef(
        crater.id, path, attributes={"label": crater.id, "view": f"{view:g}x", "radius_km": MOON_KM, **place}
    )


def fits(image: MapImage, crater: Crater, view: float) -> bool:
    return image.grid.holds(crater.frame(view, image.grid.radius))


def jitter(
    craters: Sequence[Crater], generator: np.random.Generator, centre: float, size: float, suffix: str = "_again"
) -> list[Crater]:
    """The same craters as another person may list them.

    Each centre is moved by a normal error of `centre` diameters to the east and to the north, and each diameter
    multiplied by the exponential of a normal error of `size`.
    """
    return [_jitter(crater, generator, centre, size, suffix) for crater in craters]


def _jitter(crater: Crater, generator: np.random.Generator, centre: float, size: float, suffix: str) -> Crater:
    east, north = generator.normal(0, centre, 2)
    frame = crater.frame(1.0, MOON_KM * 1000, float(east), float(north))
    lon = (frame.lon + 180) % 360 - 180
    diameter = crater.diameter * float(np.exp(generator.normal(0, size)))
    return Crater(f"{crater.id}{suffix}", frame.lat, lon, diameter)
