"""A batch of Features, taken apart."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from resight.types import Features

BY_IMAGE = [field.name for field in fields(Features) if field.name != "grid"]


def split(batches: Iterable[Features]) -> Iterator[Features]:
    """Each image's own Features, in order; the arrays are views."""
    for batch in batches:
        for row in range(len(batch.ids)):
            parts = {name: getattr(batch, name) for name in BY_IMAGE}
            own: dict[str, Any] = {name: None if part is None else part[row : row + 1] for name, part in parts.items()}
            yield replace(batch, **own)
