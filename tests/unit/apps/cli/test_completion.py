"""What the shell completes, asked as bash and zsh ask."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.scenes import draw_scene, write_jpeg

import resight
from resight.apps.cli import completion, options
from resight.recipe import PRESETS, shipped

HEAVY = ("cv2", "faiss", "onnxruntime", "torch", "scipy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("completion")
    images = [
        resight.ImageRef(f"{name}.jpg", write_jpeg(root / f"{name}.jpg", draw_scene(3)), attributes={"year": 1900})
        for name in ("castle", "cathedral", "tower")
    ]
    resight.open(root / "c.resight", "sift").add(images)
    return root


def complete(folder: Path, *words: str) -> list[str]:
    """The answers to bash; the last word is the one to complete."""
    asked = {"COMP_WORDS": " ".join(["resight", *words]), "COMP_CWORD": str(len(words))}
    code = (
        "import sys, resight.apps.cli as cli\n"
        "try:\n    cli.app(prog_name='resight')\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, **asked, "_RESIGHT_COMPLETE": "complete_bash"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.stderr == "[]\n", ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("ind",), ["index"]),
        (("index", "photos", "--preset", "sift_"), ["sift_tokens", "sift_vlad"]),
        (("encoders", "dinov2_vits14"), ["dinov2_vits14", "dinov2_vits14_reg"]),
        (("data", "get", "moonb"), ["moonbench"]),
        (("delete", "c.resight", "ca"), ["castle.jpg", "cathedral.jpg"]),
        (("search", "c.resight", "--id", "t"), ["tower.jpg"]),
        (("ls", "c.resight", "--where", "year>"), ["year>=", "year>"]),
        (("ls", "missing.resight", "--where", "y"), []),
    ],
)
def test_names_are_completed_without_anything_heavy(folder: Path, words: tuple[str, ...], found: list[str]) -> None:
    assert complete(folder, *words) == found


def test_a_recipe_is_completed_with_the_presets_first() -> None:
    names = completion.list_names("recipes", {}, "")
    assert tuple(names[: len(PRESETS)]) == PRESETS
    assert set(shipped()) <= set(names)


def test_a_collection_that_cannot_be_read_completes_nothing(tmp_path: Path) -> None:
    (tmp_path / "collection.json").write_text(json.dumps({"recipe": {}}))
    assert completion.list_names("ids", {"collection": tmp_path}, "") == []


def test_the_help_names_the_presets() -> None:
    assert options.PRESETS.startswith(", ".join(PRESETS))
    assert set(PRESETS) <= set(shipped())
