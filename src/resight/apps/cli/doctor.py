"""`resight doctor`: whether this installation works: versions, kernels, weights, decoding, cache, disk, GPU."""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json
from resight.errors import MissingExtra, ResightError, install_extra

CORE = (
    "numpy",
    "opencv-python-headless",
    "pillow",
    "pi-heif",
    "pyarrow",
    "pylance",
    "faiss-cpu",
    "onnxruntime",
    "scipy",
)
MODULES = {"opencv-python-headless": "cv2", "faiss-cpu": "faiss", "pylance": "lance", "pi-heif": "pi_heif"}
LITTLE = 2 * 10**9  # bytes of free disk
SECRET = ("KEY",)  # variables whose value is not shown

State = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    part: str
    state: State
    detail: str
    fix: str = ""


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu/--no-gpu", help="Also look for a GPU, which imports torch.")] = True,
    json: Json = False,
) -> None:
    """Check this installation, and name the fix of what is missing.

    Versions, kernels, weights, decoding, cache, disk, GPU.

    Ends with an error if the default preset cannot run here.
    """
    findings = list(_check(gpu))
    if json:
        terminal.print_json(findings)
    else:
        for one in findings:
            mark = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}[one.state]
            terminal.echo(f"{mark}  {one.part:<10}  {one.detail}")
            if one.fix:
                terminal.echo(f"{'':<21}fix: {one.fix}")
    if any(one.state == "problem" for one in findings):
        raise SystemExit(MissingExtra.exit_code)


def _check(gpu: bool) -> Iterator[Finding]:
    yield _check_version()
    yield Finding("system", "ok", f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores")
    yield from _check_packages()
    yield _check_extras()
    yield _check_kernels()
    yield _check_weights()
    yield _check_decoding()
    yield from _check_disk()
    if gpu:
        yield _check_gpu()
    yield from _list_variables()


def _check_version() -> Finding:
    import resight

    return Finding("resight", "ok", f"{resight.__version__}, in {Path(resight.__file__).parent}")


def _check_packages() -> Iterator[Finding]:
    found, missing = [], []
    for name in CORE:
        if importlib.util.find_spec(MODULES.get(name, "PIL" if name == "pillow" else name)) is None:
            missing.append(name)
            continue
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:  # another distribution brings the module
            found.append(name)
    yield Finding("packages", "ok", ", ".join(found))
    if missing:
        fix = f"{sys.executable} -m pip install {' '.join(missing)}"
        yield Finding("packages", "problem", f"missing: {', '.join(missing)}", fix)


def _check_extras() -> Finding:
    from resight.plugins import EXTRAS

    absent = [extra for extra, modules in EXTRAS.items() if importlib.util.find_spec(modules[0]) is None]
    if not absent:
        return Finding("extras", "ok", f"{', '.join(EXTRAS)} are installed")
    return Finding(
        "extras", "note", f"not installed, and not needed by the default: {', '.join(absent)}", _name(absent)
    )


def _name(extras: list[str]) -> str:
    return install_extra(",".join(extras))


def _check_kernels() -> Finding:
    from resight import kernels

    if kernels.implementation() == "avx2":
        return Finding("kernels", "ok", "compiled, with AVX2")
    wanted = os.environ.get("RESIGHT_KERNELS")
    why = f"RESIGHT_KERNELS is {wanted}" if wanted else "no compiled part for this processor"
    return Finding("kernels", "note", f"numpy, which is slower and gives the same answers: {why}")


def _check_weights() -> Finding:
    from resight.encode.catalogue import list_encoders

    (entry,) = list_encoders(["efficientnet_lite"])
    if entry.ready:
        return Finding(
            "weights", "ok", "those of the default preset are installed; `resight encoders` lists the others"
        )
    return Finding("weights", "problem", f"those of the default preset are missing: {entry.missing}")


def _check_decoding() -> Finding:
    """One picture through the sandbox, as every command reads images."""
    import io

    from PIL import Image

    from resight.data import image_files, sandbox

    data = io.BytesIO()
    Image.new("RGB", (32, 24), "red").save(data, "JPEG")
    try:
        image_files.read_bytes(data.getvalue(), "a test picture")
    except ResightError as error:
        return Finding("decoding", "problem", error.problem, error.fix)
    if sandbox.find_shared() is None:
        return Finding("decoding", "note", "works, without the sandbox: RESIGHT_SANDBOX switches it off")
    return Finding("decoding", "ok", "works, in protected processes")


def _check_disk() -> Iterator[Finding]:
    from resight.encode.feature_cache import find_folder

    folder = find_folder()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    yield Finding("cache", "ok", f"{folder}, {terminal.format_bytes(size)}")
    for name, path in (("this folder", Path.cwd()), ("the cache's", _find_existing(folder))):
        free = shutil.disk_usage(path).free
        state: State = "ok" if free > LITTLE else "note"
        yield Finding("disk", state, f"{terminal.format_bytes(free)} free on the disk of {name}")


def _find_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _check_gpu() -> Finding:
    import onnxruntime

    providers = [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    found = f"onnxruntime runs on {', '.join(providers)}"
    if importlib.util.find_spec("torch") is None:
        return Finding("gpu", "ok", f"{found}; torch is not installed")
    import torch

    if not torch.cuda.is_available():
        return Finding("gpu", "ok", f"{found}; torch {torch.__version__} finds no GPU, and none is needed")
    names = ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
    return Finding("gpu", "ok", f"{found}; torch {torch.__version__} finds {names}")


def _list_variables() -> Iterator[Finding]:
    """The settings of the environment: one that was forgotten explains much."""
    for name in sorted(name for name in os.environ if name.startswith("RESIGHT_")):
        hidden = any(word in name for word in SECRET) and name != "RESIGHT_KERNELS"
        yield Finding("variable", "note", f"{name}={'…' if hidden else os.environ[name]}")
