"""Where the authors publish the weights of each place network, and where they are on this machine. Imports no torch.

`find`: in torch's cache of checkpoints, where torch.hub also puts them, or in that of the Hugging Face hub. `describe`:
how to get them.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resight.errors import MissingWeights, RecipeError


@dataclass(frozen=True)
class Release:
    file: str
    page: str = ""  # URL that ends before the name of a file
    repository: str = ""  # of the Hugging Face hub


GITHUB = "https://github.com/{}/releases/download/{}/"
RELEASES: Mapping[str, Release] = {
    "sscd": Release("sscd_disc_mixup.torchvision.pt", "https://dl.fbaipublicfiles.com/sscd-copy-detection/"),
    "cosplace": Release("ResNet50_2048_cosplace.pth", GITHUB.format("gmberton/CosPlace", "v1.0")),
    "eigenplaces": Release("ResNet50_2048_eigenplaces.pth", GITHUB.format("gmberton/EigenPlaces", "v1.0")),
    "boq": Release("dinov2_12288.pth", GITHUB.format("amaralibey/Bag-of-Queries", "v1.0")),
    "salad": Release("dino_salad.ckpt", GITHUB.format("serizba/salad", "v1.0.0")),
    "megaloc": Release("model.safetensors", repository="gberton/MegaLoc"),
}
ELSEWHERE: Mapping[str, str] = {
    "mixvpr": "the links in the README of github.com/amaralibey/MixVPR (Google Drive)",
    "delg": "your own training with github.com/feymanpriv/DELG; Google's files for TensorFlow are not read",
    "superglobal": "the files of CVNet, linked from github.com/sungonce/CVNet (Google Drive)",
}


def find(model: str, file: str | None = None) -> Path | None:
    """The published file on this machine; `file`: another one of the same release."""
    release = RELEASES.get(model)
    if release is None:
        return None
    if release.repository:
        from resight.encode.networks import hub  # imports the library's client

        return hub.find(release.repository, [file or release.file])
    path = find_checkpoints() / (file or release.file)
    return path if path.is_file() else None


def fetch(model: str, file: str | None = None) -> Path:
    """The published file, downloaded once."""
    found = find(model, file)
    if found is not None:
        return found
    release = RELEASES.get(model)
    if release is None:
        raise refuse_absent(model, file)
    from resight.encode.networks import hub

    if release.repository:
        return hub.fetch(release.repository, [file or release.file])
    import torch

    path = find_checkpoints() / (file or release.file)
    try:
        hub.reach(release.page + path.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(release.page + path.name, str(path), progress=False)
    except Exception as error:  # disk, proxy, server: each has other classes
        raise refuse_absent(model, file, str(error).partition("\n")[0] or type(error).__name__) from error
    return path


def find_checkpoints() -> Path:
    """torch's cache, torch.hub.get_dir()/checkpoints."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(os.environ.get("TORCH_HOME", Path(cache, "torch"))).expanduser() / "hub" / "checkpoints"


def describe(model: str, file: str | None = None) -> str:
    release = RELEASES.get(model)
    if release is None:
        return ELSEWHERE[model]
    if release.repository:
        return f"huggingface.co/{release.repository} ({file or release.file})"
    return release.page + (file or release.file)


def refuse_absent(model: str, file: str | None = None, actual: str = "no such file") -> MissingWeights:
    once = "use it once with a network connection, or " if model in RELEASES else ""
    return MissingWeights(
        f"the weights of {model} are not on this machine",
        expected="a file that its authors published, or their code saved",
        actual=actual,
        fix=f"{once}set `weights` to the path of a file, from {describe(model, file)}",
    )


def check_file(file: str) -> None:
    """A bare name: it becomes a part of a URL and of a path."""
    if not re.fullmatch(r"[\w-][\w.-]*", file, re.ASCII):
        raise RecipeError(
            "the setting `release` is no name of a file",
            expected="a name without folders, such as ResNet18_512_cosplace.pth",
            actual=repr(file),
            fix="set `weights` for a file on this machine",
        )
