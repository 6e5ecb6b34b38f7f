import pytest
import typer

from resight.apps.cli import app
from resight.apps.cli.options import check_source, read_tiles
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


@pytest.mark.parametrize("source", [".", "gldv2:data", "gldv2:/data", "s3://bucket/photos", "s3:/bucket/photos"])
def test_paths_that_exist_data_sets_and_remote_addresses_pass(source):
    check_source(source)


@pytest.mark.parametrize(
    ("source", "fix"),
    [("nowhere", "check the path"), ("no:where", "check the path"), ("gldv3:x", "gldv2"), ("gldv3:/x", "gldv2")],
)
def test_a_path_that_leads_nowhere_is_refused_with_a_suggestion(source, fix):
    with pytest.raises(InputError, match="there is nothing at") as refused:
        check_source(source)
    assert fix in refused.value.fix
