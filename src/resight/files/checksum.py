"""Checksums of files in blocks: a file in, its size and the CRC-32 of each block out, and later whether it is the same.

Blocks let a reader check the end of a large file, where its tables are, without reading the rest. CRC-32 finds damage
(bit rot, torn writes); it is no protection against somebody who changes a file on purpose.
"""

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

BLOCK = 1 << 18  # bytes


@dataclass(frozen=True)
class FileSum:
    bytes: int
    blocks: tuple[int, ...]  # CRC-32 of each block of BLOCK bytes, the last one shorter

    def to_json(self) -> list[int]:
        return [self.bytes, *self.blocks]

    @classmethod
    def from_json(cls, values: list[int]) -> "FileSum":
        """ValueError where `values` cannot have come from `to_json`."""
        size, *blocks = values
        if size < 0 or len(blocks) != -(-size // BLOCK):
            raise ValueError(f"{len(blocks)} blocks for {size} bytes")
        return cls(size, tuple(blocks))


def sum_file(path: Path) -> FileSum:
    with path.open("rb") as file:
        blocks = tuple(_sum_blocks(file))
        return FileSum(file.tell(), blocks)


def find_damage(path: Path, expected: FileSum, start: int = 0) -> str:
    """What is wrong with a file from byte `start` on, in words; empty if nothing is.

    A missing file is damage. Any other OSError leaves: it says nothing about the file's content.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected.bytes:
                return f"it has {size:,} bytes instead of {expected.bytes:,}"
            first = max(start, 0) // BLOCK
            file.seek(first * BLOCK)
            for number, found in enumerate(_sum_blocks(file), first):
                if found != expected.blocks[number]:
                    return f"its bytes from {number * BLOCK:,} on have changed"
    except FileNotFoundError:
        return "it is missing"
    return ""


def _sum_blocks(file: BinaryIO) -> Iterator[int]:
    while data := file.read(BLOCK):
        yield zlib.crc32(data)
