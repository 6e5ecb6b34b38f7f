"""Restricted unpickling: a pickle in, its value out; the pickle can use only the names in a table.

A pickle is a program: it may name any function of any package and call it. `load_restricted` looks each name up in
`names`, which maps "module.name" to a stand-in, and refuses every other name before anything is imported or called.
"""

import pickle
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO


class ForbiddenName(pickle.UnpicklingError):
    """A pickle names something that it may not use."""


def load_restricted(
    stream: BinaryIO,
    names: Mapping[str, Any],
    persistent: Callable[[Any], Any] | None = None,
    encoding: str = "ASCII",
) -> Any:
    """The next pickle of a stream; `persistent` resolves its persistent ids, which are refused without it."""
    return _Restricted(stream, names, persistent, encoding).load()


class Record:
    """Stands in for any class: an object that holds its pickled state and does nothing."""

    def __init__(self) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Restricted(pickle.Unpickler):
    def __init__(
        self, stream: BinaryIO, names: Mapping[str, Any], persistent: Callable[[Any], Any] | None, encoding: str
    ) -> None:
        super().__init__(stream, encoding=encoding)
        self._names = names
        self._persistent = persistent

    def find_class(self, module: str, name: str) -> Any:
        # numpy 2 writes _core where numpy 1 wrote core, and Python 2 called builtins __builtin__.
        known = f"{module.replace('._core', '.core').replace('__builtin__', 'builtins')}.{name}"
        if known not in self._names:
            raise ForbiddenName(f"it names {module}.{name}")
        found = self._names[known]
        if found is Record:
            return type("Record", (Record,), {})  # its own, for the same reason
        # A pickle may set attributes of a function, so it gets one of its own.
        return (lambda *values: found(*values)) if callable(found) else found

    def persistent_load(self, identity: Any) -> Any:
        if self._persistent is None:
            raise pickle.UnpicklingError("it refers to something outside the file")
        return self._persistent(identity)
