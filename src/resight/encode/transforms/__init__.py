"""Transforms: Descriptors → Descriptors, after the descriptor and before the store."""

from typing import Any, Protocol

from resight import plugins
from resight.types import Descriptors, Role


class Transform(Protocol):
    fingerprint: str

    def apply(self, descriptors: Descriptors, role: Role) -> Descriptors: ...


def build(name: str, **settings: Any) -> Transform:
    transform: Transform = plugins.load(__name__, name, settings)
    return transform
