"""The Python reference: it shows every public name, says what goes in and out, and its examples run."""

import ast
import dataclasses
import doctest
import functools
import importlib
import inspect
import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.serving import serve

import resight

ADDRESS = "http://127.0.0.1:8080"  # of the service in examples of clients
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
DIRECTIVE = re.compile(r"^::: (?P<path>[\w.]+)\n(?P<options>(?:    .*\n)*)", re.MULTILINE)
MEMBERS = re.compile(r"members: \[(.*)\]")
SECTION = r"^{}:\n((?:    .*\n|\n)+)"
ENTRY = re.compile(r"^    \*{0,2}(\w+): ", re.MULTILINE)
SAME = re.compile(r"[Ss]ame arguments as `\w+`")
PACKAGES = {  # packages that can be called → their functions
    "audit": "resight.tasks.audit.audit",
    "evaluate": "resight.evaluate.evaluate.evaluate",
    "train": "resight.tasks.train.train",
}
FOR_SERVICES = {"encode_images", "prepare", "prepared", "query_side"}  # of Collection: documented, but not shown


class Entry(NamedTuple):
    """Something that the reference shows."""

    path: str
    value: Any
    doc: str


def find(path: str) -> Any:
    """The object at a dotted path."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[end:], module)
    raise LookupError(path)


def read_alias_doc(name: str) -> str:
    """The text below the definition of a type alias in resight.types."""
    source = Path(inspect.getfile(resight.Hit)).read_text(encoding="utf-8")
    body = ast.parse(source).body
    for node, after in itertools.pairwise(body):
        is_alias = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        if is_alias and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return str(after.value.value)
    return ""


def list_members(kind: type) -> dict[str, Any]:
    """Public methods and properties that a class defines itself."""
    kinds = (property, functools.cached_property, classmethod, staticmethod)
    return {
        name: member
        for name, member in vars(kind).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, kinds))
    }


def read_entries() -> Iterator[Entry]:
    for found in DIRECTIVE.finditer(PAGE.read_text(encoding="utf-8")):
        path = found["path"]
        value = find(path)
        doc = read_alias_doc(path.rpartition(".")[2]) if value is resight.Box else inspect.getdoc(value) or ""
        yield Entry(path, value, doc)
        if inspect.isclass(value):
            chosen = MEMBERS.search(found["options"])
            for name in chosen[1].split(", ") if chosen else list_members(value):
                member = inspect.getattr_static(value, name)
                yield Entry(f"{path}.{name}", member, inspect.getdoc(member) or "")


ENTRIES = list(read_entries())
EXAMPLES = [entry for entry in ENTRIES if ">>>" in entry.doc]
FUNCTIONS = [entry for entry in ENTRIES if inspect.isfunction(entry.value) or isinstance(entry.value, classmethod)]
DATACLASSES = [entry for entry in ENTRIES if dataclasses.is_dataclass(entry.value)]


def name_entry(entry: Entry) -> str:
    return entry.path


def list_described(doc: str, section: str) -> list[str]:
    """The names that a section of a docstring describes."""
    found = re.search(SECTION.format(section), doc + "\n", re.MULTILINE)
    return ENTRY.findall(found[1]) if found else []


@pytest.mark.parametrize("name", resight.__all__)
def test_the_reference_shows_every_public_name_with_an_example(name: str) -> None:
    assert PACKAGES.get(name, f"resight.{name}") in [entry.path for entry in EXAMPLES]


@pytest.mark.parametrize("name", [name for name in resight.__all__ if inspect.isclass(getattr(resight, name))])
def test_every_public_method_is_documented_and_shown(name: str) -> None:
    members = list_members(getattr(resight, name))
    assert not [member for member, value in members.items() if not inspect.getdoc(value)]
    shown = {entry.path for entry in ENTRIES}
    assert {member for member in members if f"resight.{name}.{member}" not in shown} <= FOR_SERVICES


@pytest.mark.parametrize("entry", ENTRIES, ids=name_entry)
def test_a_docstring_starts_with_a_sentence(entry: Entry) -> None:
    assert re.match(r"[A-Z\[].*\.$", entry.doc.partition("\n")[0]), entry.doc[:100]


@pytest.mark.parametrize("entry", FUNCTIONS, ids=name_entry)
def test_a_function_states_its_arguments_and_its_result(entry: Entry) -> None:
    function = entry.value.__func__ if isinstance(entry.value, classmethod) else entry.value
    signature = inspect.signature(function)
    arguments = [name for name in signature.parameters if name not in ("self", "cls")]
    if not SAME.search(entry.doc):
        assert list_described(entry.doc, "Args") == arguments
    assert ("\nReturns:\n" in entry.doc) == (signature.return_annotation not in (None, "None"))


@pytest.mark.parametrize("entry", FUNCTIONS, ids=name_entry)
def test_every_argument_and_result_has_a_type(entry: Entry) -> None:
    function = entry.value.__func__ if isinstance(entry.value, classmethod) else entry.value
    signature = inspect.signature(function)
    untyped = [
        name
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls") and parameter.annotation is inspect.Parameter.empty
    ]
    assert not untyped
    assert signature.return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("entry", DATACLASSES, ids=name_entry)
def test_a_dataclass_describes_its_fields_in_their_order(entry: Entry) -> None:
    assert list_described(entry.doc, "Attributes") == [field.name for field in dataclasses.fields(entry.value)]


@pytest.mark.parametrize(
    "entry",
    [entry for entry in FUNCTIONS if "." not in getattr(entry.value, "__qualname__", ".")],
    ids=name_entry,
)
def test_a_function_outside_a_class_has_an_example(entry: Entry) -> None:
    assert "\nExamples:\n" in entry.doc


@pytest.fixture(scope="module")
def service(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a service, and a copy of the folder whose collection it serves."""
    folder = Path(shutil.copytree(photo_folder, tmp_path_factory.mktemp("served") / "folder"))
    with serve(folder / "photos.resight") as server:
        yield server.address, folder


@pytest.mark.parametrize("entry", [entry for entry in EXAMPLES if ADDRESS not in entry.doc], ids=name_entry)
def test_the_example_of_a_docstring_runs(entry: Entry, own_photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_photo_folder)
    check_example(entry.path, entry.doc)


@pytest.mark.parametrize("entry", [entry for entry in EXAMPLES if ADDRESS in entry.doc], ids=name_entry)
def test_the_example_of_a_client_runs(entry: Entry, service: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    address, folder = service
    monkeypatch.chdir(folder)
    check_example(entry.path, entry.doc.replace(ADDRESS, address))


def check_example(path: str, doc: str) -> None:
    test = doctest.DocTestParser().get_doctest(doc, {}, path, None, None)
    printed: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=printed.append)
    assert outcome.attempted and not outcome.failed, "".join(printed)
