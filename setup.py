"""The compiled kernels: one optional extension module. Everything else about the build is in pyproject.toml.

Without a compiler, or on a processor of another family, resight installs without it, and numpy serves.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup

SOURCES = sorted(path.as_posix() for path in Path("src/resight/kernels").glob("*.c"))
HEADERS = sorted(path.as_posix() for path in Path("src/resight/kernels").glob("*.h"))
# One file for every Python from 3.11 on: only the stable part of its C interface is used.
STABLE = "0x030b0000"


def list_extensions() -> list[Extension]:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    windows = sys.platform == "win32"
    return [
        Extension(
            "resight.kernels._native",
            sources=SOURCES,
            depends=HEADERS,
            define_macros=[("Py_LIMITED_API", STABLE)],
            extra_compile_args=["/O2"] if windows else ["-O3", "-std=gnu11", "-fvisibility=hidden"],
            py_limited_api=True,
            optional=True,
        )
    ]


EXTENSIONS = list_extensions()
setup(ext_modules=EXTENSIONS, options={"bdist_wheel": {"py_limited_api": "cp311"}} if EXTENSIONS else {})
