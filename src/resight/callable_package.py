"""Packages that can be called: `resight.evaluate(...)` is a function, and `resight.evaluate` the package that holds it.

A package's `__init__` calls `make_callable`; the function is imported when it is first called, so that importing the
package stays cheap.
"""

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_FUNCTIONS: dict[str, str] = {}  # package → the module of its function, which has the package's name


class CallablePackage(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        return _find(self)(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        """For help in editors and notebooks."""
        return inspect.signature(_find(self))


def make_callable(package: str, module: str) -> None:
    """Calling `package` calls the function of its name in `module`."""
    _FUNCTIONS[package] = module
    sys.modules[package].__class__ = CallablePackage


def _find(package: ModuleType) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(
        importlib.import_module(_FUNCTIONS[package.__name__]), package.__name__.rpartition(".")[2]
    )
    return function
