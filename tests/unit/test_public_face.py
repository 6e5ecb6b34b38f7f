"""The names that other people's code relies on, and what importing the package costs."""

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys

import pytest

import resight

NAMES = [
    "AddReport",
    "Answer",
    "AsyncClient",
    "Box",
    "Client",
    "Collection",
    "Embeddings",
    "Evidence",
    "Hit",
    "ImageEncoder",
    "ImageRef",
    "Match",
    "Recipe",
    "ResightError",
    "audit",
    "compare",
    "dedup",
    "evaluate",
    "judge",
    "load_encoder",
    "load_image",
    "load_recipe",
    "locate",
    "lookalikes",
    "match",
    "open",
    "own_vectors",
    "plan",
    "train",
    "wrap_encoder",
]
HEAVY = {"cv2", "faiss", "fastapi", "httpx", "lance", "lancedb", "onnxruntime", "pyarrow", "scipy", "torch"}


def test_the_public_names_are_these():
    assert resight.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_listed(name: str):
    assert getattr(resight, name) is not None
    assert name in dir(resight)


def test_the_names_are_the_things_of_their_modules():
    assert resight.open is importlib.import_module("resight.collection").open_collection
    assert resight.load_recipe is importlib.import_module("resight.recipe").load
    assert resight.Hit is importlib.import_module("resight.types").Hit


def test_the_version_is_that_of_the_installed_package():
    assert resight.__version__ == importlib.metadata.version("resight")
    assert "__version__" in dir(resight)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        resight.opne  # noqa: B018 - looking it up is the test


def test_importing_the_package_imports_nothing_heavy():
    program = "import json, sys, resight; print(json.dumps(sorted(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in json.loads(finished.stdout)}
    assert "resight" in imported
    assert imported & HEAVY == set()


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not tell the processor time of a process")
@pytest.mark.parametrize(("words", "limit"), [(["-c", "import resight"], 0.1), (["-m", "resight", "--help"], 0.5)])
def test_starting_costs_little_processor_time(words: list[str], limit: float):
    def measure(*arguments: str) -> float:
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return used.ru_utime + used.ru_stime

    bare = min(measure("-c", "pass") for _ in range(3))
    assert min(measure(*words) for _ in range(3)) - bare <= limit  # the best of three, on a machine with other work
