"""In processes of their own: an operator, once declared, stays declared."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs torch", allow_module_level=True)

BROKEN = """
import torch
from . import extension
torch.library.register_fake("torchvision::nms")(lambda dets, scores, threshold: dets)
torch.library.register_fake("torchvision::qnms")(lambda dets, scores, threshold: dets)
"""
WHOLE = """
import torch
library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
from resight.encode.networks.torchvision_compat import declare_missing
print(declare_missing() is not None, declare_missing() is declare_missing())
import torchvision
print(torchvision.__file__.startswith(sys.argv[1]), hasattr(torchvision, "extension"))
"""


@pytest.mark.parametrize(("source", "answer"), [(BROKEN, "True True True True"), (WHOLE, "False True True False")])
def test_operators_are_declared_only_where_they_are_missing(tmp_path: Path, source: str, answer: str):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(source)
    (package / "extension.py").write_text("")
    asked = subprocess.run([sys.executable, "-c", ASK, str(tmp_path)], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == answer.split()


def test_another_failure_of_torchvision_is_not_hidden(tmp_path: Path):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('out of luck')")
    asked = subprocess.run([sys.executable, "-c", ASK, str(tmp_path)], capture_output=True, text=True, check=False)
    assert asked.returncode and "out of luck" in asked.stderr
