"""Transforms: Descriptors → Descriptors, after the descriptor and before the store.

A transform may also have `scales(role)`: the sizes of the network's input, relative to the usual one, at which the
encoder describes a picture. It then gets the rows of all of them, as rows of one image, and must come first.
It may have `space`: the only space whose rows it accepts, because it was learnt there.
"""

from typing import Any, Protocol

from resight import plugins
from resight.types import Descriptors, Role


class Transform(Protocol):
    fingerprint: str

    def apply(self, descriptors: Descriptors, role: Role) -> Descriptors: ...


def build(name: str, **settings: Any) -> Transform:
    transform: Transform = plugins.load(__name__, name, settings)
    return transform
