"""`resight keys`: make access keys for `resight serve --key-file`."""

from pathlib import Path
from typing import Annotated

import typer

from resight.apps import terminal

app = typer.Typer(rich_markup_mode=None, help="Make access keys for resight serve.", no_args_is_help=True)


@app.callback()
def describe() -> None:
    """Make access keys for resight serve."""


@app.command("make")
def make(
    name: Annotated[str, typer.Argument(help="Who gets the key; logs show this name.")],
    into: Annotated[Path, typer.Option("--into", metavar="FILE", help="The key file; it stores a digest only.")],
    read: Annotated[bool, typer.Option("--read", help="For reading only.")] = False,
    collections: Annotated[
        str, typer.Option(metavar="A,B", help="Names of the collections it opens; by default all.")
    ] = "",
    days: Annotated[int | None, typer.Option("--expires", min=1, metavar="DAYS", help="Days until it ends.")] = None,
) -> None:
    """Make a key, add it to a key file and print it once."""
    from resight.apps.service.api_keys import append_key, generate_key

    names = [one.strip() for one in collections.split(",") if one.strip()]
    text, key = generate_key(name, not read, names, days)
    append_key(key, into)
    terminal.echo(text)
