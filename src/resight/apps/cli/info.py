"""`resight info`, `resight encoders` and `resight plugins`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, complete
from resight.errors import InputError, did_you_mean
from resight.files import remote

if TYPE_CHECKING:
    from resight.encode.catalogue import Entry


def info(collection: Annotated[Path, typer.Argument(help="The collection.")], json: Json = False) -> None:
    """Show what a collection contains, its recipe, and its size."""
    from resight import kernels
    from resight import recipe as recipes
    from resight.collection import CALIBRATION, open_collection
    from resight.collection.location import exists

    opened = open_collection(collection, must_exist=True)
    facts = {
        "collection": remote.to_url(collection),
        "images": len(opened),
        "format": opened.metadata.format,
        "created": opened.metadata.created,
        "recipe": recipes.to_table(opened.recipe),
        "spaces": list(opened.metadata.spaces),
        "store_bytes": _size(collection / "images.lance"),
        "index_bytes": _size(opened.local_folder / "indexes"),
        "calibration": "its own" if exists(collection, CALIBRATION) else "shipped",
        "kernels": kernels.implementation(),
    }
    if json:
        return terminal.print_json(facts)
    for name, value in facts.items():
        if name == "recipe":
            value = opened.recipe.name
        elif name.endswith("_bytes"):
            name, value = name.removesuffix("_bytes"), terminal.format_bytes(float(str(value)))
        elif isinstance(value, list):
            value = "\n              ".join(value)
        terminal.echo(f"{name:<12}  {value}")
    return None


def encoders(
    names: Annotated[
        list[str] | None, typer.Argument(help="Encoders to list; default: all.", autocompletion=complete("networks"))
    ] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Measure images per second here, of the named or of all ready encoders."),
    ] = False,
    json: Json = False,
) -> None:
    """List the encoders, and whether they can run here.

    Shows family, dimensions, weights and licence.
    """
    from resight.encode import catalogue
    from resight.encode.catalogue import count_parts, list_encoders

    found = list_encoders(names or ())
    if measure:
        wanted = [entry for entry in found if names or entry.ready]
        with terminal.progress("measuring") as bar:
            for done, entry in enumerate(wanted, start=1):
                found[found.index(entry)] = replace(
                    entry,
                    images_a_second=catalogue.measure(entry.name),
                    parts=count_parts(entry.name) if names else (),
                )
                bar(done, len(wanted))
    if json:
        return terminal.print_json(found)
    rows = [
        [
            entry.name,
            entry.family,
            _format(entry.dimensions),
            _format(entry.tokens),
            f"{entry.parameters:,.0f} M" if entry.parameters else "–",
            entry.weights + (" (gated)" if entry.gated else ""),
            entry.licence,
            "yes" if entry.ready else "no",
            *([f"{entry.images_a_second:.1f}" if entry.images_a_second else "–"] if measure else []),
        ]
        for entry in found
    ]
    columns = ("name", "family", "dims", "tokens", "parameters", "weights", "licence", "ready")
    terminal.print_table(
        "Encoders", (*columns, *(["images/s"] if measure else [])), rows, right=(2, 3, 4, 8) if measure else (2, 3, 4)
    )
    if names:
        for reason in dict.fromkeys(entry.missing for entry in found if entry.missing):
            terminal.echo(f"  {reason}")
    elif any(not entry.ready for entry in found):
        terminal.echo("  not ready: `resight encoders NAME` shows what is missing and how to get it")
    if measure:
        terminal.echo(
            "  images/s: 640 × 480 pixels, all cores, without decoding; random weights if the real ones are missing"
        )
    for entry in found:
        if entry.parts:
            _print_parts(entry)
    return None


def plugins(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(help="Kinds to list, e.g. backbones; default: all.", autocompletion=complete("kinds")),
    ] = None,
    json: Json = False,
) -> None:
    """List all plug-ins, and which package brings each."""
    from resight.plugin_catalogue import OURS, PACKAGES, list_plugins, name_kind

    known = [name_kind(package) for package in PACKAGES]
    unknown = next((kind for kind in kinds or () if kind not in known), None)
    if unknown is not None:
        raise InputError(
            f"there are no plug-ins of the kind {unknown!r}",
            expected=f"one of {', '.join(known)}",
            actual=unknown,
            fix=did_you_mean(unknown, known, "leave it out to list all"),
        )
    found = [plugin for plugin in list_plugins() if not kinds or plugin.kind in kinds]
    if json:
        return terminal.print_json(found)
    rows = [[one.kind, one.name, one.origin, one.about] for one in found]
    terminal.print_table("Plug-ins", ("kind", "name", "origin", "what it is"), rows)
    for one in found:
        if one.problem:
            terminal.echo(f"  {one.name} ({one.origin}): {one.problem}")
    if all(one.origin == OURS for one in found):
        terminal.echo("  no installed package brings any; examples/plugin shows how to make one")
    return None


def _print_parts(entry: "Entry") -> None:
    rows = [[one.part, f"{one.parameters:,}", f"{one.operations / 1e9:.3f}"] for one in entry.parts]
    parameters, operations = sum(one.parameters for one in entry.parts), sum(one.operations for one in entry.parts)
    total = ["all", f"{parameters:,}", f"{operations / 1e9:.3f}"]
    terminal.print_table(entry.name, ("part", "parameters", "GFLOPs"), [*rows, total], right=(1, 2))
    terminal.echo("  GFLOPs: multiply-adds for one image of the default size")


def _size(folder: Path) -> int:
    if remote.is_remote(folder):
        return sum(file.size for file in remote.list_files(remote.to_url(folder)))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def _format(number: int) -> str:
    return f"{number:,}" if number else "varies"
