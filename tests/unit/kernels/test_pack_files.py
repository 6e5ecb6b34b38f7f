"""Packs on disk: the same answers after opening, and damage refused with what to do about it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import kernels
from resight.errors import CollectionError, InputError, VersionMismatch
from resight.kernels import pack_files

RANDOM = np.random.default_rng(0)
OFFSETS = np.concatenate([[0], np.cumsum(RANDOM.integers(0, 9, 80)), [800]])
TOKENS = RANDOM.standard_normal((800, 24)).astype(np.float32)
QUERY = RANDOM.standard_normal((9, 24)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernels.pack(TOKENS, OFFSETS).save(tmp_path / "pack")
    return tmp_path / "pack"


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "fp32"},
        {"kind": "fp16"},
        {"kind": "int8"},
        {"kind": "int8", "keep": "fp16", "dims": 8},
        {"kind": "pq", "m": 6},
        {"kind": "pq", "m": 6, "bits": 8},
        {"kind": "rq", "m": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("mapped", [True, False])
def test_an_opened_pack_gives_the_same_answers(
    settings: dict[str, Any], mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = kernels.pack(TOKENS, OFFSETS, **settings)
    packed.save(tmp_path / "pack")
    if mapped:
        monkeypatch.setattr(pack_files, "SMALL_BYTES", 0)
    opened = kernels.open(tmp_path / "pack", check=True)
    assert opened.kind == packed.kind
    assert len(opened) == len(packed) == 81
    assert opened.bytes_per_image == packed.bytes_per_image
    assert isinstance(next(iter(opened.codes.arrays().values())), np.memmap) == mapped
    assert np.array_equal(opened.scores(QUERY), packed.scores(QUERY))
    rows = [5, 80, 5]
    assert opened.scores(QUERY, rows=rows) == pytest.approx(packed.scores(QUERY)[rows], rel=1e-5)
    assert np.array_equal(opened.errors(QUERY), packed.errors(QUERY))
    assert opened.top(QUERY, 5)[2] == packed.top(QUERY, 5)[2]
    assert opened.top(QUERY, 5)[0].tolist() == packed.top(QUERY, 5)[0].tolist()


def test_what_was_not_kept_is_not_there_after_opening(tmp_path: Path) -> None:
    kernels.pack(TOKENS, OFFSETS, keep="none").save(tmp_path / "pack")
    with pytest.raises(InputError, match="cannot prove"):
        kernels.open(tmp_path / "pack").top(QUERY, 3)


def test_a_pack_without_tokens_can_be_saved(tmp_path: Path) -> None:
    kernels.pack(np.zeros((0, 5), np.float32), [0, 0]).save(tmp_path / "pack")
    assert np.isneginf(kernels.open(tmp_path / "pack").scores(np.ones(5))).all()


def test_saving_replaces_a_pack_but_nothing_else(folder: Path, tmp_path: Path) -> None:
    kernels.pack(TOKENS, OFFSETS, kind="fp32").save(folder)
    assert kernels.open(folder).kind == "fp32"
    assert [path.name for path in tmp_path.iterdir()] == ["pack"]
    other = tmp_path / "photos"
    other.mkdir()
    (other / "a.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match="something other"):
        kernels.pack(TOKENS, OFFSETS).save(other)
    assert (other / "a.jpg").read_bytes() == b"x"


@pytest.mark.parametrize("name", ["codes.values", "codes.steps", "offsets", "reference.tokens", "header"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_that_was_cut_short_is_refused(name: str, share: float, folder: Path) -> None:
    path = folder / (f"{name}.npy" if name != "header" else "header.json")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    for least in (0, pack_files.SMALL_BYTES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pack_files, "SMALL_BYTES", least)
            with pytest.raises(CollectionError, match="damaged") as caught:
                kernels.open(folder)
    assert "kernels.pack" in caught.value.fix


@pytest.mark.parametrize("name", ["codes.values", "offsets", "reference.tokens"])
def test_a_missing_array_is_refused(name: str, folder: Path) -> None:
    (folder / f"{name}.npy").unlink()
    with pytest.raises(CollectionError, match="damaged"):
        kernels.open(folder)


def test_any_flipped_byte_of_the_header_is_noticed(folder: Path) -> None:
    path = folder / "header.json"
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x04]) + whole[position + 1 :])
        try:
            opened = kernels.open(folder)
        except CollectionError:
            continue
        assert opened.kind == "int8", "only the spaces between values may change"
        assert whole[position : position + 1].isspace()
    path.write_bytes(whole)
    assert kernels.open(folder).kind == "int8"


def test_flipped_bytes_of_arrays_are_noticed(folder: Path) -> None:
    for name in ("codes.values", "offsets", "codes.steps"):
        path = folder / f"{name}.npy"
        whole = path.read_bytes()
        for position in (7, 40, len(whole) - 3):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
            with pytest.raises(CollectionError, match="damaged"):
                kernels.open(folder, check=True)
        path.write_bytes(whole)


def rewrite(folder: Path, **changes: Any) -> None:
    header = {**json.loads((folder / "header.json").read_text()), **changes}
    header.pop("checksum")
    header["checksum"] = pack_files.digest(header)
    (folder / "header.json").write_text(json.dumps(header))


def test_another_byte_order_is_refused(folder: Path) -> None:
    rewrite(folder, byte_order="big" if sys.byteorder == "little" else "little")
    with pytest.raises(CollectionError, match="byte order"):
        kernels.open(folder)


def test_arrays_of_another_byte_order_are_refused(folder: Path) -> None:
    steps = np.load(folder / "codes.steps.npy")
    np.save(folder / "codes.steps.npy", steps.astype(steps.dtype.newbyteorder()))
    with pytest.raises(CollectionError, match="damaged"):
        kernels.open(folder)


def test_another_version_is_refused(folder: Path) -> None:
    rewrite(folder, version=2)
    with pytest.raises(VersionMismatch, match="version 2"):
        kernels.open(folder)


def test_unknown_kinds_and_missing_arrays_in_the_header_are_refused(folder: Path) -> None:
    rewrite(folder, kind="int4")
    with pytest.raises(CollectionError, match="damaged"):
        kernels.open(folder)
    rewrite(folder, kind="fp16")
    with pytest.raises(CollectionError, match="damaged"):
        kernels.open(folder)


def test_a_folder_without_a_pack_is_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="no pack"):
        kernels.open(tmp_path)
    shutil.rmtree(folder)
    with pytest.raises(InputError, match="no pack"):
        kernels.open(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("codes.steps", lambda array: array.astype(np.float64)),
        ("codes.steps", lambda array: array[:-1]),
        ("codes.errors", lambda array: array[:-1]),
        ("reference.tokens", lambda array: array[:, :-4]),
        ("offsets", lambda array: array[::-1]),
    ],
    ids=["another type", "fewer tokens", "fewer images", "other dimensions", "not in order"],
)
def test_arrays_that_do_not_belong_together_are_refused_whatever_the_header_says(
    name: str, change: Any, folder: Path
) -> None:
    changed = np.ascontiguousarray(change(np.load(folder / f"{name}.npy")))
    np.save(folder / f"{name}.npy", changed)
    with pytest.raises(CollectionError, match="damaged"):
        kernels.open(folder)
    header = json.loads((folder / "header.json").read_text())
    rewrite(folder, arrays={**header["arrays"], name: pack_files.describe(changed)})
    with pytest.raises(CollectionError, match="damaged") as refusal:
        kernels.open(folder)
    assert refusal.value.expected and refusal.value.actual and "kernels.pack" in refusal.value.fix


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_a_pack_made_in_a_scratch_folder_is_moved_and_gives_the_same_answers(tmp_path: Path, kind: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mapped = np.lib.format.open_memmap(scratch / "tokens.npy", mode="w+", dtype=np.float32, shape=TOKENS.shape)
    mapped[:] = TOKENS
    packed = kernels.pack(mapped, OFFSETS, kind, scratch=scratch)
    packed.save(tmp_path / "pack", scratch)
    assert not (scratch / "tokens.npy").exists()
    opened, plain = kernels.open(tmp_path / "pack", check=True), kernels.pack(TOKENS, OFFSETS, kind)
    assert np.array_equal(opened.scores(QUERY), plain.scores(QUERY))
    assert np.array_equal(opened.exact_scores(QUERY), plain.exact_scores(QUERY))


def test_saving_leaves_files_of_other_folders_alone(tmp_path: Path) -> None:
    mapped = np.lib.format.open_memmap(tmp_path / "mine.npy", mode="w+", dtype=np.float32, shape=TOKENS.shape)
    mapped[:] = TOKENS
    packed = kernels.pack(mapped, OFFSETS)
    packed.save(tmp_path / "first")
    packed.save(tmp_path / "second", tmp_path / "scratch")
    assert np.array_equal(np.load(tmp_path / "mine.npy"), TOKENS)
    mapped[:] = 1
    assert np.array_equal(kernels.open(tmp_path / "first").exact_codes().arrays()["tokens"], TOKENS)
