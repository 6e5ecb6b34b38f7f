"""All plug-ins with their origin, as `resight plugins` lists them: ours, and those of installed packages.

Ours are read, not imported: some need packages that are not installed. Those of others are imported, to find the ones
that do not work before a recipe does.
"""

import ast
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resight import plugins
from resight.errors import ResightError

PACKAGES = (  # in the order of a recipe
    *("resight.data.sets", "resight.encode.photometric", "resight.encode.backbones", "resight.encode.descriptors"),
    *("resight.encode.descriptors.regions", "resight.encode.transforms", "resight.store", "resight.index"),
    *("resight.search.fusions", "resight.search.rerankers", "resight.search.scorers", "resight.evaluate.metrics"),
    *("resight.evaluate.curves", "resight.train.heads", "resight.train.losses", "resight.reproduce.kinds"),
)
OURS = "resight"
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class PlugIn:
    kind: str  # the group of its entry point, or the name of our folder: backbones, sets, …
    name: str  # in a recipe
    origin: str  # "resight", or the distribution that brings it, with its version
    module: str
    about: str = ""  # the first line of its docstring
    problem: str = ""  # why it cannot be used


def list_plugins() -> list[PlugIn]:
    """Every plug-in, kind by kind."""
    return [plugin for package in PACKAGES for plugin in (*_list_ours(package), *_list_installed(package))]


def name_kind(package: str) -> str:
    """The word for the plug-ins of a package: that of the entry points which add to it, or else its own."""
    return plugins.GROUPS.get(package, package).rpartition(".")[2]


def _list_ours(package: str) -> Iterator[PlugIn]:
    for name in _name_ours(package):
        file = _find_folder(package) / f"{name}.py"
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        yield PlugIn(name_kind(package), name, OURS, f"{package}.{name}", text.partition("\n")[0])


def _list_installed(package: str) -> Iterator[PlugIn]:
    own = _name_ours(package)
    for name, entry in sorted(plugins.find_installed(package).items()):
        about = problem = ""
        if name in own:
            problem = f"resight has a plug-in called {name!r}, which is used instead: rename yours"
        else:
            try:
                about = (plugins.find(package, name).__doc__ or "").strip().partition("\n")[0]
            except ResightError as error:
                problem = f"{error.problem}: {error.actual}; {error.fix}"
        yield PlugIn(name_kind(package), name, plugins.name_origin(entry), entry.value, about, problem)


def _name_ours(package: str) -> list[str]:
    modules = pkgutil.iter_modules([str(_find_folder(package))])
    return sorted(module.name for module in modules if not module.ispkg and not module.name.startswith("_"))


def _find_folder(package: str) -> Path:
    return FOLDER.joinpath(*package.split(".")[1:])  # importing the package of losses would import torch
