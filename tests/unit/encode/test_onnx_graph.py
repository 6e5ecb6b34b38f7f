"""Importing onnxruntime through resight.encode.onnx_graph: it sends nothing unless the user wants it to."""

import os
import subprocess
import sys

import pytest

PROBE = """
import os, sys, builtins
real = builtins.__import__
def watch(name, *rest, **more):
    if name == "onnxruntime" and "onnxruntime" not in sys.modules:
        print(os.environ.get("ORT_DISABLE_TELEMETRY"))
    return real(name, *rest, **more)
builtins.__import__ = watch
import resight.encode.onnx_graph
"""


@pytest.mark.parametrize(("chosen", "seen"), [(None, "1"), ("0", "0")])
def test_telemetry_is_off_before_the_runtime_loads_unless_the_user_chose(chosen: str | None, seen: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    if chosen is not None:
        environment["ORT_DISABLE_TELEMETRY"] = chosen
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [seen]
