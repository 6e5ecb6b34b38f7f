"""The template in examples/plugin, installed: its encoder and its metric serve like resight's own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.scenes import write_scenes

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the package installed."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(PLUGIN, folder / "plugin")  # a build leaves files beside its source
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", folder / "site", source], check=True)
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(environment: dict[str, str], *words: object) -> str:
    command = [sys.executable, "-m", "resight", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_an_installed_package_is_listed_and_searched_with(installed: dict[str, str], tmp_path: Path) -> None:
    found = {(one["kind"], one["name"]): one for one in json.loads(run(installed, "plugins", "--json"))}
    assert found["backbones", "mean_colour"]["origin"] == "resight-example-plugin 0.1.0"
    assert found["metrics", "reciprocal_rank"]["about"].startswith("1 / rank")
    assert not [one for one in found.values() if one["problem"]]
    write_scenes(tmp_path / "photos", 3)
    run(installed, "index", tmp_path / "photos", "--into", tmp_path / "c", "--encoder", PLUGIN / "colours.toml")
    answer = json.loads(run(installed, "search", tmp_path / "c", tmp_path / "photos" / "scene_01.jpg", "--json"))
    assert answer["hits"][0]["id"] == "scene_01.jpg"
    words = [sys.executable, "-m", "resight", "search", tmp_path / "c", tmp_path / "photos" / "scene_01.jpg"]
    bare = subprocess.run(words, capture_output=True, text=True, check=False)
    assert bare.returncode == 2
    assert "mean_colour" in bare.stderr and "install the package that brings it" in bare.stderr


def test_a_metric_of_an_installed_package_is_found_only_where_it_is_installed(installed: dict[str, str]) -> None:
    code = "from resight.evaluate.metrics import build; print(build('reciprocal_rank').score([2, 5], 2, None))"
    ran = subprocess.run([sys.executable, "-c", code], env=installed, capture_output=True, text=True, check=True)
    assert ran.stdout == "0.5\n"
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "there is no metrics called 'reciprocal_rank'" in bare.stderr
