"""The command decodes in the sandbox: the same collection and answers, and a limit of time and memory per image."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile
from support.running import run

import resight
from resight.data import image_files, sandbox
from resight.data.sandbox.processes import Limits, Sandbox
from resight.types import ImageRef


@pytest.fixture
def forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """No image is opened or decoded in this process."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("an image reached a decoder outside of the sandbox")

    monkeypatch.setattr("resight.data.image_files.decode", fail)
    monkeypatch.setattr(Image, "open", fail)
    monkeypatch.setattr(ImageFile.ImageFile, "__init__", fail)


def limit(monkeypatch: pytest.MonkeyPatch, **limits: float) -> Sandbox:
    own = Sandbox(1, Limits(**limits))  # type: ignore[arg-type]
    monkeypatch.setattr(sandbox, "_shared", own)
    return own


@pytest.mark.usefixtures("forbid_decoding")
def test_a_command_decodes_nothing_itself(scenes: Path, view: Path, tmp_path: Path) -> None:
    indexed = run("index", scenes, "--into", tmp_path / "c.resight", "--encoder", "sift", "--json").answer
    assert indexed["added"] > 1 and indexed["skipped"] == []
    assert run("search", tmp_path / "c.resight", view, "--html", tmp_path / "page.html", "--json").answer["hits"]
    assert run("dedup", tmp_path / "c.resight", "--out", tmp_path / "pairs.csv").code == 0


def test_outside_of_a_command_the_library_decodes_in_its_own_process(
    view: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sandbox.find_shared() is None
    inside = image_files.read(ImageRef("a", view), 64)
    with sandbox.sandboxed():
        assert sandbox.find_shared() is not None
        outside = image_files.read(ImageRef("a", view), 64)
    assert np.array_equal(inside.pixels, outside.pixels) and inside.ref == outside.ref
    with sandbox.sandboxed(), monkeypatch.context() as forked:
        first = sandbox.find_shared()
        forked.setattr(sandbox, "_shared", first)
        forked.setattr(sandbox, "_owner", 1)  # as after a fork
        assert sandbox.find_shared() is not first
    monkeypatch.setenv(sandbox.VARIABLE, "off")
    with sandbox.sandboxed():
        assert sandbox.find_shared() is None


def test_an_image_that_takes_too_much_memory_is_skipped_with_the_reason(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = limit(monkeypatch, memory=160 * 2**20)
    large = tmp_path / "large.png"
    Image.new("RGB", (8000, 8000)).save(large)
    report = run(
        "index", scenes / "scene_00.jpg", large, "--into", tmp_path / "c.resight", "--encoder", "sift", "--json"
    ).answer
    own.close()
    assert report["added"] == 1
    (skipped,) = report["skipped"]
    assert skipped["path"] == str(large) and "memory" in skipped["reason"]


def test_an_image_that_takes_too_long_is_skipped_with_the_reason(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = limit(monkeypatch, seconds=0.0)
    ran = run("index", scenes / "scene_00.jpg", "--into", tmp_path / "c.resight", "--encoder", "sift", "--json")
    own.close()
    report = json.loads(ran.out)
    assert ran.code == 2 and report["added"] == 0
    assert {skipped["reason"] for skipped in report["skipped"]} == {"decoding it took too much time or memory"}
    assert len(resight.open(tmp_path / "c.resight")) == 0


def test_a_file_larger_than_the_limit_is_not_read(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = limit(monkeypatch, bytes=100)
    ran = run("index", scenes, "--into", tmp_path / "c.resight", "--encoder", "sift", "--json")
    own.close()
    report = json.loads(ran.out)
    assert ran.code == 2 and "the file is too large" in ran.err
    assert {skipped["reason"] for skipped in report["skipped"]} == {"the file is too large"}
