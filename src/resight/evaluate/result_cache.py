"""A cache of measured rows, so that an interrupted grid of recipes continues where it stopped.

In: a RunResult and its Sizes. Out: the same, if the same version measured the same recipe on the same data.
One JSON file per row, written atomically. Seconds are those of the first measurement.
"""

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from resight import kernels
from resight import recipe as recipes
from resight.evaluate.results import RunResult
from resight.evaluate.sizes import Sizes
from resight.files import remote
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint
from resight.types import Dataset, Recipe


class ResultCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, key: str, recipe: Recipe) -> tuple[RunResult, Sizes] | None:
        """The result and its sizes; None if the file is missing, damaged or of another layout."""
        try:
            held = load_json(self._path(key).read_text(encoding="utf-8"))
            return _revive(RunResult, {**held["result"], "recipe": recipe}), _revive(Sizes, held["sizes"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, key: str, result: RunResult, sizes: Sizes) -> None:
        path = self._path(key)
        plain = {name: getattr(result, name) for name in _list_fields(RunResult) if name != "recipe"}
        text = json.dumps({"result": plain, "sizes": sizes}, default=_flatten)
        fix = "choose another folder with --cache, or use --no-cache"
        with write_atomic(path, f"cannot keep results in {self._folder}", fix) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def fingerprint_dataset(dataset: Dataset) -> str:
    """A hash that changes with the images, their files and the truth."""
    digest = hashlib.sha256(dataset.name.encode())
    for ref in (*dataset.database, *dataset.queries):
        digest.update(
            f"{ref.id}\0{ref.box}\0{_fingerprint_file(ref.path)}\0{sorted(ref.attributes.items())}\n".encode()
        )
    for query, judgement in sorted(dataset.judgements.items()):
        truth = sorted(judgement.grades.items()), sorted(judgement.ignored), sorted(judgement.boxes.items())
        digest.update(f"{query}\0{truth}\n".encode())
    return digest.hexdigest()


def make_key(recipe: Recipe, data: str, *how: object) -> str:
    """`data` is the fingerprint of the data set, `how` everything else that the result depends on."""
    table = {name: value for name, value in recipes.to_table(recipe).items() if name != "name"}
    text = json.dumps(table, sort_keys=True, default=str)
    files = [_fingerprint_file(Path(value)) for value in _list_texts(table) if "/" in value or "." in value]
    made_by = metadata.version("resight"), kernels.implementation()
    return fingerprint(repr((text, files, data, how, made_by)), 32)


def _fingerprint_file(path: Path) -> str:
    try:
        if remote.is_remote(path):
            return f"{remote.to_url(path)} {remote.stat(path)}"
        status = path.stat()
    except OSError:
        return "absent"
    return f"{path.absolute()} {status.st_size} {status.st_mtime_ns}"


def _list_texts(value: Any) -> list[str]:
    """Every text in tables and lists: some are paths, such as weights and codebooks."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [text for part in inner for text in _list_texts(part)]


def _flatten(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in _list_fields(type(value))}
    return str(value) if isinstance(value, Path) else dict(value)


def _list_fields(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _revive(hint: Any, value: Any) -> Any:
    """A JSON value as the type that a dataclass declares."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if value is None or hint is Any or isinstance(value, Recipe):
        return value
    if origin in (types.UnionType, typing.Union):
        (kind,) = (part for part in arguments if part is not types.NoneType) if len(arguments) == 2 else (arguments[0],)
        return _revive(kind, value)
    if origin is tuple:
        kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_revive(kind, part) for kind, part in zip(kinds, value, strict=True))
    if origin is not None and isinstance(value, dict):
        return {key: _revive(arguments[1], part) for key, part in value.items()}
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return typing.cast(Any, hint)(**{name: _revive(hints[name], part) for name, part in value.items()})
    return Path(value) if hint is Path else value
