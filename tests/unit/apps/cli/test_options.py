import pytest
import typer

from resight.apps.cli import app
from resight.apps.cli.options import read_tiles
from resight.errors import InputError


def test_without_an_address_there_are_no_tiles():
    assert read_tiles("", "") is None
    assert read_tiles("", "© somebody") is None


def test_an_address_needs_an_attribution():
    with pytest.raises(InputError) as refused:
        read_tiles("https://tiles.example.org/{z}/{x}/{y}.png", "")
    assert "--attribution" in refused.value.fix


@pytest.mark.parametrize("name", ["search", "eval", "report"])
def test_every_command_whose_page_has_a_map_takes_tiles(name):
    command = typer.main.get_command(app).commands[name]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--html", "--tiles", "--attribution"} <= options
