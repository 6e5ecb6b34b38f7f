"""SECURITY.md claims what tests prove, and the bill of materials lists what is installed."""

import ast
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CLAIMS = [line for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if "`tests/" in line]


@pytest.mark.parametrize("line", CLAIMS, ids=lambda line: line.strip("| ")[:50])
def test_every_claim_names_tests_that_exist(line: str) -> None:
    named = TEST.findall(line)
    assert len(named) == line.count("`tests/"), "write `tests/FILE.py::NAME`"
    for path, name in named:
        functions = {
            node.name
            for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in functions, f"{path} has no {name}"


def test_there_are_claims() -> None:
    assert len(CLAIMS) >= 15


def test_the_bill_of_materials_lists_what_is_installed(tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / "sbom.py"), str(tmp_path / name)], check=True)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    bill = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "resight")
    versions = {component["name"]: component["version"] for component in bill["components"]}
    for name in ("numpy", "pillow", "opencv-python-headless", "pylance"):
        assert versions[name] == metadata.version(name)
