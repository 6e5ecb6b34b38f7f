"""Indexes beside a collection: made once, found again, and made again when they are damaged."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from token_rows import make_tokens

from resight.collection.index_cache import open_index
from resight.kernels import files
from resight.types import Choice, Descriptors

ROWS = make_tokens([4] * 60)
QUERY = make_tokens([5], seed=9)


@dataclass
class FakeStore:
    """Tokens in one branch; notes how often an index was made from them."""

    version: int = 1
    layout: tuple[str, ...] = ("tokens",)
    builds: list[int] = field(default_factory=list)

    def descriptors(self, branch: int, ids: Sequence[str] | None = None, **_: Any) -> Iterator[Descriptors]:
        assert (branch, ids) == (0, None)
        self.builds.append(branch)
        return iter([ROWS])


def search(folder: Path, store: FakeStore, **settings: Any) -> tuple[str, ...]:
    return open_index(folder, Choice("late", settings), store, 0, "").search(QUERY, 10).ids  # type: ignore[arg-type]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def rewrite_header(pack: Path, **changes: Any) -> None:
    header = {**json.loads((pack / "header.json").read_text()), **changes}
    header.pop("checksum")
    (pack / "header.json").write_text(json.dumps({**header, "checksum": files.digest(header)}))


def swap_bytes(path: Path) -> None:
    array = np.load(path)
    np.save(path, array.astype(array.dtype.newbyteorder()))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "codes cut short": lambda place: cut(place / "pack" / "codes.values.npy"),
    "kept tokens cut short": lambda place: cut(place / "pack" / "reference.tokens.npy"),
    "first pass cut short": lambda place: cut(place / "small" / "codes.values.npy"),
    "first pass gone": lambda place: shutil.rmtree(place / "small"),
    "header cut short": lambda place: cut(place / "pack" / "header.json"),
    "garbage": lambda place: (place / "pack" / "codes.steps.npy").write_bytes(b"\x93NUMPY garbage"),
    "bytes in another order": lambda place: swap_bytes(place / "pack" / "codes.steps.npy"),
    "another machine": lambda place: rewrite_header(
        place / "pack", byte_order="big" if sys.byteorder == "little" else "little"
    ),
    "another version": lambda place: rewrite_header(place / "pack", version=99),
    "another kind": lambda place: rewrite_header(place / "pack", kind="pq"),
    "ids cut short": lambda place: cut(place / "images.json"),
    "ids of other images": lambda place: (place / "images.json").write_text('{"space": "", "ids": ["a"]}'),
    "no ids": lambda place: (place / "images.json").write_text("7"),
    "pack gone": lambda place: shutil.rmtree(place / "pack"),
}


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], Any], mapped: bool
):
    if mapped:
        monkeypatch.setattr(files, "LEAST", 0)
    store = FakeStore()
    settings = {"cascade": True, "cascade_dims": 8}
    whole = search(tmp_path, store, **settings)
    (place,) = (tmp_path / "indexes").iterdir()
    made = len(store.builds)
    assert search(tmp_path, store, **settings) == whole
    assert len(store.builds) == made
    damage(place)
    assert search(tmp_path, store, **settings) == whole
    assert len(store.builds) == 2 * made
    assert search(tmp_path, store, **settings) == whole
    assert len(store.builds) == 2 * made


def test_every_setting_has_an_index_of_its_own(tmp_path: Path):
    store = FakeStore()
    choices: list[dict[str, Any]] = [
        {},
        {"kind": "pq"},
        {"kind": "pq", "m": 8},
        {"kind": "pq", "m": 8, "train_images": 50},
        {"kind": "pq", "m": 8, "train_on": "00*"},
        {"cascade": True, "cascade_dims": 8},
        {"cascade": True, "cascade_dims": 4},
    ]
    for number, settings in enumerate(choices, start=1):
        search(tmp_path, store, **settings)
        assert len(list((tmp_path / "indexes").iterdir())) == number


def test_an_index_of_an_older_state_is_removed(tmp_path: Path):
    search(tmp_path, FakeStore(version=1))
    search(tmp_path, FakeStore(version=2))
    (place,) = (tmp_path / "indexes").iterdir()
    assert place.name.endswith("-v2")
