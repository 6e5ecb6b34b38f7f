"""A pack as a folder: header.json and one npy file per array, which `load_codes` maps instead of reading.

The header states version, byte order, kind and shapes, and carries its own checksum. A file that was truncated, swapped
or written on a machine of another byte order is refused, with a fix. `save_subset` writes some images of a pack as a
pack of their own. It keeps the arrays that the kind learnt from all tokens (`packed.SHARED`), so that scores stay the
same to the last bit.
"""

import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError, InputError, StorageError, VersionMismatch
from resight.files.documents import load_json
from resight.files.fingerprint import fingerprint
from resight.kernels.allocation import Allocate, in_folder, write_array
from resight.kernels.codec import KINDS, Codes, find_kind
from resight.kernels.numpy_reference import join_ranges

VERSION = 1
HEADER = "header.json"
SMALL_BYTES = 1 << 24  # `load_codes` reads arrays up to this size and verifies their checksums
PER_TOKEN, PER_IMAGE = ("tokens", "values", "steps", "shifts", "numbers"), ("errors", "lengths")
TYPES = {"values": np.uint8, "codes": np.uint8, "numbers": np.uint8, "bounds": np.int64}  # the others are float32
REBUILD = "build the pack again from its tokens: kernels.pack(...).save(folder)"


def save(codes: Codes, reference: Codes | None, folder: Path, scratch: Path | None = None) -> None:
    """Write beside `folder`, then swap: a reader sees either the old pack or the new one."""
    if folder.exists() and not (folder / HEADER).is_file() and any(folder.iterdir()):
        raise InputError(
            f"{folder} holds something other than a pack", expected="a new folder, or an old pack", fix="name another"
        )
    arrays = {"offsets": codes.offsets, **{f"codes.{name}": a for name, a in codes.arrays().items()}}
    if reference is not None:
        arrays |= {f"reference.{name}": array for name, array in reference.arrays().items()}
    header: dict[str, Any] = {
        "format": "resight pack",
        "version": VERSION,
        "byte_order": sys.byteorder,
        "kind": codes.kind,
        "reference": reference.kind if reference else None,
        "arrays": {name: describe(array) for name, array in arrays.items()},
    }
    fresh, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        for name, array in arrays.items():
            write_array(array, fresh / f"{name}.npy", scratch)
        text = json.dumps({**header, "checksum": digest(header)}, indent=1)
        (fresh / HEADER).write_text(text + "\n", encoding="utf-8")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"the pack could not be written to {folder}",
            actual=str(error),
            fix="free some space, or name another folder",
        ) from error


def load_codes(folder: Path, check: bool = False) -> tuple[Codes, Codes | None]:
    """Codes and kept tokens of the pack in `folder`, memory-mapped. `check` verifies the checksums of all files."""
    header = read_header(folder)
    arrays = {name: read_array(folder, name, entry, check) for name, entry in header["arrays"].items()}
    try:
        offsets = arrays["offsets"]
        codes = find_kind(header["kind"]).restore(strip_prefix(arrays, "codes."), offsets)
        reference = (
            find_kind(header["reference"]).restore(strip_prefix(arrays, "reference."), offsets)
            if header["reference"]
            else None
        )
    except (KeyError, TypeError) as error:
        raise damaged(folder, "all arrays of its kind", f"{error}") from error
    for part in (codes, reference) if reference else (codes,):
        check_fit(folder, part, codes.d)
    return codes, reference


def read_header(folder: Path) -> dict[str, Any]:
    try:
        text = (folder / HEADER).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"there is no pack in {folder}", expected=f"a file {HEADER}", fix="name a pack's folder"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(folder, "a readable header", str(error)) from error
    try:
        header = load_json(text)
        claimed = header.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise damaged(folder, "a complete header", f"{type(error).__name__}: {error}") from error
    if claimed != digest(header):
        raise damaged(folder, f"a header with checksum {claimed}", digest(header))
    if header.get("version") != VERSION:
        raise VersionMismatch(
            f"the pack in {folder} has another version",
            expected=f"version {VERSION}",
            actual=f"version {header.get('version')}",
            fix=f"{REBUILD}, or use the release that wrote it",
        )
    if header.get("byte_order") != sys.byteorder:
        raise CollectionError(
            f"the pack in {folder} was written on a machine with another byte order",
            expected=sys.byteorder,
            actual=str(header.get("byte_order")),
            fix=REBUILD,
        )
    if header.get("kind") not in KINDS or "arrays" not in header:
        raise damaged(folder, f"a kind among {', '.join(KINDS)}", repr(header.get("kind")))
    return dict(header)


def read_array(folder: Path, name: str, entry: dict[str, Any], check: bool) -> NDArray[Any]:
    path = folder / f"{name}.npy"
    expected = f"{path.name} with {entry['dtype']} {tuple(entry['shape'])}"
    try:
        small = entry["bytes"] <= SMALL_BYTES
        array: NDArray[Any] = np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:  # truncated, missing, or not an npy file
        raise damaged(folder, expected, str(error)) from error
    if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
        raise damaged(folder, expected, f"{array.dtype.str} {array.shape}")
    if (check or small) and checksum(array) != entry["crc32"]:
        raise damaged(folder, f"{path.name} with checksum {entry['crc32']}", "other content")
    return array


def check_fit(folder: Path, codes: Codes, d: int) -> None:
    """Refuse arrays that are each intact but do not belong together."""
    offsets = codes.offsets
    whole = offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 0
    if not whole or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise damaged(folder, "offsets that start at 0 and never decrease", f"{offsets.dtype.str} {offsets.shape}")
    if codes.d != d:
        raise damaged(folder, f"kept tokens of {d} dimensions, like the codes", f"{codes.d}")
    wanted = {**dict.fromkeys(PER_TOKEN, int(offsets[-1])), **dict.fromkeys(PER_IMAGE, len(offsets) - 1)}
    types = {**TYPES, "tokens": np.float16 if codes.kind == "fp16" else np.float32}
    for name, array in codes.arrays().items():
        if array.dtype != types.get(name, np.float32):
            raise damaged(folder, f"{name} of {np.dtype(types.get(name, np.float32)).str}", array.dtype.str)
        if len(array) != wanted.get(name, len(array)):
            raise damaged(folder, f"{wanted[name]} rows of {name}", f"{len(array)}")


def describe(array: NDArray[Any]) -> dict[str, Any]:
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": array.nbytes,
        "crc32": checksum(array),
    }


def checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def strip_prefix(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def digest(header: dict[str, Any]) -> str:
    return fingerprint(json.dumps(header, sort_keys=True))


def damaged(folder: Path, expected: str, actual: str) -> CollectionError:
    return CollectionError(f"the pack in {folder} is damaged", expected=expected, actual=actual, fix=REBUILD)


DIVISIBLE_KINDS = ("fp32", "fp16", "int8")  # their arrays have one row per token or per image, or are shared
COPIED_IMAGES = 8192  # per step


def save_subset(codes: Codes, reference: Codes | None, images: NDArray[np.int64], folder: Path) -> None:
    """Write some `images` [i] of a pack, by number and in that order, as a pack of their own."""
    scratch = folder.with_name(folder.name + ".scratch")
    scratch.mkdir(parents=True)
    allocate = in_folder(scratch)
    some = select_images(codes, images, allocate, "codes")
    kept = None if reference is None else select_images(reference, images, allocate, "reference")
    save(some, kept, folder, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def select_images(codes: Codes, images: NDArray[np.int64], allocate: Allocate, name: str) -> Codes:
    assert codes.kind in DIVISIBLE_KINDS
    counts = np.diff(codes.offsets)[images]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    arrays: dict[str, NDArray[Any]] = {}
    for key, array in codes.arrays().items():
        arrays[key] = array[images] if key in PER_IMAGE else array
        if key in PER_TOKEN:
            arrays[key] = allocate(f"{name}.{key}", (int(offsets[-1]), *array.shape[1:]), array.dtype)
            for start in range(0, len(images), COPIED_IMAGES):
                part = slice(start, start + COPIED_IMAGES)
                rows = join_ranges(codes.offsets[images[part]], counts[part])
                arrays[key][offsets[start] : offsets[start] + len(rows)] = array[rows]
    chosen: Codes = find_kind(codes.kind).restore(arrays, offsets)
    return chosen
