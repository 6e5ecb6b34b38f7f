"""The command as a whole: which commands there are, and how little one of them imports."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer
from support.scenes import draw_scene, write_jpeg

from resight.apps.cli import COMMANDS, app

COUNT = """
import sys
from resight.apps.cli import app
app({words!r}, standalone_mode=False)
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "resight"), file=sys.stderr)
"""


def list_modules(*words: object) -> list[str]:
    """Our own modules that a fresh Python has imported when it has run `resight WORDS…`."""
    code = COUNT.format(words=[str(word) for word in words])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stderr.splitlines()[-1].split()  # the progress of slow work comes before


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    """A photo, a collection that holds it, and the modules that indexing imported."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "photos").mkdir()
    for number in range(3):
        write_jpeg(folder / "photos" / f"{number}.jpg", draw_scene(number))
    loaded = list_modules("index", folder / "photos", "--into", folder / "c.resight")
    return folder / "photos" / "0.jpg", folder / "c.resight", loaded


def test_every_command_is_listed_with_a_short_help_that_fits_a_line():
    commands = typer.main.get_command(app).commands
    assert list(commands) == list(COMMANDS)
    for name, command in commands.items():
        short = command.get_short_help_str(limit=64)
        assert short and not short.endswith("..."), f"{name}: {short}"


def test_the_version_is_printed_without_loading_a_command(capsys: pytest.CaptureFixture[str]):
    app(["--version"], standalone_mode=False)
    assert capsys.readouterr().out == f"resight {metadata.version('resight')}\n"
    own = {"resight", "resight.apps", "resight.apps.cli", "resight.errors", "resight.data", "resight.data.sandbox"}
    assert set(list_modules("--version")) == own


def test_an_index_loads_few_modules(indexed: tuple[Path, Path, list[str]]):
    assert len(indexed[2]) <= 95  # with three encoders


def test_a_search_loads_few_modules_and_no_other_command(indexed: tuple[Path, Path, list[str]]):
    image, collection, _ = indexed
    loaded = list_modules("search", collection, image)
    assert len(loaded) <= 125  # with the sandbox, the checks of what is read, and three rerankers
    commands = {name for name in loaded if name.startswith("resight.apps.cli.")}
    assert commands == {"resight.apps.cli.search", "resight.apps.cli.options"}
    assert not [name for name in loaded if name.split(".")[1:2] in (["evaluate"], ["audit"], ["train"], ["explain"])]
