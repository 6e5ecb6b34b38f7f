import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from resight import plugins
from resight.encode import named_networks
from resight.errors import MissingExtra, RecipeError
from resight.plugin_catalogue import list_plugins
from resight.types import Branch, Choice

TOY = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    size: int
    scale: float = 1.0

def build(config):
    return config.size * config.scale
"""


@dataclass(frozen=True)
class Config:
    count: int = 1
    share: float = 0.5
    name: str = "x"
    flag: bool = False
    kind: Literal["hard", "soft"] = "hard"
    file: Path | None = None
    scales: tuple[float, ...] = (1.0,)


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with three plug-ins and a sub-package."""
    folder = tmp_path / "toys_for_plugins"
    (folder / "deeper").mkdir(parents=True)
    for path, text in {
        "__init__.py": "",
        "toy.py": TOY,
        "lacks_dependency.py": "import a_package_that_nobody_has",
        "broken.py": "import resight.a_module_that_is_gone",
        "deeper/__init__.py": "",
    }.items():
        (folder / path).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder.name
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_a_plug_in_is_built_from_its_settings(toys: str):
    assert plugins.load(toys, "toy", {"size": 3, "scale": 2}) == 6.0


def test_the_names_are_the_modules_and_not_the_packages(toys: str):
    assert plugins.names(toys) == ["broken", "lacks_dependency", "toy"]


def test_listing_names_imports_none_of_them(toys: str):
    plugins.names(toys)
    assert f"{toys}.toy" not in sys.modules


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(RecipeError) as caught:
        plugins.find("resight.index", "exakt")
    assert caught.value.problem == "there is no index called 'exakt'"
    assert "exact" in caught.value.expected and "asmk_inverted" in caught.value.expected
    assert caught.value.fix == "did you mean 'exact'?"


def test_a_name_cannot_lead_out_of_its_package():
    with pytest.raises(RecipeError):
        plugins.find("resight.index", "..errors")


def test_a_missing_dependency_is_named(toys: str):
    with pytest.raises(MissingExtra, match="a_package_that_nobody_has"):
        plugins.load(toys, "lacks_dependency", {})


def test_a_missing_module_of_our_own_is_not_blamed_on_an_extra(toys: str):
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_gone"):
        plugins.load(toys, "broken", {})


def test_a_missing_setting_is_an_error_that_names_it(toys: str):
    with pytest.raises(RecipeError, match="size"):
        plugins.load(toys, "toy", {})


def test_an_unknown_setting_is_answered_with_the_known_ones():
    with pytest.raises(RecipeError) as caught:
        plugins.configure(Config, {"cuont": 3}, "toy")
    assert caught.value.problem == "toy has no setting 'cuont'"
    assert caught.value.expected == "one of count, share, name, flag, kind, file, scales"
    assert caught.value.fix == "did you mean 'count'?"


def test_no_settings_leave_the_defaults():
    assert plugins.configure(Config, {}, "toy") == Config()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("count", 3, 3),
        ("share", 0.25, 0.25),
        ("share", 1, 1.0),
        ("name", "y", "y"),
        ("flag", True, True),
        ("kind", "soft", "soft"),
        ("file", "words.npz", Path("words.npz")),
        ("file", None, None),
        ("scales", [1, 0.5], (1.0, 0.5)),
        ("scales", [], ()),
    ],
)
def test_what_toml_gives_becomes_what_the_config_declares(key: str, value: object, expected: object):
    made = getattr(plugins.configure(Config, {key: value}, "toy"), key)
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("count", 1.5),
        ("count", True),
        ("count", "3"),
        ("share", "half"),
        ("share", True),
        ("name", 3),
        ("flag", 1),
        ("kind", "medium"),
        ("file", 3),
        ("scales", 1.0),
        ("scales", ["wide"]),
    ],
)
def test_a_value_of_another_type_is_refused(key: str, value: object):
    with pytest.raises(RecipeError) as caught:
        plugins.configure(Config, {key: value}, "toy")
    path = "scales.0" if value == ["wide"] else key
    assert caught.value.problem == f"toy: {path} does not fit"
    assert caught.value.expected and caught.value.actual == repr("wide" if value == ["wide"] else value)


def test_a_refused_choice_is_answered_with_the_valid_ones():
    with pytest.raises(RecipeError) as caught:
        plugins.configure(Config, {"kind": "medium"}, "toy")
    assert caught.value.expected == "'hard' or 'soft'"
    assert caught.value.actual == "'medium'"


@pytest.mark.parametrize(
    ("package", "name", "settings"),
    [
        ("resight.index", "hnsw", {"links": 1}),
        ("resight.index", "asmk_inverted", {"threshold": 2.0}),
        ("resight.search.rerankers", "geometry", {"candidates": -1}),
        ("resight.search.rerankers", "geometry", {"ratio": float("nan")}),
        ("resight.encode.backbones", "sift", {"max_side": 0}),
    ],
)
def test_settings_out_of_range_are_refused(package, name, settings):
    with pytest.raises(RecipeError, match="out of range"):
        plugins.load(package, name, settings)


@dataclass(frozen=True)
class Nested:
    source: Choice | None = None
    sources: tuple[Choice, ...] = ()


def test_a_plug_in_inside_a_plug_in_is_a_name_or_a_table_or_already_one():
    made = plugins.configure(Nested, {"source": "grid", "sources": [{"name": "grid", "level": 1}, Choice("x")]}, "toy")
    assert made == Nested(Choice("grid"), (Choice("grid", {"level": 1}), Choice("x")))
    assert plugins.configure(Nested, {"source": None}, "toy") == Nested()


@pytest.mark.parametrize("value", [[3], [{"level": 1}], "grid"])
def test_what_names_no_plug_in_is_refused(value: object):
    with pytest.raises(RecipeError, match="sources"):
        plugins.configure(Nested, {"sources": value}, "toy")


@dataclass(frozen=True)
class Fused:
    parts: tuple[Branch, ...] = ()


@dataclass(frozen=True)
class Bounded:
    size: Annotated[int, Field(ge=1, le=9)]
    scales: tuple[Annotated[float, Field(gt=0)], ...] = ()
    cut: int | str | None = None


@pytest.mark.parametrize(
    ("settings", "problem", "expected", "actual"),
    [
        ({"size": 0}, "toy: size = 0 is out of range", "at least 1", "0"),
        ({"size": 10}, "toy: size = 10 is out of range", "at most 9", "10"),
        ({"size": 1, "scales": [1, -1]}, "toy: scales.1 = -1 is out of range", "more than 0", "-1"),
        ({"size": 1, "scales": "all"}, "toy: scales does not fit", "a list", "'all'"),
        ({"size": 1, "cut": 0.5}, "toy: cut does not fit", "a valid integer or a valid string", "0.5"),
        ({"scales": []}, "toy has no size", "the setting size", "scales"),
        ({"sise": 3}, "toy has no setting 'sise'", "one of size, scales, cut", "'sise'"),
        (3, "toy does not fit", "a table", "3"),
    ],
)
def test_an_error_of_pydantic_has_our_form(settings: object, problem: str, expected: str, actual: str):
    with pytest.raises(RecipeError) as caught:
        plugins.configure(Bounded, settings, "toy")
    error = caught.value
    assert (error.problem, error.expected, error.actual) == (problem, expected, actual)
    assert error.fix


def test_an_unknown_setting_deep_in_a_table_is_answered_with_those_of_its_own_table():
    with pytest.raises(RecipeError) as caught:
        plugins.configure(Fused, {"parts": [{"encoder": "sift", "descriptor": "vlad", "wieght": 2}]}, "fused")
    assert caught.value.problem == "fused: parts.0 has no setting 'wieght'"
    assert caught.value.expected == (
        "one of encoder, descriptor, transforms, weight, index, regions, query_regions, photometric"
    )
    assert caught.value.fix == "did you mean 'weight'?"


def test_a_branch_inside_a_plug_in_is_a_table_or_already_one():
    branch = Branch(Choice("sift"), Choice("vlad"), weight=2.0)
    table = {"encoder": "sift", "descriptor": {"name": "vlad"}, "weight": 2}
    assert plugins.configure(Fused, {"parts": [table, branch]}, "fused") == Fused((branch, branch))


def test_pydantic_is_imported_with_the_first_table():
    code = "import sys, resight.plugins, resight.recipe; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


class Distribution:
    name, version = "a-package", "1.2"


class Entry:
    """An entry point of a package that is not installed."""

    dist = Distribution()

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value = name, value

    def load(self) -> object:
        return importlib.import_module(self.value)


@pytest.fixture
def installed(toys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [Entry("toy", f"{toys}.toy"), Entry("exact", f"{toys}.toy"), Entry("torn", f"{toys}.torn")]
    entries += [Entry("lacking", f"{toys}.lacks_dependency"), Entry("empty", toys)]
    entries.append(Entry("leaving", f"{toys}.leaving"))
    folder = Path(importlib.import_module(toys).__path__[0])
    (folder / "torn.py").write_text("1 / 0")
    (folder / "leaving.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(plugins, "_read_entry_points", lambda group: {e.name: e for e in entries if group == INDEXES})


INDEXES = "resight.indexes"


@pytest.mark.usefixtures("installed")
def test_an_installed_plug_in_is_built_by_its_name() -> None:
    assert plugins.load("resight.index", "toy", {"size": 2}) == 2.0
    assert "toy" in plugins.names("resight.index") and "toy" not in plugins.names("resight.store")
    assert plugins.exists("resight.index", "toy") and not plugins.exists("resight.index", "nothing")


@pytest.mark.usefixtures("installed")
def test_an_installed_plug_in_replaces_none_of_ours() -> None:
    assert plugins.find("resight.index", "exact").__name__ == "resight.index.exact"
    listed = {one.module: one for one in list_plugins() if one.kind == "indexes" and one.name == "exact"}
    assert listed["resight.index.exact"].origin == "resight" and not listed["resight.index.exact"].problem
    (other,) = [one for module, one in listed.items() if module != "resight.index.exact"]
    assert "rename yours" in other.problem


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("torn", RecipeError, "a-package 1.2 cannot be loaded"),
        ("leaving", RecipeError, "a-package 1.2 cannot be loaded"),
        ("empty", RecipeError, "a-package 1.2 is not complete"),
        ("lacking", MissingExtra, "a_package_that_nobody_has"),
    ],
)
def test_an_installed_plug_in_that_does_not_work_is_named(name: str, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        plugins.find("resight.index", name)
    (listed,) = [one for one in list_plugins() if (one.kind, one.name) == ("indexes", name)]
    assert listed.problem and listed.origin == "a-package 1.2"


def test_every_plug_in_of_ours_is_listed_with_what_it_is() -> None:
    found = list_plugins()
    assert {("backbones", "sift"), ("rerankers", "geometry"), ("losses", "arcface")} <= {
        (p.kind, p.name) for p in found
    }
    assert not [one for one in found if one.origin == "resight" and (one.problem or not one.about)]


def test_looking_up_our_own_reads_no_metadata_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(plugins, "_read_entry_points")
    assert plugins.find("resight.index", "exact").__name__ == "resight.index.exact"
    assert named_networks.find("sift") == "sift"
