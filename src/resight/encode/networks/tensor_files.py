"""Tensors in, a .safetensors file out; what the disk refuses is an OSError, as with any other file."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def save_tensors(tensors: Mapping[str, Tensor], path: Path, header: Mapping[str, str]) -> None:
    try:
        save_file(dict(tensors), path, metadata=dict(header))
    except SafetensorError as error:  # which hides what the system said
        raise OSError(str(error)) from error
