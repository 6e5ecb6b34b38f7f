"""`resight craters`: the craters of a catalogue, cut out of a map, into a collection."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.apps import terminal
from resight.apps.cli.options import Json, Preset, Set
from resight.errors import InputError

if TYPE_CHECKING:
    from resight.collection.crater_index import CraterPlan, CraterReport

SHOWN = 5  # lines of a catalogue that cannot be read


def craters(
    map: Annotated[Path, typer.Argument(help="GeoTIFF, PDS3 or PDS4 label, or an image with --bounds.")],
    catalogue: Annotated[Path, typer.Argument(help="CSV table of the craters.")],
    into: Annotated[Path | None, typer.Option("--into", help="The collection; created if missing.")] = None,
    bounds: Annotated[
        str,
        typer.Option(
            metavar="W,S,E,N", help="Edges of the map in degrees. [the map's own, or the globe]", show_default=False
        ),
    ] = "",
    body: Annotated[
        str | None, typer.Option(help="The globe: moon, mars, mercury … [the map's own]", show_default=False)
    ] = None,
    radius: Annotated[float | None, typer.Option(metavar="KM", help="Radius of the globe, instead of --body.")] = None,
    view: Annotated[
        list[float] | None,
        typer.Option(
            "--view", metavar="DIAMETERS", help="Side of a crop; repeat for several scales. [6]", show_default=False
        ),
    ] = None,
    pixels: Annotated[int, typer.Option(help="Width and height of each crop.")] = 256,
    smallest_km: Annotated[float, typer.Option(help="Smallest crater diameter.")] = 0.0,
    largest_km: Annotated[float | None, typer.Option(help="Largest crater diameter.", show_default=False)] = None,
    least_pixels: Annotated[float, typer.Option(help="Map pixels per side that a crop needs.")] = 32.0,
    most_missing: Annotated[float, typer.Option(help="Share of a crop where the map may have no data.")] = 0.05,
    no_data: Annotated[
        int | None, typer.Option("--no-data", metavar="VALUE", help="Value of pixels without data, in a plain image.")
    ] = None,
    lon: Annotated[str, typer.Option(metavar="COLUMN", help="Longitudes in the catalogue.", show_default=False)] = "",
    lat: Annotated[str, typer.Option(metavar="COLUMN", help="Latitudes.", show_default=False)] = "",
    diameter: Annotated[str, typer.Option(metavar="COLUMN", help="Diameters, in km.", show_default=False)] = "",
    id: Annotated[str, typer.Option(metavar="COLUMN", help="Ids.", show_default=False)] = "",
    west: Annotated[bool, typer.Option("--west", help="The catalogue's longitudes grow to the west.")] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out lines that cannot be read, and list them.")
    ] = False,
    crops: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the crops go. [COLLECTION.crops]", show_default=False)
    ] = None,
    map_name: Annotated[
        str, typer.Option(metavar="NAME", help="The crops' attribute `map`. [the file's name]", show_default=False)
    ] = "",
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Put this before each id.", show_default=False)] = "",
    preset: Preset = None,
    recipe: Annotated[Path | None, typer.Option(help="Your own recipe file.")] = None,
    settings: Set = None,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate time, memory and disk; write nothing.")] = False,
    json: Json = False,
) -> None:
    """Index the craters of a catalogue, cut out of a map.

    Run it again to continue after a stop. Each crop keeps the crater's id, position and diameter as attributes.
    """
    from resight import recipe as recipes
    from resight.collection.crater_index import PRESET, index_craters, plan_craters
    from resight.data.maps.crater_catalogue import Columns, read_table
    from resight.data.maps.crater_crops import CraterCrops, CropSettings
    from resight.data.maps.map_file import identify, open_map

    if preset and recipe:
        raise InputError("--preset and --recipe exclude each other", fix="give one of them")
    if into is None and not plan:
        raise InputError(
            "no collection to add to", expected="--into COLLECTION, or --plan", fix="e.g. --into moon.resight"
        )
    folder = choose_folder(into, crops, plan)
    chosen = recipes.load(recipe or preset or PRESET, settings or ()) if preset or recipe or settings or plan else None
    cut = CropSettings(
        tuple(view or (6.0,)),
        pixels,
        smallest_km,
        float("inf") if largest_km is None else largest_km,
        least_pixels,
        most_missing,
        map_name or map.stem,
        prefix,
    )
    table = read_table(catalogue, Columns(lon, lat, diameter, id, west), skip_bad=skip_bad)
    image = open_map(map, parse_bounds(bounds), find_radius(body, radius), no_data)
    found = CraterCrops(image, table, cut, folder, (identify(map), bounds, no_data))
    if plan:
        assert chosen is not None
        return print_plan(plan_craters(found, chosen), json)
    assert into is not None
    with terminal.progress("craters") as bar:
        report = index_craters(into, found, chosen, bar)
    return print_report(report, into, folder, json)


def parse_bounds(text: str) -> tuple[float, ...]:
    """W,S,E,N → four numbers; nothing → none."""
    if not text:
        return ()
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 4:
        raise InputError(
            "--bounds cannot be read",
            expected="west, south, east and north in degrees, e.g. --bounds 0,-90,360,90",
            actual=text,
            fix="give four numbers with commas and without spaces",
        )
    return numbers


def find_radius(body: str | None, radius: float | None) -> float | None:
    """Metres; None if the map has to say it."""
    from resight.data.maps.map_label import BODIES
    from resight.errors import did_you_mean
    from resight.plugins import check_range

    if body is not None and radius is not None:
        raise InputError("--body and --radius exclude each other", fix="give one of them")
    if radius is not None:
        check_range("--radius", radius, 1, 1e5)
        return 1000 * radius
    if body is None:
        return None
    if body.lower() not in BODIES:
        raise InputError(
            f"there is no radius for {body!r}",
            expected=", ".join(BODIES),
            actual=body,
            fix=did_you_mean(body.lower(), BODIES, "give its radius in km with --radius"),
        )
    return 1000 * BODIES[body.lower()]


def choose_folder(into: Path | None, crops: Path | None, plan: bool) -> Path:
    from resight.files.remote import is_remote

    if crops is not None:
        return crops
    if into is not None and is_remote(into) and not plan:
        raise InputError(
            "the crops need a folder on this machine",
            expected="--crops FOLDER with a collection in an object store",
            actual=f"--into {into}",
            fix="e.g. --crops crops/",
        )
    name = into or Path("craters")
    return name.with_name(f"{name.name}.crops")


def print_plan(found: "CraterPlan", json: bool) -> None:
    if json:
        return terminal.print_json(found)
    store, index = (terminal.format_bytes(count) for count in (found.index.store_bytes, found.index.index_bytes))
    terminal.echo(f"{found.crops:,} crops, estimated from {found.index.probed} of them:")
    terminal.echo(
        f"time    {terminal.format_seconds(found.seconds)} ({found.crops / found.seconds:.1f} crops per second)"
    )
    terminal.echo(f"memory  {terminal.format_bytes(found.memory_bytes)} at most while indexing")
    terminal.echo(f"disk    {terminal.format_bytes(found.crop_bytes)} crops + {store} store + {index} index")
    return None


def print_report(report: "CraterReport", into: Path, folder: Path, json: bool) -> None:
    if json:
        return terminal.print_json({"collection": into, "folder": folder, **terminal.plain(report)})
    terminal.print_skipped(report.skipped)
    terminal.echo(
        f"{into}: {report.crops:,} crops of {report.craters:,} craters ({report.added:,} added, "
        f"{report.updated:,} updated, {report.unchanged:,} unchanged)"
    )
    for reason, count in report.left_out.items():
        terminal.echo(f"left out: {count:,} {reason}")
    if report.unreadable:
        terminal.echo(f"left out: {report.unreadable:,} crops whose files cannot be read")
    if report.bad:
        terminal.echo(f"left out: {report.bad:,} lines of the catalogue")
        for line in report.bad_lines[:SHOWN]:
            terminal.echo(f"  {line}")
        if report.bad > SHOWN:
            terminal.echo("  … --json lists more")
    return None
