"""Descriptors: Features → rows to store and to search."""

from typing import Any, Protocol

from resight import plugins
from resight.types import Descriptors, Features, Role


class Descriptor(Protocol):
    fingerprint: str  # of the settings and learnt parts that change the rows

    def describe(self, features: Features, role: Role) -> Descriptors:
        """The rows of a batch; the encoder fills in `space`."""
        ...


def build(name: str, **settings: Any) -> Descriptor:
    descriptor: Descriptor = plugins.load(__name__, name, settings)
    return descriptor
