"""A MATLAB file of version 5 in, its variables out (`read_mat`): as much of the format as lists and structs need.

    cell array      list, in MATLAB's order (column by column)
    struct array    list of {field: value}
    text            str
    numbers         ndarray [...] of MATLAB's shape

Nothing in such a file is executed. Sparse, logical, complex and object arrays, and version 7.3 (which is HDF5), are
refused. The format: MathWorks, MAT-File Format, section "Level 5 MAT-Files".
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from resight.errors import ManifestError

CODES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, CHAR, NUMBERS = 1, 2, 4, range(6, 16)
COMPLEX = 0x08
MAX_BYTES = 1 << 30  # of one variable, unpacked


@dataclass(frozen=True)
class Block:
    kind: int
    data: bytes


def read_mat(path: Path, fix: str) -> dict[str, Any]:
    """The variables by name."""
    try:
        content = path.read_bytes()
        if len(content) < 128 or content[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
            raise ValueError("not a MATLAB file of version 5")
        order = "<" if content[126:128] == b"IM" else ">"
        return dict(_read_matrix(block, order) for block in _split(content[128:], order))
    except (OSError, ValueError, IndexError, struct.error, zlib.error, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(
            f"{path} cannot be read",
            expected="a whole MATLAB file of version 5 with lists, structs, text and numbers",
            actual="no such file" if isinstance(error, FileNotFoundError) else str(error),
            fix=fix,
        ) from error


def _split(data: bytes, order: str) -> Iterator[Block]:
    """The elements that follow one another in `data`."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small one: its size stands in the upper half, its data in the next four bytes
            kind, size, start, step = kind & 0xFFFF, kind >> 16, at + 4, 8
        else:
            start, step = at + 8, 8 + size + (0 if kind == COMPRESSED else -size % 8)
        if start + size > len(data) or (step == 8 and size > 4 and start == at + 4):
            raise ValueError("it ends early")
        block = Block(kind, data[start : start + size])
        if kind == COMPRESSED:
            yield from _split(_unpack(block.data), order)
        else:
            yield block
        at += step


def _unpack(data: bytes) -> bytes:
    machine = zlib.decompressobj()
    content = machine.decompress(data, MAX_BYTES)
    if machine.unconsumed_tail:
        raise ValueError(f"a variable takes more than {MAX_BYTES:,} bytes")
    if not machine.eof:
        raise ValueError("it ends early")
    return content


def _read_matrix(block: Block, order: str) -> tuple[str, Any]:
    """The name and the value of an array."""
    if block.kind != MATRIX:
        _refuse(f"an element of kind {block.kind} where an array should be")
    if not block.data:
        return "", np.zeros((0, 0))
    flags, shape, name, *rest = _split(block.data, order)
    (word,) = struct.unpack_from(f"{order}I", flags.data)
    kind, size = word & 0xFF, [int(side) for side in np.frombuffer(shape.data, f"{order}i4")]
    if word >> 8 & COMPLEX:
        _refuse("complex numbers")
    label, count = name.data.decode("latin-1"), prod(size)
    if kind == CELL:
        values = [_read_matrix(part, order)[1] for part in rest]
        if len(values) != count:
            _refuse("a cell array of another length than it says")
        return label, values
    if kind == STRUCT:
        return label, _read_structs(rest, count, order)
    if kind == CHAR:
        text = TEXTS.get(rest[0].kind)
        suffix = ("-le" if order == "<" else "-be") if text in ("utf-16", "utf-32") else ""
        return label, rest[0].data.decode(f"{text}{suffix}") if text else _refuse("text of an unknown kind")
    if kind in NUMBERS and rest[0].kind in CODES:
        return label, np.frombuffer(rest[0].data, f"{order}{CODES[rest[0].kind]}").reshape(size, order="F")
    return _refuse(f"an array of class {kind}")


def _read_structs(parts: list[Block], count: int, order: str) -> list[dict[str, Any]]:
    (width,) = struct.unpack_from(f"{order}i", parts[0].data)
    names = [
        parts[1].data[start : start + width].split(b"\0")[0].decode("latin-1")
        for start in range(0, len(parts[1].data), max(width, 1))
    ]
    values = [_read_matrix(part, order)[1] for part in parts[2:]]
    if len(values) != count * len(names):
        _refuse("a struct array of another length than it says")
    return [dict(zip(names, values[at * len(names) : (at + 1) * len(names)], strict=True)) for at in range(count)]


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"it holds {what}")
