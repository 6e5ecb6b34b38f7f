"""Packs that are written as their tokens come: the same bytes as packs made at once, in memory that does not grow."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import kernels
from resight.errors import InputError
from resight.kernels import writer

OFFSETS = np.concatenate([[0], np.cumsum(np.arange(400) % 7)])  # some images have no token
TOKENS = np.random.default_rng(0).standard_normal((int(OFFSETS[-1]), 24)).astype(np.float32) + 1
SETTINGS: list[dict[str, Any]] = [
    {"kind": "int8", "keep": "none"},
    {"kind": "int8", "keep": "fp16"},
    {"kind": "int8", "keep": "fp32"},
    {"kind": "fp32", "keep": "fp32"},
    {"kind": "fp16", "keep": "fp16"},
    {"kind": "pq", "keep": "none", "m": 6, "rounds": 2},
    {"kind": "pq", "keep": "fp16", "m": 6, "bits": 8, "rounds": 2},
    {"kind": "rq", "keep": "none", "m": 2, "rounds": 2},
]


def write(folder: Path, portions: list[Any], **settings: Any) -> None:
    writer = kernels.PackWriter(folder, OFFSETS, 24, draw=lambda rows: TOKENS[rows], **settings)
    for rows in portions:
        writer.write(rows, TOKENS[rows])
    writer.finish()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_pack_written_in_portions_is_the_pack_made_at_once_byte_for_byte(tmp_path: Path, settings: dict[str, Any]):
    kernels.pack(TOKENS, OFFSETS, **settings).save(tmp_path / "once")
    order = np.random.default_rng(1).permutation(len(TOKENS))
    write(tmp_path / "portions", np.array_split(order, 7), **settings)
    once = {path.name: path.read_bytes() for path in (tmp_path / "once").iterdir()}
    portions = {path.name: path.read_bytes() for path in (tmp_path / "portions").iterdir()}
    assert once == portions
    assert {path.name for path in tmp_path.iterdir()} == {"once", "portions"}  # nothing else is left


def test_what_was_written_is_let_go_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer, "RELEASE_BYTES", 100 * 24 * 4)
    monkeypatch.setattr(writer, "CHUNK", 50)
    gone: list[str] = []
    monkeypatch.setattr(writer, "release_pages", lambda array: gone.append(Path(array.filename).name))
    write(tmp_path / "pack", [np.arange(len(TOKENS))], kind="int8", keep="none")
    assert gone.count("int8.values.npy") == len(TOKENS) // 100 + 1


def test_a_token_that_cannot_be_compared_is_refused(tmp_path: Path):
    writer = kernels.PackWriter(
        tmp_path / "pack", np.array([0, 2]), 4, "int8", "none", lambda rows: np.ones((len(rows), 4), np.float32)
    )
    with pytest.raises(InputError, match="cannot be compared"):
        writer.write(np.arange(2), np.array([[1, 2, 3, 4], [1, np.nan, 3, 4]], np.float32))


BUILD = """
import sys
from pathlib import Path
import numpy as np
from resight import kernels

K, D, IMAGES = 32, 64, 20_000

def draw(rows):
    return np.random.default_rng(0).standard_normal((len(rows), D), dtype=np.float32)

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

draw(np.arange(70_000)); before = anonymous(); most = 0
writer = kernels.PackWriter(Path(sys.argv[1]) / "pack", np.arange(IMAGES + 1) * K, D, "int8", "none", draw)
for first in range(0, IMAGES * K, 500 * K):
    rows = np.arange(first, first + 500 * K)
    writer.write(rows, draw(rows))
    most = max(most, anonymous())
writer.finish()
print((most - before) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")
def test_building_20000_images_takes_little_memory_beside_its_files(tmp_path: Path):
    """164 MB as float32; the sample, a portion and its working copies are about 50."""
    done = subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
