"""Descriptors: Features → rows that are stored and searched."""

from typing import Any, Protocol

from resight import plugins
from resight.types import Descriptors, Features, Role


class Descriptor(Protocol):
    fingerprint: str  # settings and learnt parts: whatever changes the rows changes it

    def describe(self, features: Features, role: Role) -> Descriptors:
        """The rows of a batch; `space` is filled in by the encoder."""
        ...


def build(name: str, **settings: Any) -> Descriptor:
    descriptor: Descriptor = plugins.load(__name__, name, settings)
    return descriptor
