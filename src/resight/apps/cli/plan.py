"""`resight plan`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.index import Json, Set
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection.plan.cluster import Figure

GIGABYTE = 1e9


def plan(
    path: Annotated[Path | None, typer.Argument(help="The folder or manifest that is to be indexed.")] = None,
    images: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Plan for so many images of that kind, e.g. 1e9 or 1_000_000.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="A preset by name.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A recipe file of your own.")] = None,
    settings: Set = None,
    node_cores: Annotated[int, typer.Option(min=1, help="Cores of a machine.")] = 16,
    node_memory: Annotated[float, typer.Option(min=0.1, metavar="GB", help="Its memory.")] = 64,
    node_disk: Annotated[float, typer.Option(min=0.1, metavar="GB", help="Its disk.")] = 1000,
    price: Annotated[float, typer.Option(min=0, help="Of a machine an hour, in your money.")] = 0.80,
    replication: Annotated[int, typer.Option(min=1, help="Machines that hold each shard.")] = 2,
    deadline: Annotated[float, typer.Option(min=0.01, metavar="HOURS", help="In which all images are encoded.")] = 168,
    latency: Annotated[float, typer.Option(min=0.1, metavar="MS", help="That a scan may take.")] = 500,
    shards: Annotated[int | None, typer.Option(min=1, help="Parts of the index. [one a machine]")] = None,
    json: Json = False,
) -> None:
    """Time, memory and disk here, and machines, hours and cost beyond, from a probe of a few images. Writes nothing."""
    from resight import recipe as recipes
    from resight.collection import DEFAULT
    from resight.collection.plan.cluster import Node, Wanted, plan_cluster
    from resight.collection.plan.probe import estimate

    count = None if images is None else parse_count(images)
    found = estimate(recipes.load(recipe or encoder or DEFAULT, settings or ()), path, count)
    node = Node(node_cores, node_memory * GIGABYTE, node_disk * GIGABYTE, price)
    cluster = plan_cluster(found.rates, node, Wanted(found.images, replication, deadline, latency, shards))
    if json:
        return terminal.print_json(
            {**terminal.plain(found), "cluster": {figure.name: terminal.plain(figure) for figure in cluster}}
        )
    print(f"{found.images:,} images, judged by {found.probed} of {'this folder' if path else 'a generated kind'}:")
    print(f"time    {terminal.format_seconds(found.seconds)} ({1 / found.seconds_an_image:.1f} images a second)")
    print(f"memory  {terminal.format_bytes(found.memory_bytes)} at most while indexing")
    print(
        f"disk    {terminal.format_bytes(found.store_bytes)} store + {terminal.format_bytes(found.index_bytes)} index"
    )
    if found.unreadable:
        print(
            f"{found.unreadable} of the images probed cannot be read; `resight data check folder PATH` names them all"
        )
    title = f"On machines of {node_cores} cores, {node_memory:g} GB of memory and {node_disk:g} GB of disk"
    rows = [[figure.name, format_value(figure), figure.how] for figure in cluster]
    terminal.print_table(title, ("", "", "how it was reached"), rows, right=(1,))
    return None


def parse_count(text: str) -> int:
    """1e9, 1_000_000 or 1000000, but not 0, -3 or 1.5."""
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
