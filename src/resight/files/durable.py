"""Durable writing: what these functions have written is on the disk when they return, and survives a power cut.

A file is durable once its bytes and the folder that names it are synced. Renaming alone is not enough: after a power
cut the new name may lead to an empty file.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from resight.files.atomic import replace_atomic


def write_durable(path: Path, data: bytes, unique: bool = True) -> None:
    """Write a file completely or not at all, and sync it with its folder, which must exist; `unique`: see atomic."""
    with replace_atomic(path, unique=unique) as temporary:
        temporary.write_bytes(data)
        sync_file(temporary)
    sync_folder(path.parent)


def sync_files(paths: Iterable[Path]) -> None:
    """Sync files, and each folder that names one of them, once."""
    folders: dict[Path, None] = {}
    for path in paths:
        sync_file(path)
        folders[path.parent] = None
    for folder in folders:
        sync_folder(folder)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder; Windows has no such call."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync every file and folder below `folder`, and `folder` itself."""
    for root, _, files in os.walk(folder):
        for name in files:
            sync_file(Path(root, name))
        sync_folder(Path(root))
