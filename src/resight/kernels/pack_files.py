"""A pack ↔ a folder: header.json and one npy file an array, which `open_pack` maps instead of reading.

The header says which version, byte order, kind and shapes to expect, and carries its own checksum; a file that was
cut short, swapped or written on another kind of machine is refused with what to do about it.

Some images of a pack → a pack of their own, with the codes that they have.

What a kind learns from all tokens (`packed.SHARED`) goes with the part, so that its scores are those of the whole, bit
for bit. A part that was packed anew would learn other codes.
"""

import hashlib
import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import CollectionError, InputError, StorageError, VersionMismatch
from resight.kernels.allocation import Allocate, in_folder, write_array
from resight.kernels.codec import KINDS, Codes, find_kind
from resight.kernels.packed import Packed

VERSION = 1
HEADER = "header.json"
LEAST = 1 << 24  # bytes up to which an array is read and its checksum compared at every opening
PER_TOKEN, PER_IMAGE = ("tokens", "values", "steps", "shifts", "numbers"), ("errors", "lengths")
TYPES = {"values": np.uint8, "codes": np.uint8, "numbers": np.uint8, "bounds": np.int64}  # the others are float32
REBUILD = "make the pack again from its tokens: kernels.pack(...).save(folder)"


def save(packed: Packed, folder: Path, scratch: Path | None = None) -> None:
    """Written beside `folder` and then put in its place: a reader sees the old pack or the new one."""
    if folder.exists() and not (folder / HEADER).is_file() and any(folder.iterdir()):
        raise InputError(
            f"{folder} holds something else than a pack", expected="a new folder, or an old pack", fix="name another"
        )
    arrays = {"offsets": packed.codes.offsets, **{f"codes.{name}": a for name, a in packed.codes.arrays().items()}}
    if packed.reference is not None:
        arrays |= {f"reference.{name}": array for name, array in packed.reference.arrays().items()}
    header: dict[str, Any] = {
        "format": "resight pack",
        "version": VERSION,
        "byte_order": sys.byteorder,
        "kind": packed.kind,
        "reference": packed.reference.kind if packed.reference else None,
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


def open_pack(folder: str | Path, check: bool = False) -> Packed:
    """The pack in `folder`, mapped. check: also read all of it and compare checksums."""
    place = Path(folder)
    header = read_header(place)
    arrays = {name: read_array(place, name, entry, check) for name, entry in header["arrays"].items()}
    try:
        offsets = arrays["offsets"]
        codes = find_kind(header["kind"]).restore(select(arrays, "codes."), offsets)
        reference = (
            find_kind(header["reference"]).restore(select(arrays, "reference."), offsets)
            if header["reference"]
            else None
        )
    except (KeyError, TypeError) as error:
        raise damaged(place, "all arrays of its kind", f"{error}") from error
    for part in (codes, reference) if reference else (codes,):
        check_fit(place, part, codes.d)
    return Packed(codes, reference)


def read_header(place: Path) -> dict[str, Any]:
    try:
        text = (place / HEADER).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"there is no pack in {place}", expected=f"a file {HEADER}", fix="name a pack's folder"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(place, "a readable header", str(error)) from error
    try:
        header = json.loads(text)
        claimed = header.pop("checksum")
    except (json.JSONDecodeError, KeyError, AttributeError, TypeError) as error:
        raise damaged(place, "a whole header", f"{type(error).__name__}: {error}") from error
    if claimed != digest(header):
        raise damaged(place, f"a header with checksum {claimed}", digest(header))
    if header.get("version") != VERSION:
        raise VersionMismatch(
            f"the pack in {place} has another version",
            expected=f"version {VERSION}",
            actual=f"version {header.get('version')}",
            fix=f"{REBUILD}, or use the release that wrote it",
        )
    if header.get("byte_order") != sys.byteorder:
        raise CollectionError(
            f"the pack in {place} was written on a machine with another byte order",
            expected=sys.byteorder,
            actual=str(header.get("byte_order")),
            fix=REBUILD,
        )
    if header.get("kind") not in KINDS or "arrays" not in header:
        raise damaged(place, f"a kind among {', '.join(KINDS)}", repr(header.get("kind")))
    return dict(header)


def read_array(place: Path, name: str, entry: dict[str, Any], check: bool) -> NDArray[Any]:
    path = place / f"{name}.npy"
    expected = f"{path.name} with {entry['dtype']} {tuple(entry['shape'])}"
    try:
        small = entry["bytes"] <= LEAST
        array: NDArray[Any] = np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:  # cut short, missing, or not an npy file
        raise damaged(place, expected, str(error)) from error
    if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
        raise damaged(place, expected, f"{array.dtype.str} {array.shape}")
    if (check or small) and checksum(array) != entry["crc32"]:
        raise damaged(place, f"{path.name} with checksum {entry['crc32']}", "other content")
    return array


def check_fit(place: Path, codes: Codes, d: int) -> None:
    """Arrays that are each whole may still not belong together."""
    offsets = codes.offsets
    whole = offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 0
    if not whole or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise damaged(place, "offsets that start at 0 and never decrease", f"{offsets.dtype.str} {offsets.shape}")
    if codes.d != d:
        raise damaged(place, f"kept tokens of {d} dimensions, like the codes", f"{codes.d}")
    wanted = {**dict.fromkeys(PER_TOKEN, int(offsets[-1])), **dict.fromkeys(PER_IMAGE, len(offsets) - 1)}
    types = {**TYPES, "tokens": np.float16 if codes.kind == "fp16" else np.float32}
    for name, array in codes.arrays().items():
        if array.dtype != types.get(name, np.float32):
            raise damaged(place, f"{name} of {np.dtype(types.get(name, np.float32)).str}", array.dtype.str)
        if len(array) != wanted.get(name, len(array)):
            raise damaged(place, f"{wanted[name]} rows of {name}", f"{len(array)}")


def describe(array: NDArray[Any]) -> dict[str, Any]:
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": array.nbytes,
        "crc32": checksum(array),
    }


def checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def select(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def digest(header: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def damaged(place: Path, expected: str, actual: str) -> CollectionError:
    return CollectionError(f"the pack in {place} is damaged", expected=expected, actual=actual, fix=REBUILD)


DIVISIBLE_KINDS = ("fp32", "fp16", "int8")  # whose arrays have one row a token or an image, or are shared
IMAGES = 8192  # copied at a time


def cut_pack(packed: Packed, images: NDArray[np.int64], folder: Path) -> None:
    """The `images` [i] of a pack, by number and in that order, to a folder that `kernels.open` maps."""
    scratch = folder.with_name(folder.name + ".scratch")
    scratch.mkdir(parents=True)
    allocate = in_folder(scratch)
    codes = cut_codes(packed.codes, images, allocate, "codes")
    reference = None if packed.reference is None else cut_codes(packed.reference, images, allocate, "reference")
    save(Packed(codes, reference), folder, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def cut_codes(codes: Codes, images: NDArray[np.int64], allocate: Allocate, name: str) -> Codes:
    assert codes.kind in DIVISIBLE_KINDS
    counts = np.diff(codes.offsets)[images]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    arrays: dict[str, NDArray[Any]] = {}
    for key, array in codes.arrays().items():
        arrays[key] = array[images] if key in PER_IMAGE else array
        if key in PER_TOKEN:
            arrays[key] = allocate(f"{name}.{key}", (int(offsets[-1]), *array.shape[1:]), array.dtype)
            for start in range(0, len(images), IMAGES):
                part = slice(start, start + IMAGES)
                rows = list_tokens(codes.offsets[images[part]], counts[part])
                arrays[key][offsets[start] : offsets[start] + len(rows)] = array[rows]
    cut: Codes = find_kind(codes.kind).restore(arrays, offsets)
    return cut


def list_tokens(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin, begin + 1, … of each image, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + counts, counts)
