"""`resight plan`: what an index would cost here, and on how many machines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, Preset, Set
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection.plan.cluster import Figure

DEFAULTS = (16, 64, 1000, 0.80, 2, 168, 500, None)  # of the options of a cluster
LARGE = 1_000_000  # images


def plan(
    path: Annotated[Path | None, typer.Argument(help="The folder or manifest to index.")] = None,
    images: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Plan for this many such images, e.g. 1e9 or 1_000_000.")
    ] = None,
    preset: Preset = None,
    recipe: Annotated[Path | None, typer.Option(help="Your own recipe file.")] = None,
    settings: Set = None,
    node_cores: Annotated[int, typer.Option(min=1, help="Cores per machine.")] = 16,
    node_memory: Annotated[float, typer.Option(min=0.1, metavar="GB", help="Memory per machine.")] = 64,
    node_disk: Annotated[float, typer.Option(min=0.1, metavar="GB", help="Disk per machine.")] = 1000,
    price: Annotated[float, typer.Option(min=0, help="Price per machine and hour, in your currency.")] = 0.80,
    replication: Annotated[int, typer.Option(min=1, help="Copies of each shard, on different machines.")] = 2,
    deadline: Annotated[float, typer.Option(min=0.01, metavar="HOURS", help="Time to encode all images.")] = 168,
    latency: Annotated[float, typer.Option(min=0.1, metavar="MS", help="Time that one scan may take.")] = 500,
    shards: Annotated[int | None, typer.Option(min=1, help="Parts of the index. [one per machine]")] = None,
    json: Json = False,
) -> None:
    """Estimate time, memory, disk and cost of an index.

    Probes a few images here. With --images, an option of a machine, or a million images and more, also plans the
    machines of a cluster. Writes nothing.
    """
    import resight
    from resight import recipe as recipes
    from resight.collection import DEFAULT

    planned = resight.plan(
        path,
        images=None if images is None else parse_count(images),
        recipe=recipes.load(recipe or preset or DEFAULT, settings or ()),
        node_cores=node_cores,
        node_memory=node_memory,
        node_disk=node_disk,
        price=price,
        replication=replication,
        deadline=deadline,
        latency=latency,
        shards=shards,
    )
    found, cluster = planned.here, planned.cluster
    if json:
        return terminal.print_json(
            {**terminal.plain(found), "cluster": {figure.name: terminal.plain(figure) for figure in cluster}}
        )
    probed = f"{found.probed} {'images of this folder' if path else 'generated images'}"
    terminal.echo(f"{found.images:,} images, estimated from {probed}:")
    terminal.echo(
        f"time    {terminal.format_seconds(found.seconds)} ({1 / found.seconds_an_image:.1f} images per second)"
    )
    terminal.echo(f"memory  {terminal.format_bytes(found.memory_bytes)} at most while indexing")
    terminal.echo(
        f"disk    {terminal.format_bytes(found.store_bytes)} store + {terminal.format_bytes(found.index_bytes)} index"
    )
    if found.unreadable:
        terminal.echo(
            f"{found.unreadable} of the probed images cannot be read; `resight data check folder PATH` lists them all"
        )
    asked = (node_cores, node_memory, node_disk, price, replication, deadline, latency, shards)
    if images is None and found.images < LARGE and asked == DEFAULTS:
        terminal.echo("one machine serves this; --images NUMBER plans for more, with the machines of a cluster")
        return None
    title = f"On machines of {node_cores} cores, {node_memory:g} GB of memory and {node_disk:g} GB of disk"
    rows = [[figure.name, format_value(figure), figure.how] for figure in cluster]
    terminal.print_table(title, ("", "", "derivation"), rows, right=(1,))
    return None


def parse_count(text: str) -> int:
    """A whole number such as 1e9, 1_000_000 or 1000000; refuses 0, -3 and 1.5."""
    try:
        number = float(text)
        if number >= 1 and number == int(number):
            return int(text) if text.replace("_", "").isdecimal() else int(number)
    except (ValueError, OverflowError):
        pass
    raise InputError(
        "cannot plan for that many images",
        expected="a whole number of 1 or more, e.g. 1e9 or 1_000_000",
        actual=repr(text),
        fix="correct --images",
    )


def format_value(figure: "Figure") -> str:
    if figure.unit == "bytes":
        return terminal.format_bytes(figure.value)
    if figure.unit == "seconds":
        return terminal.format_seconds(figure.value) if figure.value >= 0.1 else f"{1000 * figure.value:.1f} ms"
    return f"{figure.value:,.0f}" if figure.unit != "money" or figure.value >= 100 else f"{figure.value:,.2f}"
