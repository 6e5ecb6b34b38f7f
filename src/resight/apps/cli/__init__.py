"""The `resight` command: which module holds which command, and errors as messages with exit codes.

A module is imported when one of its commands runs or shows its help, and no module imports a heavy package at its top.
So one command never pays for another, and `resight --help` answers at once. Help texts are plain: Typer's rich ones
take longer to import than all the rest.
"""

import importlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from resight.data.sandbox import sandboxed
from resight.errors import ResightError, StorageError

INTERRUPTED = 130
COMMANDS = {  # command → its module, and the function or group of commands there; in the order that --help shows
    "demo": ("demo", "demo"),
    "index": ("index", "index"),
    "craters": ("craters", "craters"),
    "delete": ("index", "delete"),
    "relink": ("index", "relink"),
    "search": ("search", "search"),
    "ls": ("ls", "ls"),
    "serve": ("serve", "serve"),
    "keys": ("keys", "app"),
    "locate": ("locate", "locate"),
    "dedup": ("dedup", "dedup"),
    "match": ("match", "match"),
    "lookalikes": ("lookalikes", "lookalikes"),
    "audit": ("audit", "audit"),
    "votes": ("audit", "votes"),
    "review": ("audit", "review"),
    "eval": ("eval", "evaluate"),
    "judge": ("judge", "judge"),
    "report": ("report", "report"),
    "reproduce": ("reproduce", "app"),
    "exactness": ("tune", "exactness"),
    "tune": ("tune", "tune"),
    "suggest": ("suggest", "suggest"),
    "plan": ("plan", "plan"),
    "export": ("index", "export"),
    "info": ("info", "info"),
    "doctor": ("doctor", "doctor"),
    "verify": ("upkeep", "verify"),
    "repair": ("upkeep", "repair"),
    "backup": ("upkeep", "backup"),
    "restore": ("upkeep", "restore"),
    "upgrade": ("upkeep", "upgrade"),
    "encoders": ("info", "encoders"),
    "plugins": ("info", "plugins"),
    "codebook": ("learn", "codebook"),
    "whiten": ("learn", "whiten"),
    "calibrate": ("learn", "calibrate"),
    "train": ("train", "train"),
    "data": ("data", "app"),
}


class LazyCommands(Mapping[str, Any]):
    """Command → what Typer runs for it; imports the command's module on access."""

    def __getitem__(self, name: str) -> Any:
        module, attribute = COMMANDS[name]
        found = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return add_verbosity(typer.main.get_command(found))
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        return add_verbosity(typer.main.get_command(single))

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def add_verbosity(command: Any) -> Any:
    """-q and -v for a command, or for each of a group."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        for one in inner.values():
            add_verbosity(one)
        return command
    options = typer.Typer(add_completion=False, rich_markup_mode=None)
    options.command()(set_verbosity)
    for option in typer.main.get_command(options).params:
        option.expose_value = False  # the callbacks do the work; no command takes the values
        command.params.append(option)
    return command


def make_quiet(wanted: bool) -> None:
    from resight.apps import terminal

    terminal.verbosity.level = terminal.QUIET if wanted else terminal.NORMAL


def make_verbose(wanted: bool) -> None:
    if wanted:
        import logging

        from resight.apps import terminal

        terminal.verbosity.level = terminal.VERBOSE
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")


def set_verbosity(
    quiet: Annotated[
        bool,
        typer.Option("-q", "--quiet", callback=make_quiet, is_eager=True, help="Print the answer and errors only."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            callback=make_verbose,
            help="Also print all that is skipped, times, and where errors arose.",
        ),
    ] = False,
) -> None:
    """Options of every command."""


class LazyGroup(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": LazyCommands()})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer passes it
        return list(COMMANDS)


app = typer.Typer(
    name="resight",
    cls=LazyGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    if wanted:
        import resight

        print(f"resight {resight.__version__}")
        raise typer.Exit


@app.callback()
def describe(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the very same object in other images, see where it is, and know how sure the answer is."""


def main() -> None:
    # pydantic would read the metadata of every installed package, to find plug-ins that this command does not use.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name that the terminal cannot show must not end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        with sandboxed():
            app()
    except ResightError as error:
        _print_error(f"error: {error}")
        sys.exit(error.exit_code)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:  # Typer turns Ctrl-C into this, and prints nothing
            print("stopped; resight keeps what it has stored: run the same command again to continue", file=sys.stderr)
        raise
    except OSError as error:
        _print_error(
            f"error: the operating system refused: {error}\n"
            "  fix: check the path, its permissions and the free disk space"
        )
        sys.exit(StorageError.exit_code)


def _print_error(text: str) -> None:
    from resight.apps import terminal  # `resight --version` loads nothing

    if terminal.verbosity.level == terminal.VERBOSE:
        import traceback

        terminal.echo("".join(traceback.format_tb(sys.exc_info()[2])), file=sys.stderr)
    terminal.echo(text, file=sys.stderr)
