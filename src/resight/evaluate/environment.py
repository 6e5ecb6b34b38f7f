"""Where figures came from: versions of what took part, and the machine, as plain values. Nothing is loaded for it."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ALWAYS = ("resight", "numpy", "onnxruntime", "faiss-cpu", "lancedb", "opencv-python-headless")
IF_LOADED = {"torch": "torch", "timm": "timm", "transformers": "transformers"}  # module → distribution


def list_versions() -> dict[str, str]:
    """Distribution → version; the networks' libraries only where this process has loaded them."""
    names = [*ALWAYS, *(name for module, name in IF_LOADED.items() if module in sys.modules)]
    found = {name: _find_version(name) for name in names}
    return {"python": platform.python_version()} | {name: version for name, version in found.items() if version}


def describe_machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _find_cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": _find_memory(),
    }


def _find_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _find_cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _find_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return None
